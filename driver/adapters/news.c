/* See news.h. */
#include "driver/adapters/news.h"

#include "store/rows_due.h"

#define PAGE_MAX 200
#define MEM_BYTES ((size_t)64 << 20)

/* ---- the list ---- */

struct page {
    struct hfd_arena *mem;
    struct hfd_pending_query query;
    struct hfd_fleet_list rows;
    int64_t after; /* set by the first page: later changes are looked for behind it */
};

static hfd_rc read_page(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct page *p = arg;
    const hfd_rc rc = p->query.after_seq == 0 ? hfd_due_last(tx, &p->after, err) : HFD_OK;

    return rc == HFD_OK ? hfd_fleet_row_pending(tx, &p->query, p->mem, &p->rows, err) : rc;
}

/* A page of the largest documents does not fit; the page size is halved then. */
static hfd_rc list_rows(struct hfd_news *n, const struct hfd_news_look *look, struct hfd_err *err)
{
    struct page p = {.query = {.limit = PAGE_MAX, .all = !n->pending}};
    hfd_rc rc = HFD_OK;
    bool more = true;

    while (more) {
        struct hfd_arena mem;

        hfd_arena_init(&mem, MEM_BYTES);
        p.mem = &mem;
        rc = hfd_store_read(n->reader, read_page, &p, err);
        more = rc == HFD_OK && (int64_t)p.rows.count == p.query.limit;
        for (size_t i = 0; rc == HFD_OK && i < p.rows.count; i++)
            more = look->on_row(look->ctx, &p.rows.rows[i], false) && more;
        if (more) {
            p.query.after_us = p.rows.rows[p.rows.count - 1].created_us;
            p.query.after_seq = p.rows.rows[p.rows.count - 1].seq;
        }
        if (rc == HFD_NOMEM && p.query.limit > 1) {
            p.query.limit /= 2;
            more = true;
        }
        hfd_arena_fini(&mem);
    }
    if (rc == HFD_OK)
        n->after = p.after;
    return rc;
}

/* ---- the changes ---- */

struct changes {
    struct hfd_arena *mem;
    int64_t after;
    struct hfd_due_page page;
};

static hfd_rc read_changes(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct changes *c = arg;

    return hfd_due_list(tx, c->after, PAGE_MAX, c->mem, &c->page, err);
}

/* @param lost  not all of them are kept any more */
static hfd_rc hand_over_changes(struct hfd_news *n, const struct hfd_news_look *look, bool *lost,
                                struct hfd_err *err)
{
    struct changes c;
    bool more = true;
    hfd_rc rc = HFD_OK;

    while (more) {
        struct hfd_arena mem;

        hfd_arena_init(&mem, MEM_BYTES);
        c = (struct changes){.mem = &mem, .after = n->after};
        rc = hfd_store_read(n->reader, read_changes, &c, err);
        *lost = rc == HFD_OK && c.page.floor > n->after;
        more = rc == HFD_OK && !*lost && c.page.count == PAGE_MAX;
        for (size_t i = 0; rc == HFD_OK && i < c.page.count; i++) {
            const struct hfd_due_row *due = &c.page.rows[i];
            const struct hfd_fleet_row row = {.id = due->id,
                                              .kind = due->kind,
                                              .owner_id = due->owner_id,
                                              .generation = due->generation};

            more = look->on_row(look->ctx, &row, true) && more;
        }
        if (rc == HFD_OK)
            n->after = c.page.last;
        hfd_arena_fini(&mem);
    }
    return rc;
}

hfd_rc hfd_news_read(struct hfd_news *n, const struct hfd_news_look *look, struct hfd_err *err)
{
    bool all = look->all;
    hfd_rc rc = HFD_OK;

    if (n->reader == NULL)
        rc = hfd_store_reader_open(n->store, &n->reader, err);
    if (rc == HFD_OK && !all)
        rc = hand_over_changes(n, look, &all, err);
    return rc == HFD_OK && all ? list_rows(n, look, err) : rc;
}
