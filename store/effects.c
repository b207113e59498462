/* Each call is stored as a head and its argument, both aligned. */
#include "store/effects.h"

#include "driver/base/check.h"
#include "store/txn.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define AT_FIRST_BYTES 4096

struct head {
    alignas(max_align_t) hfd_effect_fn *fn;
    size_t step_bytes; /* from this head to the next */
    struct hfd_trace trace;
};

static size_t step_of(size_t size)
{
    const size_t unit = alignof(max_align_t);

    return sizeof(struct head) + (size + unit - 1) / unit * unit;
}

/* Appends a call of fn with a copy of `size` bytes at arg. @return HFD_OK, HFD_NOMEM */
static hfd_rc effects_add(struct hfd_effects *e, hfd_effect_fn *fn, const void *arg, size_t size,
                          struct hfd_err *err)
{
    const struct head head = {fn, step_of(size), *hfd_trace_now()};
    size_t capacity = e->capacity > 0 ? e->capacity : AT_FIRST_BYTES;

    while (capacity < e->len + head.step_bytes)
        capacity *= 2;
    if (capacity > e->capacity) {
        char *bytes = realloc(e->bytes, capacity);

        if (bytes == NULL)
            return hfd_fail_nomem(err, "note what to do after a commit");
        e->bytes = bytes;
        e->capacity = capacity;
    }
    memcpy(e->bytes + e->len, &head, sizeof(head));
    if (size > 0)
        memcpy(e->bytes + e->len + sizeof(head), arg, size);
    e->len += head.step_bytes;
    return HFD_OK;
}

void hfd_effects_run(struct hfd_effects *e)
{
    for (size_t at = 0; at < e->len;) {
        struct head head;

        memcpy(&head, e->bytes + at, sizeof(head));
        hfd_trace_enter(&head.trace);
        head.fn(e->bytes + at + sizeof(head));
        at += head.step_bytes;
    }
    hfd_trace_enter(NULL);
    e->len = 0;
}

void hfd_effects_cut(struct hfd_effects *e, size_t len)
{
    HFD_ASSERT(len <= e->len);
    e->len = len;
}

void hfd_effects_fini(struct hfd_effects *e)
{
    free(e->bytes);
    *e = (struct hfd_effects){0};
}

hfd_rc hfd_txn_after_commit(struct hfd_txn *tx, hfd_effect_fn *fn, const void *arg, size_t size,
                            struct hfd_err *err)
{
    HFD_ASSERT(tx->effects != NULL);
    return effects_add(tx->effects, fn, arg, size, err);
}
