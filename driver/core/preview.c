/* See preview.h. */
#include "driver/core/preview.h"

#include "driver/base/check.h"
#include "driver/base/foreign.h"
#include "driver/base/jsonx.h"
#include "driver/core/drift.h"
#include "driver/core/driver.h"
#include "schemas/validate.h"
#include "store/rows_fleet.h"

/* Fields that are named of one part; further ones are left out. */
#define HFD_PREVIEW_FIELDS_MAX 100
#define FIELD_MAX_BYTES 200

/* The fields of one part that differ. */
struct differences {
    const struct hfd_ctx *c;
    hfd_slice *fields;
    size_t count;
};

static hfd_rc fail_nomem(const struct hfd_ctx *c)
{
    return hfd_fail_nomem(c->err, "compare an input with HyperFleet");
}

hfd_rc hfd_preview_init(const struct hfd_ctx *c, size_t room, struct hfd_preview *out)
{
    *out = (struct hfd_preview){.room = room};
    out->parts = hfd_arena_array(c->mem, room > 0 ? room : 1, sizeof(*out->parts));
    return out->parts != NULL ? HFD_OK : fail_nomem(c);
}

static struct hfd_preview_part *add(struct hfd_preview *preview, enum hfd_kind kind, hfd_slice name,
                                    const char *action)
{
    struct hfd_preview_part *p = &preview->parts[preview->count];

    if (HFD_NEVER(preview->count == preview->room))
        return NULL;
    preview->count++;
    *p = (struct hfd_preview_part){.kind = kind, .name = name, .action = action};
    return p;
}

void hfd_preview_note(struct hfd_preview *preview, enum hfd_kind kind, hfd_slice name,
                      const char *action)
{
    (void)add(preview, kind, name, action);
}

static hfd_rc name_field(struct differences *d, hfd_slice path)
{
    const hfd_slice text = hfd_arena_show(d->c->mem, path, FIELD_MAX_BYTES);

    if (text.p == NULL)
        return fail_nomem(d->c);
    d->fields[d->count++] = text;
    return HFD_OK;
}

static hfd_rc compare(struct differences *d, hfd_slice path, const json_t *was, const json_t *want);

static hfd_rc compare_member(struct differences *d, hfd_slice path, hfd_slice key,
                             const json_t *was, const json_t *want)
{
    const hfd_slice below =
        hfd_arena_printf(d->c->mem, "%.*s.%.*s", HFD_FOREIGN_CUT(path, FIELD_MAX_BYTES),
                         HFD_FOREIGN_CUT(key, FIELD_MAX_BYTES));

    return below.p != NULL ? compare(d, below, was, want) : fail_nomem(d->c);
}

/* Objects are compared by member: first those that are wanted, then those that go. */
static hfd_rc compare_objects(struct differences *d, hfd_slice path, const json_t *was,
                              const json_t *want)
{
    const json_t *const sides[] = {want, was};
    hfd_rc rc = HFD_OK;

    for (size_t side = 0; side < 2; side++) {
        json_t *all = (json_t *)(uintptr_t)sides[side];

        for (void *i = json_object_iter(all); rc == HFD_OK && i != NULL;
             i = json_object_iter_next(all, i)) {
            const hfd_slice key = {json_object_iter_key(i), json_object_iter_key_len(i)};
            const json_t *a = json_object_getn(was, key.p, key.len);
            const json_t *b = json_object_getn(want, key.p, key.len);

            if (side == 0 || b == NULL)
                rc = compare_member(d, path, key, a, b);
        }
    }
    return rc;
}

static hfd_rc compare(struct differences *d, hfd_slice path, const json_t *was, const json_t *want)
{
    int64_t work = INT64_MAX;

    if (d->count == HFD_PREVIEW_FIELDS_MAX)
        return HFD_OK;
    if (json_is_object(was) && json_is_object(want))
        return compare_objects(d, path, was, want);
    if (was != NULL && want != NULL && hfd_json_same(was, want, &work))
        return HFD_OK;
    return name_field(d, path);
}

/* Compares two documents. A stored one that cannot be read counts as different. */
static hfd_rc compare_texts(struct differences *d, const char *name, hfd_slice was, hfd_slice want)
{
    json_t *a = NULL, *b = NULL;
    hfd_rc rc;

    if (hfd_slice_eq(was, want))
        return HFD_OK;
    rc = hfd_json_parse(want, &b, d->c->err);
    if (rc == HFD_OK && hfd_json_parse(was, &a, NULL) == HFD_NOMEM)
        rc = fail_nomem(d->c);
    if (rc == HFD_OK)
        rc = compare(d, hfd_slice_of(name), a, b);
    json_decref(a);
    json_decref(b);
    return rc;
}

hfd_rc hfd_preview_patch(const struct hfd_ctx *c, const struct hfd_fleet_row *row,
                         const struct hfd_drift_wish *want, struct hfd_preview *preview)
{
    struct differences d = {.c = c};
    struct hfd_preview_part *p;
    hfd_rc rc;

    d.fields = hfd_arena_array(c->mem, HFD_PREVIEW_FIELDS_MAX, sizeof(*d.fields));
    if (d.fields == NULL)
        return fail_nomem(c);
    rc = compare_texts(&d, "spec", want->found_spec, want->spec);
    if (rc == HFD_OK)
        rc = compare_texts(&d, "labels", want->found_labels, want->labels);
    if (rc != HFD_OK || d.count == 0)
        return rc;
    p = add(preview, row->kind, row->name, "update");
    if (p != NULL) {
        p->fields = d.fields;
        p->field_count = d.count;
    }
    return HFD_OK;
}
