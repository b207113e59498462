/* See protect.h. */
#include "driver/core/protect.h"

#include "driver/base/foreign.h"
#include "driver/base/jsonx.h"
#include "driver/core/cookie.h"
#include "store/rows_fleet.h"

#define SHOWN_MAX 60 /* of a label in a message */

/* ---- what an order says ---- */

/* A label with a line end is left out: no setting can name it. */
bool hfd_protect_note(json_t *set, const json_t *labels)
{
    json_t *all = (json_t *)(uintptr_t)labels;
    struct hfd_buf b;
    bool ok = true;

    hfd_buf_init(&b, SIZE_MAX);
    for (void *i = json_object_iter(all); ok && i != NULL; i = json_object_iter_next(all, i)) {
        const json_t *value = json_object_iter_value(i);

        hfd_buf_reset(&b);
        hfd_buf_add(&b, (hfd_slice){json_object_iter_key(i), json_object_iter_key_len(i)});
        hfd_buf_addc(&b, '=');
        hfd_buf_add(&b, (hfd_slice){json_string_value(value), json_string_length(value)});
        if (b.rc == HFD_OK && memchr(b.p, '\n', b.len) != NULL)
            continue;
        ok = b.rc == HFD_OK && json_object_setn_new(set, b.p, b.len, json_true()) == 0;
    }
    hfd_buf_fini(&b);
    return ok;
}

hfd_rc hfd_protect_format(bool protect, json_t *labels, struct hfd_arena *mem, hfd_slice *out,
                          struct hfd_err *err)
{
    struct hfd_buf b;

    hfd_buf_init(&b, mem->max_bytes);
    hfd_buf_add(&b, protect ? HFD_SLICE(HFD_PROTECT_YES) : HFD_SLICE(HFD_PROTECT_NO));
    for (void *i = json_object_iter(labels); i != NULL; i = json_object_iter_next(labels, i)) {
        hfd_buf_add(&b, (hfd_slice){json_object_iter_key(i), json_object_iter_key_len(i)});
        hfd_buf_addc(&b, '\n');
    }
    return hfd_buf_to_arena(&b, mem, out, err);
}

bool hfd_protect_is_ordered(hfd_slice protect)
{
    return protect.len > 0 && !hfd_slice_starts(protect, HFD_SLICE(HFD_PROTECT_NO));
}

static bool has_line(hfd_slice text, hfd_slice line)
{
    while (text.len > 0) {
        const char *end = memchr(text.p, '\n', text.len);
        const size_t len = end != NULL ? (size_t)(end - text.p) : text.len;

        if (hfd_slice_eq((hfd_slice){text.p, len}, line))
            return true;
        text = (hfd_slice){text.p + len + (end != NULL), text.len - len - (end != NULL)};
    }
    return false;
}

hfd_slice hfd_protect_by(const struct hfd_driver *d, hfd_slice protect)
{
    if (hfd_protect_is_ordered(protect))
        return HFD_SLICE("protect");
    for (size_t i = 0; i < d->protect_label_count; i++)
        if (has_line(protect, d->protect_labels[i]))
            return d->protect_labels[i];
    return HFD_SLICE_NONE;
}

/* ---- what is stored ---- */

/* The labels that HyperFleet has, in the form of the row. */
static hfd_rc read_labels(const struct hfd_ctx *c, hfd_slice guresid, json_t *set, hfd_slice *out)
{
    struct hfd_part_list parts;
    hfd_rc rc = hfd_part_row_list(c->tx, guresid, c->mem, &parts, c->err);

    for (size_t i = 0; rc == HFD_OK && i < parts.count; i++) {
        struct hfd_fleet_row row;
        json_t *labels = NULL;

        if (parts.rows[i].leaving)
            continue;
        rc = hfd_fleet_row_get(c->tx, parts.rows[i].fleet_id, c->mem, &row, c->err);
        if (rc == HFD_OK)
            rc = hfd_json_parse(row.labels, &labels, c->err);
        if (rc == HFD_OK && !hfd_protect_note(set, labels))
            rc = hfd_fail_nomem(c->err, "read the labels of a resource");
        json_decref(labels);
        rc = rc == HFD_NOT_FOUND ? HFD_OK : rc;
    }
    return rc == HFD_OK ? hfd_protect_format(false, set, c->mem, out, c->err) : rc;
}

hfd_rc hfd_protect_read(const struct hfd_ctx *c, const struct hfd_resource_row *row, hfd_slice *out)
{
    hfd_slice protect = row->protect;
    hfd_rc rc = HFD_OK;
    json_t *set;

    if (protect.len == 0 && c->driver->protect_label_count > 0) {
        set = json_object();
        rc = set != NULL ? read_labels(c, row->guresid, set, &protect)
                         : hfd_fail_nomem(c->err, "read the labels of a resource");
        json_decref(set);
    }
    *out = rc == HFD_OK ? hfd_protect_by(c->driver, protect) : HFD_SLICE_NONE;
    return rc;
}

/* ---- what is refused ---- */

hfd_rc hfd_protect_check_row(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                             const char *what)
{
    hfd_slice by;
    hfd_rc rc;

    if (row->state == HFD_STATE_DELETING)
        return HFD_OK;
    rc = hfd_protect_read(c, row, &by);
    if (rc != HFD_OK || by.p == NULL)
        return rc;
    if (hfd_slice_is(by, "protect"))
        return hfd_fail(c->err, HFD_PROTECTED,
                        "%sresource '%.*s' is protected: nothing was deleted. Order it again with "
                        "driver.values.protect: false, then repeat this",
                        what, HFD_SLICE_FMT(row->guresid));
    return hfd_fail(c->err, HFD_PROTECTED,
                    "%sresource '%.*s' is protected by its label %.*s: nothing was deleted. Order "
                    "it again without it, or change driver.protect_labels, then repeat this",
                    what, HFD_SLICE_FMT(row->guresid), HFD_FOREIGN_CUT(by, SHOWN_MAX));
}

hfd_rc hfd_protect_check_fleet(const struct hfd_ctx *c, enum hfd_kind kind, hfd_slice id)
{
    struct hfd_resource_list list = {.count = 0};
    struct hfd_resource_row row;
    struct hfd_part_row part;
    hfd_rc rc;

    if (kind == HFD_KIND_CLUSTER) {
        rc = hfd_resource_row_of_cluster(c->tx, id, c->mem, &list, c->err);
        for (size_t i = 0; rc == HFD_OK && i < list.count; i++)
            rc = hfd_protect_check_row(c, &list.rows[i], "");
        return rc;
    }
    rc = hfd_part_row_by_fleet(c->tx, id, c->mem, &part, c->err);
    if (rc == HFD_OK)
        rc = hfd_resource_row_get(c->tx, part.guresid, c->mem, &row, c->err);
    if (rc == HFD_NOT_FOUND)
        return HFD_OK;
    return rc == HFD_OK ? hfd_protect_check_row(c, &row, "") : rc;
}

hfd_rc hfd_protect_check(const struct hfd_ctx *c, const struct hfd_resource_row *row,
                         const char *what)
{
    const hfd_rc rc = hfd_protect_check_row(c, row, what);

    if (rc != HFD_OK || row->kind != HFD_KIND_CLUSTER || row->cluster_id.len == 0)
        return rc;
    return hfd_protect_check_fleet(c, HFD_KIND_CLUSTER, row->cluster_id);
}
