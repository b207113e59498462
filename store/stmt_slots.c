#include "store/stmt_slots.h"

#include "driver/base/check.h"

#include <stdlib.h>

#define SLOTS_MIN 64u

hfd_rc hfd_stmt_slots_reserve(struct hfd_stmt_slots *s, struct hfd_err *err)
{
    struct hfd_stmt_slots grown = {.cap = s->cap == 0 ? SLOTS_MIN : s->cap * 2};

    if (2 * (s->count + 1) <= s->cap)
        return HFD_OK;
    grown.all = calloc(grown.cap, sizeof(*grown.all));
    if (grown.all == NULL)
        return hfd_fail_nomem(err, "make a statement");
    for (size_t i = 0; i < s->cap; i++)
        if (s->all[i].sql != NULL)
            hfd_stmt_slots_add(&grown, s->all[i].sql, s->all[i].stmt);
    free(s->all);
    *s = grown;
    return HFD_OK;
}

void hfd_stmt_slots_add(struct hfd_stmt_slots *s, const char *sql, struct hfd_stmt *stmt)
{
    struct hfd_stmt_slot *slot;

    HFD_ASSERT(2 * (s->count + 1) <= s->cap);
    slot = hfd_stmt_slot_of(s, sql);
    HFD_ASSERT(slot->sql == NULL);
    *slot = (struct hfd_stmt_slot){sql, stmt};
    s->count++;
}

void hfd_stmt_slots_clear(struct hfd_stmt_slots *s, void (*end)(struct hfd_stmt *stmt))
{
    for (size_t i = 0; i < s->cap; i++)
        if (s->all[i].sql != NULL)
            end(s->all[i].stmt);
    free(s->all);
    *s = (struct hfd_stmt_slots){.cap = 0};
}
