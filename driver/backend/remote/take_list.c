/* See take_list.h. */
#include "driver/backend/remote/take_list.h"

#include "driver/backend/remote/due.h"
#include "driver/backend/remote/words.h"

bool hfd_take_page(struct hfd_take *t, const struct hfd_wire_page *page, int64_t pages_max)
{
    struct hfd_pass_list *list = hfd_pass_list(t->m);
    bool last;

    list->count += (int64_t)page->count;
    last = page->count == 0 || (page->total >= 0 && list->count >= page->total) ||
           list->page + 1 >= pages_max;
    list->page++;
    if (last)
        hfd_take_restart_list(t);
    return last;
}

void hfd_take_restart_list(struct hfd_take *t)
{
    struct hfd_pass_list *list = hfd_pass_list(t->m);

    list->page = 0;
    list->count = 0;
}

hfd_rc hfd_take_docs(struct hfd_take *t, enum hfd_kind kind, struct hfd_take_docs *out,
                     struct hfd_err *err)
{
    struct hfd_wire_page page;
    struct hfd_err why;

    *out = (struct hfd_take_docs){.last = true};
    if (hfd_wire_page_read(t->doc, &page, &why) != HFD_OK)
        return hfd_due_later(t, err, HFD_WORDS_NO_LIST);
    out->docs = hfd_arena_array(t->mem, page.count + 1, sizeof(*out->docs));
    if (out->docs == NULL)
        return hfd_fail_nomem(err, "take HyperFleet's list");
    for (size_t i = 0; i < page.count; i++) {
        const hfd_rc rc = hfd_wire_resource_read(json_array_get(page.items, i), kind, t->mem,
                                                 &out->docs[out->count], &why);

        if (rc == HFD_NOMEM)
            return hfd_fail_nomem(err, "take HyperFleet's list");
        out->count += rc == HFD_OK;
    }
    out->last = hfd_take_page(t, &page, HFD_TAKE_PAGES_MAX);
    return HFD_OK;
}

enum hfd_kind hfd_take_kind(const struct hfd_take *t)
{
    return t->m->phase == HFD_PASS_MANY_POOLS || t->m->phase == HFD_PASS_SEARCH_POOLS
               ? HFD_KIND_NODEPOOL
               : HFD_KIND_CLUSTER;
}

hfd_rc hfd_take_items(struct hfd_take *t, const struct hfd_wire_page *page, hfd_take_item_fn *fn,
                      struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    for (size_t i = 0; rc == HFD_OK && i < page->count; i++) {
        struct hfd_arena mem, *outer = t->mem;
        struct hfd_wire_resource doc;
        struct hfd_err why;

        hfd_arena_init(&mem, HFD_MIRROR_SCRATCH_MAX_BYTES);
        t->mem = &mem;
        rc = hfd_wire_resource_read(json_array_get(page->items, i), hfd_take_kind(t), &mem, &doc,
                                    &why);
        if (rc == HFD_OK)
            rc = fn(t, &doc, err);
        else
            rc = rc == HFD_NOMEM ? hfd_fail_nomem(err, "take HyperFleet's list") : HFD_OK;
        t->mem = outer;
        hfd_arena_fini(&mem);
    }
    return rc;
}
