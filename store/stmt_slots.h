/*
 * The prepared statements of a connection, found by the address of their text. Open addressing; at
 * most half full.
 *
 * Thread: that of the connection.
 */
#ifndef HFD_STORE_STMT_SLOTS_H
#define HFD_STORE_STMT_SLOTS_H

#include "driver/base/err.h"

#include <stddef.h>
#include <stdint.h>

struct hfd_stmt;

struct hfd_stmt_slot {
    const char *sql; /* NULL: free */
    struct hfd_stmt *stmt;
};

struct hfd_stmt_slots {
    struct hfd_stmt_slot *all;
    size_t cap; /* a power of two; 0 before the first statement */
    size_t count;
};

/** Gives the slot of a text, or the free one where it belongs. There is a free slot. */
static inline struct hfd_stmt_slot *hfd_stmt_slot_of(const struct hfd_stmt_slots *s,
                                                     const char *sql)
{
    const size_t mask = s->cap - 1;
    size_t i = (size_t)(((uint64_t)(uintptr_t)sql * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & mask;

    while (s->all[i].sql != NULL && s->all[i].sql != sql)
        i = (i + 1) & mask;
    return &s->all[i];
}

/** @return the statement of a text; NULL where it was not added */
static inline struct hfd_stmt *hfd_stmt_slots_find(const struct hfd_stmt_slots *s, const char *sql)
{
    return s->cap != 0 ? hfd_stmt_slot_of(s, sql)->stmt : NULL;
}

/**
 * Makes room for one more statement.
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_stmt_slots_reserve(struct hfd_stmt_slots *s, struct hfd_err *err);
/**
 * Adds a statement. Room for it was made.
 * @param sql   borrowed for the life of the slots; was not added before
 * @param stmt  borrowed
 */
void hfd_stmt_slots_add(struct hfd_stmt_slots *s, const char *sql, struct hfd_stmt *stmt);
/** Calls `end` for each statement, and forgets them all. */
void hfd_stmt_slots_clear(struct hfd_stmt_slots *s, void (*end)(struct hfd_stmt *stmt));

#endif
