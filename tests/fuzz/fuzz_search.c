/*
 * Searches and orders of lists. The first byte chooses the kind.
 *
 * An input that the parser accepts must become a tree that the store can rely on. Each node has
 * what its operator needs, names are plain, values fit their field.
 */
#include "tests/fuzz/fuzz.h"

#include "driver/base/check.h"
#include "driver/fleet/search.h"

static bool is_plain(hfd_slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '.' || c == '-' || c == '/'))
            return false;
    }
    return name.len > 0;
}

static bool is_named(enum hfd_field field)
{
    return field >= HFD_FIELD_LABEL && field < HFD_FIELD_ADAPTER;
}

static bool holds_numbers(enum hfd_field field)
{
    return field == HFD_FIELD_GENERATION || field == HFD_FIELD_CREATED_TIME ||
           field == HFD_FIELD_UPDATED_TIME || field == HFD_FIELD_DELETED_TIME ||
           field == HFD_FIELD_CONDITION_UPDATED || field == HFD_FIELD_CONDITION_TRANSITION ||
           field == HFD_FIELD_CONDITION_GENERATION || field == HFD_FIELD_REPORT_GENERATION ||
           field == HFD_FIELD_REPORT_TIME;
}

static void check_comparison(const struct hfd_filter *f)
{
    const size_t fixed = f->op == HFD_FILTER_IS_NULL ? 0 : f->op == HFD_FILTER_BETWEEN ? 2 : 1;

    HFD_ASSERT(f->field < HFD_FIELD_COUNT);
    HFD_ASSERT(is_named(f->field) ? is_plain(f->name) : f->name.len == 0);
    HFD_ASSERT(f->op == HFD_FILTER_IN || f->value_count == fixed);
    HFD_ASSERT((f->field != HFD_FIELD_CONDITION && f->field != HFD_FIELD_CONDITION_PENDING) ||
               f->op == HFD_FILTER_EQ);
    for (size_t i = 0; i < f->value_count; i++)
        HFD_ASSERT(f->field == HFD_FIELD_SPEC ||
                   f->values[i].kind == (holds_numbers(f->field) ? HFD_VALUE_INT : HFD_VALUE_TEXT));
}

static void check_tree(const struct hfd_filter *f, int depth)
{
    HFD_ASSERT(depth <= HFD_SEARCH_MAX);
    switch (f->op) {
    case HFD_FILTER_AND:
    case HFD_FILTER_OR:
        check_tree(f->left, depth + 1);
        check_tree(f->right, depth + 1);
        break;
    case HFD_FILTER_NOT:
        HFD_ASSERT(f->right == NULL);
        check_tree(f->left, depth + 1);
        break;
    case HFD_FILTER_EQ:
    case HFD_FILTER_NE:
    case HFD_FILTER_LT:
    case HFD_FILTER_LE:
    case HFD_FILTER_GT:
    case HFD_FILTER_GE:
    case HFD_FILTER_LIKE:
    case HFD_FILTER_ILIKE:
    case HFD_FILTER_BETWEEN:
    case HFD_FILTER_IN:
    case HFD_FILTER_IS_NULL:
        check_comparison(f);
        break;
    case HFD_FILTER_OP_COUNT:
        HFD_ASSERT(false);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const enum hfd_kind kind = size > 0 && data[0] == 'n' ? HFD_KIND_NODEPOOL : HFD_KIND_CLUSTER;
    const hfd_slice text = size > 0 ? (hfd_slice){(const char *)data + 1, size - 1} : HFD_SLICE("");
    const struct hfd_filter *filter;
    struct hfd_orders orders;
    struct hfd_arena mem;
    struct hfd_err err;
    hfd_rc rc;

    hfd_arena_init(&mem, FUZZ_ARENA_BYTES);
    rc = hfd_search_parse(kind, text, &mem, &filter, &err);
    HFD_ASSERT(rc == HFD_OK || rc == HFD_BAD_REQUEST);
    if (filter != NULL)
        check_tree(filter, 0);
    rc = hfd_search_parse_reports(text, &mem, &filter, &err);
    HFD_ASSERT(rc == HFD_OK || rc == HFD_BAD_REQUEST);
    if (filter != NULL)
        check_tree(filter, 0);
    rc = hfd_search_order(&(struct hfd_order_text){kind, text, HFD_SLICE(""), false}, &mem, &orders,
                          &err);
    HFD_ASSERT(rc == HFD_OK || rc == HFD_BAD_REQUEST);
    for (size_t i = 0; rc == HFD_OK && i < orders.count; i++)
        HFD_ASSERT(orders.items[i].field <= HFD_FIELD_LABEL &&
                   (orders.items[i].field == HFD_FIELD_LABEL) == (orders.items[i].name.len > 0));
    hfd_arena_fini(&mem);
    return 0;
}
