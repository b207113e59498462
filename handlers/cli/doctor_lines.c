/* See doctor_lines.h. */
#include "handlers/cli/doctor_lines.h"

#include "driver/backend/backend.h"

#include <jansson.h>

void hfd_doctor_lines_init(struct hfd_doctor_lines *l, bool json)
{
    *l = (struct hfd_doctor_lines){.json = json};
    hfd_buf_init(&l->out, HFD_DOCTOR_OUTPUT_MAX);
    hfd_buf_init(&l->orphan_list, HFD_DOCTOR_OUTPUT_MAX);
    hfd_arena_init(&l->mem, HFD_DOCTOR_OUTPUT_MAX);
}

void hfd_doctor_lines_fini(struct hfd_doctor_lines *l)
{
    hfd_buf_fini(&l->out);
    hfd_buf_fini(&l->orphan_list);
    hfd_arena_fini(&l->mem);
}

/* Adds one line. */
static void say(struct hfd_doctor_lines *l, const char *about, bool good, hfd_slice text)
{
    if (!l->json) {
        hfd_buf_addf(&l->out, "%-9s %.*s\n", about, HFD_SLICE_FMT(text));
        return;
    }
    hfd_buf_addf(&l->out, "%s{\"about\":\"%s\",\"ok\":%s,\"text\":", l->out.len > 0 ? "," : "",
                 about, good ? "true" : "false");
    hfd_buf_json_str(&l->out, text);
    hfd_buf_addc(&l->out, '}');
}

void hfd_doctor_good(struct hfd_doctor_lines *l, const char *about, hfd_slice text)
{
    say(l, about, true, text.p != NULL ? text : HFD_SLICE("good"));
}

void hfd_doctor_finding(struct hfd_doctor_lines *l, const char *about, hfd_slice text)
{
    say(l, about, false, text.p != NULL ? text : HFD_SLICE("out of memory"));
    l->findings++;
}

/* ---- orphans ---- */

static void add_orphan(struct hfd_buf *b, const struct hfd_doctor_orphan *o)
{
    const struct {
        const char *before;
        hfd_slice text;
    } members[] = {{",\"id\":", o->id},
                   {",\"name\":", o->name},
                   {",\"guresid\":", o->guresid},
                   {",\"message\":", o->message}};

    hfd_buf_addf(b, "%s{\"kind\":\"%s\"", b->len > 0 ? "," : "", o->kind);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        hfd_buf_add(b, hfd_slice_of(members[i].before));
        hfd_buf_json_str(b, members[i].text);
    }
    hfd_buf_addf(b, ",\"deleting\":%s,\"delete_asked\":%s}", o->deleting ? "true" : "false",
                 o->wanted ? "true" : "false");
}

void hfd_doctor_orphan(struct hfd_doctor_lines *l, const struct hfd_doctor_orphan *o)
{
    l->findings++;
    if (l->json) {
        add_orphan(&l->orphan_list, o);
        return;
    }
    hfd_buf_addf(&l->out, "  %-8s  %.*s  %.*s  of resource %.*s%s%s%.*s\n", o->kind,
                 HFD_SLICE_FMT(o->id), HFD_SLICE_FMT(o->name), HFD_SLICE_FMT(o->guresid),
                 o->deleting ? ", being deleted"
                 : o->wanted ? ", to be deleted"
                             : "",
                 o->message.len > 0 ? ": " : "", HFD_SLICE_FMT(o->message));
}

void hfd_doctor_orphans_begin(struct hfd_doctor_lines *l, const struct hfd_doctor_orphans *o)
{
    const hfd_slice message = o->message;

    if (o->remote && o->checked.len == 0) {
        hfd_doctor_finding(
            l, "orphans",
            hfd_arena_printf(&l->mem, "unknown: %.*s",
                             HFD_SLICE_FMT(message.len > 0
                                               ? message
                                               : HFD_SLICE("the first search of the remote "
                                                           "HyperFleet is not complete"))));
        return;
    }
    hfd_doctor_good(l, "orphans",
                    hfd_arena_printf(&l->mem, "%zu%s%s%.*s", o->count, o->more ? " and more" : "",
                                     o->checked.len > 0 ? ", as of " : "",
                                     HFD_SLICE_FMT(o->checked)));
    if (message.len > 0)
        hfd_doctor_finding(
            l, "orphans",
            hfd_arena_printf(&l->mem, "the list cannot be renewed: %.*s", HFD_SLICE_FMT(message)));
}

void hfd_doctor_orphans_end(struct hfd_doctor_lines *l, size_t count)
{
    if (count > 0 && !l->json)
        hfd_buf_lit(
            &l->out,
            "Orphans have the label " HFD_GURESID_LABEL " but no resource. A PUT adopts them;\n"
            "DELETE /admin/orphans/ID on the ops listener of the running server deletes one.\n");
}

static hfd_slice member_or(const json_t *object, const char *key, const char *other)
{
    const json_t *v = json_object_get(object, key);

    return json_is_string(v) ? (hfd_slice){json_string_value(v), json_string_length(v)}
                             : hfd_slice_of(other);
}

static hfd_slice member(const json_t *object, const char *key)
{
    return member_or(object, key, "?");
}

bool hfd_doctor_orphans_answer(struct hfd_doctor_lines *l, hfd_slice body, bool remote)
{
    json_t *doc = json_loadb(body.p, body.len, 0, NULL), *items = json_object_get(doc, "items"),
           *item;
    size_t i;

    if (!json_is_array(items)) {
        json_decref(doc);
        return false;
    }
    hfd_doctor_orphans_begin(l, &(struct hfd_doctor_orphans){
                                    .count = json_array_size(items),
                                    .more = json_is_true(json_object_get(doc, "more")),
                                    .remote = remote,
                                    .checked = member_or(doc, "checked_time", ""),
                                    .message = member_or(doc, "message", ""),
                                });
    json_array_foreach (items, i, item) {
        const char *kind = json_string_value(json_object_get(item, "kind"));

        hfd_doctor_orphan(l, &(struct hfd_doctor_orphan){
                                 .kind = kind != NULL ? kind : "?",
                                 .name = member(item, "name"),
                                 .id = member(item, "id"),
                                 .guresid = member(item, "guresid"),
                                 .deleting = json_object_get(item, "deleted_time") != NULL,
                                 .wanted = json_object_get(item, "delete_asked_time") != NULL,
                                 .message = member_or(item, "message", "")});
    }
    hfd_doctor_orphans_end(l, json_array_size(items));
    json_decref(doc);
    return true;
}

/* ---- the whole ---- */

/* Makes the lines and the orphans one document. */
static void wrap_json(struct hfd_doctor_lines *l)
{
    struct hfd_buf whole;

    hfd_buf_init(&whole, 2 * HFD_DOCTOR_OUTPUT_MAX + 256);
    hfd_buf_addf(&whole, "{\"findings\":%zu,\"lines\":[", l->findings);
    hfd_buf_add(&whole, hfd_buf_slice(&l->out));
    hfd_buf_lit(&whole, "],\"orphans\":[");
    hfd_buf_add(&whole, hfd_buf_slice(&l->orphan_list));
    hfd_buf_lit(&whole, "]}\n");
    hfd_buf_fini(&l->out);
    l->out = whole;
}

enum hfd_exit hfd_doctor_lines_print(struct hfd_doctor_lines *l)
{
    enum hfd_exit status;

    if (l->json)
        wrap_json(l);
    status = hfd_cli_print("doctor", &l->out);
    return status == HFD_EXIT_OK && l->findings > 0 ? HFD_EXIT_FOUND : status;
}
