/* See overview_json.h. */
#include "handlers/http/overview_json.h"

#include "driver/fleet/fleet.h"
#include "driver/fleet/names.h"

static void add_name(struct hfd_buf *b, const char *name)
{
    hfd_buf_addf(b, ",\"%s\":", name);
}

static void add_text(struct hfd_buf *b, const char *name, hfd_slice text)
{
    add_name(b, name);
    if (text.len > 0)
        hfd_buf_json_str(b, text);
    else
        hfd_buf_lit(b, "null");
}

static void add_time(struct hfd_buf *b, const char *name, int64_t at_us)
{
    add_name(b, name);
    if (at_us != 0)
        hfd_buf_json_time(b, at_us);
    else
        hfd_buf_lit(b, "null");
}

/* Seconds with three digits behind the point. */
static void add_duration(struct hfd_buf *b, const char *name, int64_t us)
{
    add_name(b, name);
    if (us > 0)
        hfd_buf_addf(b, "%.3f", (double)us / (double)HFD_US_PER_S);
    else
        hfd_buf_lit(b, "null");
}

static void add_bool(struct hfd_buf *b, const char *name, bool value)
{
    hfd_buf_addf(b, ",\"%s\":%s", name, value ? "true" : "false");
}

static void add_number(struct hfd_buf *b, const char *name, int64_t value)
{
    hfd_buf_addf(b, ",\"%s\":%lld", name, (long long)value);
}

/* A number of the history: a text, as clients read numbers of that size inexactly. */
static void add_seq(struct hfd_buf *b, const char *name, int64_t seq)
{
    hfd_buf_addf(b, ",\"%s\":\"%lld\"", name, (long long)seq);
}

static void add_json(struct hfd_buf *b, const char *name, hfd_slice json)
{
    add_name(b, name);
    hfd_buf_add(b, json);
}

/* ---- the list ---- */

/* The members of an item, without braces. */
static void add_item(struct hfd_buf *b, const struct hfd_overview_item *i)
{
    hfd_buf_member_str(b, "\"id\":", i->guresid);
    add_text(b, "type", i->type);
    add_text(b, "name", i->name);
    add_text(b, "state", hfd_slice_of(hfd_state_name(i->state)));
    add_text(b, "operation", hfd_slice_of(i->operation != NULL ? i->operation : ""));
    add_time(b, "since", i->since_us);
    add_time(b, "estimated_completion_time", i->estimated_us);
    add_time(b, "deadline", i->deadline_us);
    add_text(b, "message", i->message);
    add_text(b, "health", i->health);
    add_json(b, "labels", i->labels);
    add_text(b, "cluster_id", i->cluster_id);
}

void hfd_overview_format(struct hfd_buf *b, const struct hfd_overview *page, hfd_slice next)
{
    hfd_buf_lit(b, "{\"items\":[");
    for (size_t i = 0; i < page->count; i++) {
        hfd_buf_add(b, i > 0 ? HFD_SLICE(",{") : HFD_SLICE("{"));
        add_item(b, &page->items[i]);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_lit(b, "],\"counts\":{");
    for (int s = HFD_STATE_CREATING; s < HFD_STATE_COUNT; s++)
        hfd_buf_addf(b, "%s\"%s\":%lld", s > HFD_STATE_CREATING ? "," : "",
                     hfd_state_name((enum hfd_state)s), (long long)page->counts[s]);
    hfd_buf_addc(b, '}');
    add_text(b, "next", next);
    hfd_buf_addc(b, '}');
}

/* ---- history ---- */

/* The members of an entry behind its id. */
static void add_entry(struct hfd_buf *b, const struct hfd_history_row *row)
{
    add_time(b, "time", row->at_us);
    add_text(b, "event", row->what);
    add_text(b, "from", hfd_slice_of(hfd_state_name(hfd_state_known(row->from))));
    add_text(b, "to", hfd_slice_of(hfd_state_name(hfd_state_known(row->to))));
    add_seq(b, "instance", row->instance);
    add_text(b, "incarnation", row->incarnation);
    add_name(b, "generation");
    if (row->generation != 0)
        hfd_buf_i64(b, row->generation);
    else
        hfd_buf_lit(b, "null");
    add_text(b, "message", row->text);
}

static void add_history(struct hfd_buf *b, const struct hfd_history *h)
{
    hfd_buf_lit(b, ",\"history\":[");
    for (size_t i = 0; i < h->count; i++) {
        hfd_buf_addf(b, "%s{\"id\":\"%lld\"", i > 0 ? "," : "", (long long)h->entries[i].seq);
        add_entry(b, &h->entries[i]);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_addc(b, ']');
}

void hfd_feed_format(struct hfd_buf *b, const struct hfd_feed *feed)
{
    hfd_buf_lit(b, "{\"items\":[");
    for (size_t i = 0; i < feed->count; i++) {
        const struct hfd_feed_entry *e = &feed->items[i];

        hfd_buf_addf(b, "%s{\"id\":\"%lld\"", i > 0 ? "," : "", (long long)e->row.seq);
        add_text(b, "resource", e->row.id);
        add_text(b, "type", e->type);
        add_text(b, "name", e->name);
        add_text(b, "cluster_id", e->cluster_id);
        add_entry(b, &e->row);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_addc(b, ']');
    add_seq(b, "next", feed->next);
    add_bool(b, "complete", feed->complete);
    hfd_buf_addc(b, '}');
}

/* ---- one resource ---- */

static void add_order(struct hfd_buf *b, const struct hfd_detail *d)
{
    hfd_buf_lit(b, ",\"ordered_by\":{\"identity\":");
    if (d->created_by.len > 0)
        hfd_buf_json_str(b, d->created_by);
    else
        hfd_buf_lit(b, "null");
    add_time(b, "time", d->item.created_us);
    add_text(b, "changed_by", d->updated_by);
    add_text(b, "app", d->app);
    add_text(b, "env", d->env);
    hfd_buf_addc(b, '}');
}

static void add_condition(struct hfd_buf *b, const struct hfd_condition *c)
{
    hfd_buf_member_str(b, "{\"type\":", c->type);
    add_text(b, "status", hfd_slice_of(hfd_status_name(c->status)));
    add_text(b, "reason", c->reason);
    add_text(b, "message", c->message);
    add_time(b, "last_updated_time", c->last_updated_us);
    add_time(b, "last_transition_time", c->last_transition_us);
    hfd_buf_addc(b, '}');
}

static void add_part(struct hfd_buf *b, const struct hfd_part *p)
{
    hfd_buf_addf(b, "{\"kind\":\"%s\"", hfd_kind_word(p->view.kind));
    add_text(b, "id", p->view.id);
    add_text(b, "name", p->view.name);
    add_name(b, "href");
    if (p->view.exists && p->view.id.len > 0) {
        hfd_buf_addc(b, '"');
        hfd_fleet_href(b, &p->fleet);
        hfd_buf_addc(b, '"');
    } else {
        hfd_buf_lit(b, "null");
    }
    add_bool(b, "exists", p->view.exists);
    add_bool(b, "deleting", p->view.deleting);
    add_bool(b, "leaving", p->view.leaving);
    add_number(b, "generation", p->view.generation);
    add_number(b, "wanted_generation", p->view.wanted_generation);
    hfd_buf_lit(b, ",\"conditions\":[");
    for (size_t i = 0; i < p->view.conditions.count; i++) {
        if (i > 0)
            hfd_buf_addc(b, ',');
        add_condition(b, &p->view.conditions.items[i]);
    }
    hfd_buf_lit(b, "]}");
}

static void add_adapter(struct hfd_buf *b, const struct hfd_detail_adapter *a)
{
    hfd_buf_member_str(b, "{\"adapter\":", a->name);
    add_text(b, "kind", hfd_slice_of(hfd_kind_word(a->part->view.kind)));
    add_text(b, "part", a->part->view.name);
    add_bool(b, "required", a->required);
    add_bool(b, "done", a->done);
    add_text(b, "status", hfd_slice_of(a->reported ? hfd_status_name(a->status) : ""));
    add_text(b, "reason", a->reason);
    add_text(b, "message", a->message);
    add_name(b, "observed_generation");
    if (a->reported)
        hfd_buf_i64(b, a->generation);
    else
        hfd_buf_lit(b, "null");
    add_time(b, "last_report_time", a->reported_us);
    add_time(b, "since", a->since_us);
    add_duration(b, "took_seconds", a->took_us);
    add_duration(b, "usual_seconds", a->usual_us);
    hfd_buf_addc(b, '}');
}

static void add_health(struct hfd_buf *b, const struct hfd_detail *d)
{
    hfd_buf_lit(b, ",\"pacemaker\":[");
    for (size_t i = 0; i < d->health_count; i++) {
        hfd_buf_add(b, i > 0 ? HFD_SLICE(",{\"adapter\":") : HFD_SLICE("{\"adapter\":"));
        hfd_buf_json_str(b, d->health[i].adapter);
        add_name(b, "document");
        hfd_health_format(b, &d->health[i].view);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_addc(b, ']');
}

void hfd_detail_format(struct hfd_buf *b, const struct hfd_detail *d)
{
    hfd_buf_addc(b, '{');
    add_item(b, &d->item);
    add_text(b, "code", d->item.code);
    add_bool(b, "stuck", d->item.stuck);
    add_time(b, "created_time", d->item.created_us);
    add_time(b, "started_time", d->item.started_us);
    add_time(b, "first_estimate", d->first_estimate_us);
    add_text(b, "incarnation", d->incarnation);
    add_name(b, "instance");
    if (d->instance != 0)
        hfd_buf_addf(b, "\"%lld\"", (long long)d->instance);
    else
        hfd_buf_lit(b, "null");
    add_json(b, "input", d->is_there ? d->input : HFD_SLICE("null"));
    add_order(b, d);
    hfd_buf_lit(b, ",\"parts\":[");
    for (size_t i = 0; i < d->parts.count; i++) {
        if (i > 0)
            hfd_buf_addc(b, ',');
        add_part(b, &d->parts.items[i]);
    }
    hfd_buf_lit(b, "],\"adapters\":[");
    for (size_t i = 0; i < d->adapter_count; i++) {
        if (i > 0)
            hfd_buf_addc(b, ',');
        add_adapter(b, &d->adapters[i]);
    }
    hfd_buf_addc(b, ']');
    add_health(b, d);
    add_history(b, &d->history);
    hfd_buf_addc(b, '}');
}
