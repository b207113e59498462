/* See preview.h. */
#include "driver/core/preview.h"

#include "driver/base/check.h"
#include "driver/base/foreign.h"
#include "driver/base/jsonx.h"
#include "driver/core/drift.h"
#include "driver/core/driver.h"
#include "driver/core/keyring.h"
#include "schemas/validate.h"
#include "store/rows_fleet.h"

#include <sodium.h>

/* Fields that are named of one part; further ones are left out. */
#define HFD_PREVIEW_FIELDS_MAX 100
#define FIELD_MAX_BYTES 200
#define PLAN_PREFIX "plan-"

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
                      const char *action, int64_t generation)
{
    struct hfd_preview_part *p = add(preview, kind, name, action);

    if (p != NULL)
        p->generation = generation;
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
        p->generation = row->generation;
    }
    return HFD_OK;
}

/* ---- plans ---- */

#define PLAN_BYTES 16
#define PLAN_TEXT_MAX_BYTES ((size_t)16 * 1024 * 1024)
#define TOLD_MAX_BYTES ((size_t)400)

static bool creates_only(const struct hfd_preview *changes)
{
    for (size_t i = 0; i < changes->count; i++)
        if (strcmp(changes->parts[i].action, "create") != 0)
            return false;
    return true;
}

/* Names of new parts follow from the input, or from a GUResID that need not be known yet. */
static void add_part(struct hfd_buf *b, const struct hfd_preview_part *p)
{
    hfd_buf_addf(b, "%d %s %lld", (int)p->kind, p->action, (long long)p->generation);
    hfd_buf_member_str(b, " ", p->name);
    for (size_t i = 0; i < p->field_count; i++)
        hfd_buf_member_str(b, " ", p->fields[i]);
    hfd_buf_addc(b, '\n');
}

hfd_rc hfd_put_plan_name(const struct hfd_ctx *c, const struct hfd_put_plan *plan, hfd_slice *out)
{
    const bool new = strcmp(plan->action, "create") == 0 && creates_only(plan->changes);
    unsigned char digest[HFD_DIGEST_BYTES];
    char hex[2 * PLAN_BYTES + 1];
    struct hfd_buf b;
    hfd_slice text;
    hfd_rc rc;

    hfd_buf_init(&b, PLAN_TEXT_MAX_BYTES);
    hfd_buf_member_str(&b, plan->action, plan->canonical);
    hfd_buf_member_str(&b, "\n", plan->was);
    hfd_buf_member_str(&b, " ", plan->protect);
    hfd_buf_addc(&b, '\n');
    for (size_t i = 0; !new &&i < plan->changes->count; i++)
        add_part(&b, &plan->changes->parts[i]);
    rc = hfd_buf_finish(&b, &text, c->err);
    if (rc == HFD_OK) {
        hfd_keyring_digest(c->driver->ring, text, digest);
        (void)sodium_bin2hex(hex, sizeof(hex), digest + sizeof(digest) - PLAN_BYTES, PLAN_BYTES);
        *out = hfd_arena_printf(c->mem, PLAN_PREFIX "%s", hex);
        rc = out->p != NULL ? HFD_OK : hfd_fail_nomem(c->err, "name a plan");
    }
    hfd_buf_fini(&b);
    return rc;
}

bool hfd_put_plan_is_asked(hfd_slice if_match)
{
    return if_match.len > 0 &&
           memmem(if_match.p, if_match.len, "\"" PLAN_PREFIX, sizeof("\"" PLAN_PREFIX) - 1) != NULL;
}

hfd_rc hfd_put_plan_fail(const struct hfd_ctx *c, const struct hfd_put_plan *now)
{
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, 4 * TOLD_MAX_BYTES);
    for (size_t i = 0; i < now->changes->count && b.len < TOLD_MAX_BYTES; i++) {
        const struct hfd_preview_part *p = &now->changes->parts[i];

        hfd_buf_addf(&b, "%s%s %s '%.*s'", i > 0 ? ", " : ": ", p->action, hfd_kind_word(p->kind),
                     HFD_FOREIGN_CUT(p->name, FIELD_MAX_BYTES));
        if (p->field_count > 0)
            hfd_buf_addf(&b, " (%.*s%s)", HFD_FOREIGN_CUT(p->fields[0], FIELD_MAX_BYTES),
                         p->field_count > 1 ? " and others" : "");
    }
    rc = b.rc != HFD_OK ? hfd_fail_nomem(c->err, "compare a plan")
                        : hfd_fail(c->err, HFD_PRECONDITION,
                                   "If-Match: this plan does not hold any more, and nothing was "
                                   "done. The action would now be %s%.*s",
                                   now->action, HFD_SLICE_FMT(hfd_buf_slice(&b)));
    hfd_buf_fini(&b);
    return rc;
}
