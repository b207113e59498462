/* The order of lists. See search_order.h. */
#include "driver/fleet/search_order.h"

#include "driver/fleet/search_field.h"

#define ORDER_MAX 8
#define LABELS HFD_SLICE("labels.")

static hfd_rc parse_item(const struct hfd_order_text *in, hfd_slice item, struct hfd_order *out,
                         struct hfd_err *err)
{
    const char *space = memchr(item.p, ' ', item.len);
    hfd_slice direction = in->direction, what = item;

    if (space != NULL) {
        what.len = (size_t)(space - item.p);
        direction = hfd_lex_trim((hfd_slice){space, item.len - what.len});
        if (!hfd_slice_is(direction, "asc") && !hfd_slice_is(direction, "desc"))
            return hfd_fail_field(err, HFD_BAD_REQUEST, "orderBy", "bad order value '%.*s'",
                                  (int)(item.len < 100 ? item.len : 100), item.p);
    }
    *out = (struct hfd_order){.descending = hfd_slice_is(direction, "desc")};
    if (in->of_reports && hfd_field_report_column(what, &out->field))
        return HFD_OK;
    if (hfd_slice_starts(what, LABELS) && !in->of_reports) {
        out->field = HFD_FIELD_LABEL;
        out->name = (hfd_slice){what.p + LABELS.len, what.len - LABELS.len};
        return hfd_field_check_label("orderBy", out->name, err);
    }
    if (in->of_reports || !hfd_field_column(in->kind, what, &out->field))
        return hfd_fail_field(err, HFD_BAD_REQUEST, "orderBy", "%.*s is not a valid field name",
                              (int)(what.len < 100 ? what.len : 100), what.p);
    return HFD_OK;
}

hfd_rc hfd_search_order(const struct hfd_order_text *in, struct hfd_arena *mem,
                        struct hfd_orders *out, struct hfd_err *err)
{
    struct hfd_order *items = hfd_arena_array(mem, ORDER_MAX, sizeof(*items));
    hfd_slice text = hfd_lex_trim(in->by);
    size_t n = 0;

    *out = (struct hfd_orders){items, 0};
    if (items == NULL)
        return hfd_fail_nomem(err, "parse an order");
    if (in->direction.len > 0 && !hfd_slice_is(in->direction, "asc") &&
        !hfd_slice_is(in->direction, "desc"))
        return hfd_fail_field(err, HFD_BAD_REQUEST, "order", "order must be 'asc' or 'desc'");
    if (text.len == 0) {
        items[0] = (struct hfd_order){.field = HFD_FIELD_CREATED_TIME,
                                      .descending = !hfd_slice_is(in->direction, "asc")};
        out->count = 1;
        return HFD_OK;
    }
    while (text.p != NULL) {
        const char *comma = memchr(text.p, ',', text.len);
        const hfd_slice item =
            hfd_lex_trim((hfd_slice){text.p, comma != NULL ? (size_t)(comma - text.p) : text.len});
        hfd_rc rc;

        if (item.len == 0 || n == ORDER_MAX)
            return hfd_fail_field(err, HFD_BAD_REQUEST, "orderBy",
                                  "bad order value '%.*s': expected 1 to %d fields",
                                  (int)(text.len < 100 ? text.len : 100), text.p, ORDER_MAX);
        rc = parse_item(in, item, &items[n++], err);
        if (rc != HFD_OK)
            return rc;
        text = comma != NULL ? (hfd_slice){comma + 1, text.len - (size_t)(comma + 1 - text.p)}
                             : HFD_SLICE_NONE;
    }
    out->count = n;
    return HFD_OK;
}
