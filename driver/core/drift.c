/* See drift.h. */
#include "driver/core/drift.h"

#include "driver/base/clock.h"
#include "driver/base/foreign.h"
#include "driver/base/jsonx.h"
#include "schemas/validate.h"
#include "store/rows_fleet.h"

#define FIELD_MAX_BYTES 300
#define VALUE_MAX_BYTES ((size_t)1000) /* of a value; for a larger one its size stands */
#define TOLD_MAX_BYTES 120             /* of a value in a sentence */
#define TEXT_MAX_BYTES 500             /* of a sentence */
#define DOCUMENT_MAX_BYTES ((size_t)16 * 1024 * 1024)

static hfd_rc fail_nomem(const struct hfd_ctx *c)
{
    return hfd_fail_nomem(c->err, "compare an order with HyperFleet");
}

/* A text of the store that is no JSON is damage, and no mistake of the caller. */
static hfd_rc parse_stored(const struct hfd_ctx *c, hfd_slice text, json_t **out)
{
    const hfd_rc rc = hfd_json_parse(text, out, c->err);

    return rc == HFD_MALFORMED ? hfd_fail(c->err, HFD_CORRUPT, "a stored list or order is damaged")
                               : rc;
}

/* ---- the documents of a part ---- */

static const char *const doc_names[] = {"spec", "labels"};
#define DOCS 2

/* The two documents as they were ordered, and as they were found. */
struct sides {
    json_t *aside; /* owns those that it has */
    json_t *ordered[DOCS], *found[DOCS];
};

static void free_sides(struct sides *s)
{
    for (size_t i = 0; i < DOCS; i++) {
        json_decref(s->ordered[i]);
        json_decref(s->found[i]);
    }
    json_decref(s->aside);
}

/* One document: that of aside, else HyperFleet's row has it. */
static hfd_rc read_side(const struct hfd_ctx *c, const json_t *aside, const char *name,
                        hfd_slice text, json_t **out)
{
    json_t *kept = json_object_get(aside, name);

    if (kept != NULL) {
        *out = json_incref(kept);
        return HFD_OK;
    }
    return parse_stored(c, text, out);
}

/* Reads both sides. Free them, also after a failure. */
static hfd_rc read_sides(const struct hfd_ctx *c, const struct hfd_part_row *part,
                         const struct hfd_fleet_row *fleet, struct sides *out)
{
    const hfd_slice rows[DOCS] = {fleet->spec, fleet->labels};
    hfd_rc rc = HFD_OK;

    *out = (struct sides){0};
    if (part->aside.len > 0)
        rc = parse_stored(c, part->aside, &out->aside);
    for (size_t i = 0; rc == HFD_OK && i < DOCS; i++) {
        rc = read_side(c, json_object_get(out->aside, "ordered"), doc_names[i], rows[i],
                       &out->ordered[i]);
        if (rc == HFD_OK)
            rc = read_side(c, json_object_get(out->aside, "found"), doc_names[i], rows[i],
                           &out->found[i]);
    }
    return rc;
}

/* {"ordered": {"labels": ..., "spec": ...}} */
static hfd_slice make_aside(const struct hfd_ctx *c, hfd_slice spec, hfd_slice labels)
{
    return hfd_arena_printf(c->mem, "{\"ordered\":{\"labels\":%.*s,\"spec\":%.*s}}",
                            HFD_SLICE_FMT(labels), HFD_SLICE_FMT(spec));
}

/* Tells if aside has the order. */
static hfd_rc keeps_order(const struct hfd_ctx *c, const struct hfd_part_row *part, bool *yes)
{
    json_t *aside = NULL;
    const hfd_rc rc = part->aside.len > 0 ? parse_stored(c, part->aside, &aside) : HFD_OK;

    *yes = json_object_get(aside, "ordered") != NULL;
    json_decref(aside);
    return rc;
}

hfd_rc hfd_drift_keep(const struct hfd_ctx *c, struct hfd_part_row *part,
                      const struct hfd_fleet_row *was)
{
    /* An older change by others was not noticed: then this is not what was ordered. */
    const bool known = hfd_driver_is_remote(c->driver) || was->generation <= part->generation;
    bool kept;
    const hfd_rc rc = keeps_order(c, part, &kept);

    if (rc != HFD_OK || kept || !known)
        return rc;
    part->aside = make_aside(c, was->spec, was->labels);
    return part->aside.p != NULL ? hfd_part_row_put(c->tx, part, c->err) : fail_nomem(c);
}

/* ---- names of fields ---- */

/* "cluster", "nodepool", or of a nodepool of a cluster resource "nodepools[a]". */
static hfd_slice prefix_of(const struct hfd_ctx *c, enum hfd_kind resource, enum hfd_kind kind,
                           hfd_slice name)
{
    return resource == kind ? hfd_slice_of(hfd_kind_word(kind))
                            : hfd_arena_printf(c->mem, "nodepools[%.*s]", HFD_SLICE_FMT(name));
}

/* True if a pattern names a field, or something that it is in. */
static bool covers(hfd_slice pattern, hfd_slice field)
{
    return hfd_slice_starts(field, pattern) &&
           (field.len == pattern.len || field.p[pattern.len] == '.' || field.p[pattern.len] == '[');
}

/* True for a field of driver.drift_ignore. */
static bool is_ignored(const struct hfd_ctx *c, enum hfd_kind kind, hfd_slice path)
{
    const hfd_slice word = hfd_slice_of(hfd_kind_word(kind));

    for (size_t i = 0; i < c->driver->drift_ignore_count; i++) {
        const hfd_slice pattern = c->driver->drift_ignore[i];

        if (hfd_slice_starts(pattern, word) && pattern.len > word.len &&
            covers((hfd_slice){pattern.p + word.len + 1, pattern.len - word.len - 1}, path))
            return true;
    }
    return false;
}

/* ---- comparing ---- */

/* The judgement of one resource. */
struct judging {
    const struct hfd_ctx *c;
    const struct hfd_resource_row *row;
    enum hfd_kind kind; /* of the part that is compared */
    hfd_slice prefix, by;
    json_t *before;  /* its last list, an array; NULL = it had none */
    json_t *repairs; /* object: of each field the times of its repairs, or true: it was given up */
    struct hfd_buf all;   /* the new array */
    struct hfd_buf first; /* a sentence about the first news */
    size_t count, mendable, repairable, news;
    size_t tried;      /* most repairs of one of these lately */
    hfd_slice gave_up; /* a sentence */
};

/* An item of the list. The values are JSON; empty = the field is not there. */
struct told {
    hfd_slice field, ordered, found, note;
};

/* Finds the item of the last list with the same field and value; NULL = there is none. */
static const json_t *told_before(const struct judging *j, const struct told *t)
{
    size_t i;
    json_t *item;

    json_array_foreach (j->before, i, item) {
        const json_t *found = json_object_get(item, "found");
        struct hfd_buf was;
        bool same;

        if (!hfd_slice_eq(hfd_json_text(item, "field"), t->field))
            continue;
        hfd_buf_init(&was, DOCUMENT_MAX_BYTES);
        if (found != NULL)
            hfd_json_dump_for_store(&was, found);
        same = was.rc == HFD_OK && hfd_slice_eq(hfd_buf_slice(&was), t->found);
        hfd_buf_fini(&was);
        return same ? item : NULL;
    }
    return NULL;
}

/* Times of repairs within the last hour. Those of before are taken away. */
static size_t repairs_of(const struct judging *j, hfd_slice field, bool *gave_up)
{
    json_t *times = json_object_getn(j->repairs, field.p, field.len);

    *gave_up = json_is_true(times);
    while (json_array_size(times) > 0 &&
           json_integer_value(json_array_get(times, 0)) < j->c->now_us - HFD_DRIFT_REPAIRS_US)
        (void)json_array_remove(times, 0);
    return json_array_size(times);
}

/* Notes whether a field will be mended without a PUT. @return a sentence if not; empty = it will */
static hfd_slice plan_repair(struct judging *j, hfd_slice field)
{
    bool gave_up;
    size_t tried;

    /* Fields that the list has no room for are mended with those that it has. */
    if (j->c->driver->drift != HFD_DRIFT_REPAIR || j->count > HFD_DRIFT_SHOWN_MAX)
        return HFD_SLICE("");
    tried = repairs_of(j, field, &gave_up);
    if (!gave_up && tried < HFD_DRIFT_REPAIRS_MAX) {
        j->repairable++;
        j->tried = tried > j->tried ? tried : j->tried;
        return HFD_SLICE("");
    }
    if (!gave_up && json_object_setn_new(j->repairs, field.p, field.len, json_true()) == 0 &&
        j->gave_up.len == 0)
        j->gave_up = hfd_arena_printf(
            j->c->mem, "%.*s was changed back %d times within an hour, the last time by %.*s",
            HFD_FOREIGN_CUT(field, FIELD_MAX_BYTES), HFD_DRIFT_REPAIRS_MAX,
            HFD_FOREIGN_CUT(j->by, TOLD_MAX_BYTES));
    return HFD_SLICE("changed back 5 times within an hour: left as it is until the next PUT");
}

/* "cluster.spec.region: ordered "eu", found "us", by a@b": the first of the news. */
static void say_first(struct judging *j, const struct told *t)
{
    struct hfd_buf *b = &j->first;

    hfd_buf_addf(b, "%.*s: ", HFD_FOREIGN_CUT(t->field, FIELD_MAX_BYTES));
    hfd_buf_addf(b, t->ordered.len > 0 ? "ordered %.*s" : "not ordered",
                 HFD_FOREIGN_CUT(t->ordered, TOLD_MAX_BYTES));
    hfd_buf_addf(b, t->found.len > 0 ? ", found %.*s" : ", not found",
                 HFD_FOREIGN_CUT(t->found, TOLD_MAX_BYTES));
    if (j->by.len > 0)
        hfd_buf_addf(b, ", by %.*s", HFD_FOREIGN_CUT(j->by, TOLD_MAX_BYTES));
}

/* Adds an item to the list. @param was  the same item of the last list; NULL = it is new */
static void add_item(struct judging *j, const struct told *t, const json_t *was)
{
    const hfd_slice by = was != NULL ? hfd_json_text(was, "by") : j->by;
    struct hfd_buf *b = &j->all;
    char at[HFD_TIME_TEXT_MAX];

    (void)hfd_time_format_s(j->c->now_us, at);
    hfd_buf_addc(b, j->count > 1 ? ',' : '[');
    hfd_buf_member_str(b, "{\"field\":", t->field);
    if (t->ordered.len > 0)
        hfd_buf_addf(b, ",\"ordered\":%.*s", HFD_SLICE_FMT(t->ordered));
    if (t->found.len > 0)
        hfd_buf_addf(b, ",\"found\":%.*s", HFD_SLICE_FMT(t->found));
    hfd_buf_lit(b, ",\"by\":");
    if (by.len > 0)
        hfd_buf_json_str(b, by);
    else
        hfd_buf_lit(b, "null");
    hfd_buf_member_str(b,
                       ",\"since\":", was != NULL ? hfd_json_text(was, "since") : hfd_slice_of(at));
    if (t->note.len > 0)
        hfd_buf_member_str(b, ",\"repair\":", t->note);
    hfd_buf_addc(b, '}');
}

/* Writes a value as JSON. Secrets are masked. The size stands for a large value. */
static hfd_rc show_value(const struct judging *j, const json_t *value, hfd_slice *out)
{
    struct hfd_buf b;

    *out = HFD_SLICE("");
    if (value == NULL)
        return HFD_OK;
    hfd_buf_init(&b, DOCUMENT_MAX_BYTES);
    hfd_json_dump_for_store(&b, value);
    if (b.rc == HFD_OK && b.len > VALUE_MAX_BYTES) {
        const size_t len = b.len;

        hfd_buf_reset(&b);
        hfd_buf_addf(&b, "\"(%zu bytes)\"", len);
    }
    hfd_buf_mask(&b, 0);
    return hfd_buf_to_arena(&b, j->c->mem, out, j->c->err);
}

/* Counts one field, and adds it to the list while there is room. */
static hfd_rc tell(struct judging *j, hfd_slice path, const json_t *ordered, const json_t *found)
{
    struct told t = {.field = j->prefix, .note = HFD_SLICE("")};
    const json_t *was;
    hfd_rc rc = show_value(j, ordered, &t.ordered);

    if (path.len > 0)
        t.field = hfd_arena_printf(j->c->mem, "%.*s.%.*s", HFD_SLICE_FMT(j->prefix),
                                   HFD_FOREIGN_CUT(path, FIELD_MAX_BYTES));
    if (rc == HFD_OK)
        rc = show_value(j, found, &t.found);
    if (rc != HFD_OK || t.field.p == NULL)
        return rc == HFD_OK ? fail_nomem(j->c) : rc;
    j->count++;
    if (ordered != NULL) {
        j->mendable++;
        t.note = plan_repair(j, t.field);
    }
    was = told_before(j, &t);
    if (was == NULL && j->news++ == 0)
        say_first(j, &t);
    if (j->count <= HFD_DRIFT_SHOWN_MAX)
        add_item(j, &t, was);
    return HFD_OK;
}

static hfd_rc compare(struct judging *j, hfd_slice path, const json_t *ordered,
                      const json_t *found);

/* The members that the order names. Others are none of its business. */
static hfd_rc compare_objects(struct judging *j, hfd_slice path, const json_t *ordered,
                              const json_t *found)
{
    json_t *all = (json_t *)(uintptr_t)ordered;
    hfd_rc rc = HFD_OK;

    for (void *i = json_object_iter(all); rc == HFD_OK && i != NULL;
         i = json_object_iter_next(all, i)) {
        const hfd_slice key = {json_object_iter_key(i), json_object_iter_key_len(i)};
        const hfd_slice below =
            hfd_arena_printf(j->c->mem, "%.*s.%.*s", HFD_SLICE_FMT(path), HFD_SLICE_FMT(key));

        rc = below.p != NULL ? compare(j, below, json_object_iter_value(i),
                                       json_object_getn(found, key.p, key.len))
                             : fail_nomem(j->c);
    }
    return rc;
}

static hfd_rc compare_arrays(struct judging *j, hfd_slice path, const json_t *ordered,
                             const json_t *found)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < json_array_size(ordered); i++) {
        const hfd_slice below = hfd_arena_printf(j->c->mem, "%.*s[%zu]", HFD_SLICE_FMT(path), i);

        rc = below.p != NULL
                 ? compare(j, below, json_array_get(ordered, i), json_array_get(found, i))
                 : fail_nomem(j->c);
    }
    return rc;
}

static hfd_rc compare(struct judging *j, hfd_slice path, const json_t *ordered, const json_t *found)
{
    int64_t work = INT64_MAX;

    if (is_ignored(j->c, j->kind, path) || hfd_slice_is(path, "labels." HFD_LABEL_UNCOUNTED) ||
        hfd_slice_is(path, "labels." HFD_LABEL_OWNER))
        return HFD_OK;
    if (json_is_object(ordered) && json_is_object(found))
        return compare_objects(j, path, ordered, found);
    if (json_is_array(ordered) && json_is_array(found) &&
        json_array_size(ordered) == json_array_size(found))
        return compare_arrays(j, path, ordered, found);
    if (found != NULL && hfd_json_same(ordered, found, &work))
        return HFD_OK;
    return tell(j, path, ordered, found);
}

static hfd_rc compare_part(struct judging *j, const struct hfd_part *p)
{
    struct hfd_fleet_row fleet;
    struct sides sides = {0};
    hfd_rc rc = HFD_OK;

    if (p->row.aside.len == 0 || p->row.leaving || p->row.pending || !p->view.exists ||
        p->view.deleting)
        return HFD_OK;
    rc = hfd_fleet_row_get(j->c->tx, p->row.fleet_id, j->c->mem, &fleet, j->c->err);
    if (rc == HFD_OK)
        rc = read_sides(j->c, &p->row, &fleet, &sides);
    j->kind = p->row.kind;
    j->by = fleet.updated_by;
    j->prefix = prefix_of(j->c, j->row->kind, j->kind, p->row.name);
    if (rc == HFD_OK && j->prefix.p == NULL)
        rc = fail_nomem(j->c);
    for (size_t i = 0; rc == HFD_OK && i < DOCS; i++)
        rc = compare(j, hfd_slice_of(doc_names[i]), sides.ordered[i], sides.found[i]);
    free_sides(&sides);
    return rc;
}

/* Adds a nodepool in our cluster that no order has, with its spec. */
static hfd_rc tell_stranger(struct judging *j, const struct hfd_part *p)
{
    struct hfd_fleet_row fleet;
    json_t *spec = NULL;
    hfd_rc rc;

    if (p->row.guresid.len > 0 || p->view.deleting)
        return HFD_OK;
    rc = hfd_fleet_row_get(j->c->tx, p->row.fleet_id, j->c->mem, &fleet, j->c->err);
    if (rc == HFD_OK)
        rc = parse_stored(j->c, fleet.spec, &spec);
    j->kind = HFD_KIND_NODEPOOL;
    j->by = fleet.updated_by;
    j->prefix = prefix_of(j->c, HFD_KIND_CLUSTER, j->kind, fleet.name);
    if (rc == HFD_OK)
        rc = j->prefix.p != NULL ? tell(j, HFD_SLICE(""), NULL, spec) : fail_nomem(j->c);
    json_decref(spec);
    return rc;
}

static hfd_rc compare_all(struct judging *j, const struct hfd_parts *parts)
{
    struct hfd_parts strangers = {NULL, 0};
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < parts->count; i++)
        rc = compare_part(j, &parts->items[i]);
    if (rc == HFD_OK && j->row->drift.len > 0)
        rc = hfd_parts_load_strangers(j->c, parts, &strangers);
    for (size_t i = 0; rc == HFD_OK && i < strangers.count; i++)
        rc = tell_stranger(j, &strangers.items[i]);
    return rc;
}

static hfd_rc parse_kept(const struct hfd_ctx *c, hfd_slice text, json_t **out)
{
    *out = NULL;
    return text.len > 0 && !hfd_slice_eq(text, HFD_DRIFT_UNKNOWN) ? parse_stored(c, text, out)
                                                                  : HFD_OK;
}

/* When the next repair is due, and those of before. A repair that is due already stays so. */
static hfd_rc take_repairs(const struct judging *j, struct hfd_resource_row *row)
{
    const struct hfd_ctx *c = j->c;
    const int64_t at_us = c->now_us + (j->tried > 0 ? HFD_DRIFT_BACKOFF_US << (j->tried - 1) : 0);

    if (j->repairable == 0)
        row->repair_us = 0;
    else if (row->repair_us == 0 || row->repair_us > at_us)
        row->repair_us = at_us;
    if (json_object_size(j->repairs) == 0)
        return HFD_OK;
    row->repairs = hfd_json_dump_arena(c->mem, j->repairs);
    return row->repairs.p != NULL ? HFD_OK : fail_nomem(c);
}

/* From the judgement to the row. */
static hfd_rc take(struct judging *j, struct hfd_resource_row *row, struct hfd_drift_news *news)
{
    const struct hfd_ctx *c = j->c;
    const bool was = row->drift_count > 0, more = (int64_t)j->count > row->drift_count;
    hfd_rc rc;

    if (j->count > 0)
        hfd_buf_addc(&j->all, ']');
    if (j->count > 0 && (j->news > 0 || more)) {
        if (j->news > 1)
            hfd_buf_addf(&j->first, "; and %zu more", j->news - 1);
        news->what = "drifted";
    } else if (j->count == 0 && was && c->driver->drift != HFD_DRIFT_IGNORE) {
        news->what = "mended";
    }
    rc = hfd_buf_to_arena(&j->all, c->mem, &row->drift, c->err);
    if (rc == HFD_OK)
        rc = hfd_buf_to_arena(&j->first, c->mem, &news->text, c->err);
    row->drift_count = (int64_t)j->count;
    row->mendable = j->mendable > 0;
    news->gave_up = j->gave_up;
    return rc == HFD_OK ? take_repairs(j, row) : rc;
}

hfd_rc hfd_drift_judge(const struct hfd_ctx *c, const struct hfd_parts *parts,
                       struct hfd_resource_row *row, struct hfd_drift_news *news)
{
    struct judging j = {.c = c, .row = row};
    bool aside = row->drift.len > 0;
    hfd_rc rc;

    *news = (struct hfd_drift_news){.text = HFD_SLICE(""), .gave_up = HFD_SLICE("")};
    for (size_t i = 0; i < parts->count; i++)
        aside = aside || parts->items[i].row.aside.len > 0;
    if (!aside)
        return HFD_OK;
    hfd_buf_init(&j.all, DOCUMENT_MAX_BYTES);
    hfd_buf_init(&j.first, 4 * TEXT_MAX_BYTES);
    rc = parse_kept(c, row->drift, &j.before);
    if (rc == HFD_OK)
        rc = parse_kept(c, row->repairs, &j.repairs);
    if (rc == HFD_OK && j.repairs == NULL && (j.repairs = json_object()) == NULL)
        rc = fail_nomem(c);
    if (rc == HFD_OK && c->driver->drift != HFD_DRIFT_IGNORE)
        rc = compare_all(&j, parts);
    if (rc == HFD_OK)
        rc = take(&j, row, news);
    hfd_buf_fini(&j.all);
    hfd_buf_fini(&j.first);
    json_decref(j.before);
    json_decref(j.repairs);
    return rc;
}

/* True for a nodepool of a cluster that is there, which others removed or are removing. */
static bool is_gone(const struct hfd_parts *parts, const struct hfd_part *p)
{
    const struct hfd_part *main = hfd_parts_main(parts);

    return main->row.kind == HFD_KIND_CLUSTER && main->view.exists && !main->view.deleting &&
           p->row.kind == HFD_KIND_NODEPOOL && !p->row.leaving &&
           (!p->view.exists || p->view.deleting);
}

hfd_rc hfd_drift_judge_gone(const struct hfd_ctx *c, const struct hfd_parts *parts,
                            struct hfd_resource_row *row)
{
    struct judging j = {.c = c, .row = row};
    hfd_rc rc = c->driver->drift == HFD_DRIFT_REPAIR ? parse_kept(c, row->repairs, &j.repairs)
                                                     : HFD_NOT_FOUND;

    row->repair_us = 0;
    for (size_t i = 0; rc == HFD_OK && i < parts->count; i++) {
        const struct hfd_part *p = &parts->items[i];
        const hfd_slice field = prefix_of(c, row->kind, p->row.kind, p->row.name);
        bool gave_up;
        size_t tried;

        if (!is_gone(parts, p))
            continue;
        if (field.p == NULL)
            rc = fail_nomem(c);
        tried = repairs_of(&j, field, &gave_up);
        j.repairable += tried < HFD_DRIFT_REPAIRS_MAX;
        j.tried = tried > j.tried ? tried : j.tried;
    }
    if (rc == HFD_OK)
        rc = take_repairs(&j, row);
    json_decref(j.repairs);
    return rc == HFD_NOT_FOUND ? HFD_OK : rc;
}

void hfd_drift_format(struct hfd_buf *b, const struct hfd_resource_row *row)
{
    if (row->drift_count > 0)
        hfd_buf_addf(b, ",\"drift\":%.*s,\"drift_count\":%lld", HFD_SLICE_FMT(row->drift),
                     (long long)row->drift_count);
}

/* ---- what is written ---- */

/* The place of a value in a document. */
struct place {
    json_t *in; /* the object that has it, or would have it */
    hfd_slice key;
};

/* Goes down a path such as spec.a.b, without its first word. Everything behind "labels." is a key.
 */
static bool find_place(json_t *doc, hfd_slice path, bool labels, struct place *out)
{
    const char *dot;

    *out = (struct place){doc, path};
    while (!labels && json_is_object(out->in) &&
           (dot = memchr(out->key.p, '.', out->key.len)) != NULL) {
        const size_t len = (size_t)(dot - out->key.p);

        out->in = json_object_getn(out->in, out->key.p, len);
        out->key = (hfd_slice){dot + 1, out->key.len - len - 1};
    }
    return json_is_object(out->in) && out->key.len > 0;
}

/*
 * Leaves one field of `want` as it is found, if the order has it as the last one had it.
 * @param path  "spec.replicas"
 */
static hfd_rc leave_field(const struct hfd_ctx *c, const struct sides *s, json_t *const want[DOCS],
                          hfd_slice path, bool *left)
{
    for (size_t i = 0; i < DOCS; i++) {
        const size_t len = strlen(doc_names[i]);
        const hfd_slice rest = {path.p + len + 1, path.len > len ? path.len - len - 1 : 0};
        struct place ordered, found, wanted;
        int64_t work = INT64_MAX;
        json_t *is, *was;

        if (rest.len == 0 || !hfd_slice_starts(path, hfd_slice_of(doc_names[i])) ||
            path.p[len] != '.' || !find_place(s->ordered[i], rest, i == 1, &ordered) ||
            !find_place(s->found[i], rest, i == 1, &found) ||
            !find_place(want[i], rest, i == 1, &wanted))
            continue;
        was = json_object_getn(ordered.in, ordered.key.p, ordered.key.len);
        is = json_object_getn(wanted.in, wanted.key.p, wanted.key.len);
        if (was == NULL || is == NULL || !hfd_json_same(was, is, &work))
            continue;
        is = json_object_getn(found.in, found.key.p, found.key.len);
        if (is == NULL ? json_object_deln(wanted.in, wanted.key.p, wanted.key.len) != 0
                       : json_object_setn(wanted.in, wanted.key.p, wanted.key.len, is) != 0)
            return fail_nomem(c);
        *left = true;
    }
    return HFD_OK;
}

/* driver.drift_ignore, and the fields of which repair was given up. */
static hfd_rc leave_fields(const struct hfd_ctx *c, const struct hfd_drift_part *p,
                           const struct sides *s, json_t *const want[DOCS], bool *left)
{
    const hfd_slice word = hfd_slice_of(hfd_kind_word(p->row->kind));
    hfd_slice prefix = prefix_of(c, p->resource, p->row->kind, p->row->name);
    json_t *repairs = NULL;
    hfd_rc rc = prefix.p != NULL ? parse_kept(c, p->given_up, &repairs) : fail_nomem(c);

    for (size_t i = 0; rc == HFD_OK && i < c->driver->drift_ignore_count; i++) {
        const hfd_slice pattern = c->driver->drift_ignore[i];

        if (hfd_slice_starts(pattern, word) && pattern.len > word.len)
            rc = leave_field(c, s, want,
                             (hfd_slice){pattern.p + word.len + 1, pattern.len - word.len - 1},
                             left);
    }
    for (void *i = json_object_iter(repairs); rc == HFD_OK && i != NULL;
         i = json_object_iter_next(repairs, i)) {
        hfd_slice field = {json_object_iter_key(i), json_object_iter_key_len(i)};
        const char *array;

        if (!json_is_true(json_object_iter_value(i)) || !hfd_slice_starts(field, prefix) ||
            field.len == prefix.len)
            continue;
        field = (hfd_slice){field.p + prefix.len + 1, field.len - prefix.len - 1};
        array = memchr(field.p, '[', field.len);
        if (array != NULL) /* a value in an array is left with all of it */
            field.len = (size_t)(array - field.p);
        rc = leave_field(c, s, want, field, left);
    }
    json_decref(repairs);
    return rc;
}

/* Makes the documents to write of those that are wanted. */
static hfd_rc merge(const struct hfd_ctx *c, const struct hfd_drift_part *p, const struct sides *s,
                    const struct hfd_input_part *want, struct hfd_drift_wish *out)
{
    json_t *docs[DOCS] = {NULL, NULL};
    bool left = false;
    hfd_rc rc = hfd_json_parse(want->spec, &docs[0], c->err);

    if (rc == HFD_OK)
        rc = hfd_json_parse(want->labels, &docs[1], c->err);
    if (rc == HFD_OK)
        rc = leave_fields(c, p, s, docs, &left);
    if (rc == HFD_OK && left) {
        out->aside = make_aside(c, want->spec, want->labels);
        out->spec = hfd_json_dump_arena(c->mem, docs[0]);
        out->labels = hfd_json_dump_arena(c->mem, docs[1]);
        if (out->aside.p == NULL || out->spec.p == NULL || out->labels.p == NULL)
            rc = fail_nomem(c);
    }
    json_decref(docs[0]);
    json_decref(docs[1]);
    return rc;
}

hfd_rc hfd_drift_wish(const struct hfd_ctx *c, const struct hfd_drift_part *p,
                      const struct hfd_input_part *want, struct hfd_drift_wish *out)
{
    struct sides sides;
    hfd_rc rc;

    *out = (struct hfd_drift_wish){.spec = want->spec,
                                   .labels = want->labels,
                                   .found_spec = p->fleet->spec,
                                   .found_labels = p->fleet->labels,
                                   .aside = HFD_SLICE("")};
    if (p->row->aside.len == 0)
        return HFD_OK;
    rc = read_sides(c, p->row, p->fleet, &sides);
    if (rc == HFD_OK) {
        out->found_spec = hfd_json_dump_arena(c->mem, sides.found[0]);
        out->found_labels = hfd_json_dump_arena(c->mem, sides.found[1]);
        rc = out->found_spec.p != NULL && out->found_labels.p != NULL ? HFD_OK : fail_nomem(c);
    }
    if (rc == HFD_OK && (c->driver->drift_ignore_count > 0 || p->given_up.len > 0))
        rc = merge(c, p, &sides, want, out);
    free_sides(&sides);
    return rc;
}

/* ---- repair ---- */

/* A part as it was ordered. */
static hfd_rc order_part(const struct hfd_ctx *c, const struct hfd_part *p,
                         struct hfd_input_part *out)
{
    struct hfd_fleet_row fleet = {.spec = HFD_SLICE("{}"), .labels = HFD_SLICE("{}")};
    struct sides s = {0};
    bool kept;
    hfd_rc rc = hfd_fleet_row_get(c->tx, p->row.fleet_id, c->mem, &fleet, c->err);

    if (rc == HFD_NOT_FOUND) {
        rc = keeps_order(c, &p->row, &kept);
        if (rc == HFD_OK && !kept)
            return hfd_fail(
                c->err, HFD_INVALID,
                "nodepool '%.*s' was removed, and its order is not kept: order it again",
                HFD_SLICE_FMT(p->row.name));
    }
    if (rc == HFD_OK)
        rc = read_sides(c, &p->row, &fleet, &s);
    if (rc == HFD_OK) {
        *out = (struct hfd_input_part){.name = p->row.name,
                                       .name_given = true,
                                       .spec = hfd_json_dump_arena(c->mem, s.ordered[0]),
                                       .labels = hfd_json_dump_arena(c->mem, s.ordered[1])};
        rc = out->spec.p != NULL && out->labels.p != NULL ? HFD_OK : fail_nomem(c);
    }
    free_sides(&s);
    return rc;
}

hfd_rc hfd_drift_order(const struct hfd_ctx *c, const struct hfd_parts *parts,
                       const struct hfd_resource_row *row, struct hfd_input *out)
{
    hfd_rc rc = HFD_OK;

    *out = (struct hfd_input){.type = row->type,
                              .kind = row->kind,
                              .cluster_id = row->cluster_id,
                              .protect = row->protect,
                              .credentials = HFD_SLICE(""),
                              .canonical = HFD_SLICE("")};
    out->nodepools = hfd_arena_array(c->mem, parts->count + 1, sizeof(*out->nodepools));
    if (out->nodepools == NULL)
        return fail_nomem(c);
    for (size_t i = 0; rc == HFD_OK && i < parts->count; i++) {
        const struct hfd_part *p = &parts->items[i];

        if (!p->row.leaving)
            rc = order_part(c, p,
                            p->row.kind == HFD_KIND_CLUSTER
                                ? &out->cluster
                                : &out->nodepools[out->nodepool_count++]);
    }
    return rc;
}

/* Adds the time of a repair of one field. */
static hfd_rc add_repair(const struct hfd_ctx *c, json_t *repairs, const char *field)
{
    json_t *times = json_object_get(repairs, field);

    if (json_is_true(times)) /* it was given up */
        return HFD_OK;
    if (times == NULL) {
        times = json_array();
        if (json_object_set_new(repairs, field, times) != 0)
            return fail_nomem(c);
    }
    return json_array_append_new(times, json_integer(c->now_us)) == 0 ? HFD_OK : fail_nomem(c);
}

hfd_rc hfd_drift_note_repair(const struct hfd_ctx *c, const struct hfd_parts *parts,
                             struct hfd_resource_row *row)
{
    json_t *items = NULL, *repairs = NULL, *item;
    hfd_rc rc = parse_kept(c, row->drift, &items);
    size_t i;

    if (rc == HFD_OK)
        rc = parse_kept(c, row->repairs, &repairs);
    if (rc == HFD_OK && repairs == NULL && (repairs = json_object()) == NULL)
        rc = fail_nomem(c);
    json_array_foreach (items, i, item) {
        if (rc == HFD_OK && json_object_get(item, "ordered") != NULL)
            rc = add_repair(c, repairs, hfd_json_cstr(item, "field"));
    }
    for (i = 0; rc == HFD_OK && i < parts->count; i++)
        if (is_gone(parts, &parts->items[i])) {
            const hfd_slice field =
                prefix_of(c, row->kind, HFD_KIND_NODEPOOL, parts->items[i].row.name);

            rc = field.p != NULL ? add_repair(c, repairs, field.p) : fail_nomem(c);
        }
    if (rc == HFD_OK) {
        row->repairs = hfd_json_dump_arena(c->mem, repairs);
        rc = row->repairs.p != NULL ? HFD_OK : fail_nomem(c);
    }
    row->repair_us = 0;
    json_decref(items);
    json_decref(repairs);
    return rc;
}
