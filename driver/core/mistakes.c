/* See mistakes.h. */
#include "driver/core/mistakes.h"

#include <stdarg.h>
#include <stdio.h>

#define MESSAGE_MAX_BYTES 400

static bool has_field(const struct hfd_violations *found, hfd_slice field)
{
    for (size_t i = 0; i < found->count; i++)
        if (hfd_slice_eq(found->items[i].field, field))
            return true;
    return false;
}

static hfd_rc add(struct hfd_mistakes *m, hfd_rc rc, hfd_slice field, hfd_slice message)
{
    struct hfd_violation *v = &m->found->items[m->found->count];

    if (has_field(m->found, field) || m->found->count == HFD_VIOLATIONS_MAX)
        return HFD_OK;
    v->field = hfd_arena_dup(m->mem, field);
    v->message = hfd_arena_dup(m->mem, message);
    v->constraint = "";
    if (v->field.p == NULL || v->message.p == NULL)
        return HFD_NOMEM;
    if (m->found->count++ == 0)
        m->first = rc;
    return HFD_OK;
}

hfd_rc hfd_mistakes_add(struct hfd_mistakes *m, hfd_rc rc, const char *field, const char *fmt, ...)
{
    char text[MESSAGE_MAX_BYTES];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n < 0)
        n = 0;
    return add(m, rc, hfd_slice_of(field),
               (hfd_slice){text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1});
}

hfd_rc hfd_mistakes_add_all(struct hfd_mistakes *m, hfd_rc rc, const struct hfd_violations *found)
{
    if (rc != HFD_INVALID)
        return rc;
    rc = HFD_OK;
    for (size_t i = 0; rc == HFD_OK && i < found->count; i++)
        rc = add(m, HFD_INVALID, found->items[i].field, found->items[i].message);
    return rc;
}

hfd_rc hfd_mistakes_result(const struct hfd_mistakes *m, struct hfd_err *err)
{
    const struct hfd_violation *v = &m->found->items[0];
    char field[128]; /* longer than err->field, so that hfd_fail_field marks the cut */

    if (m->found->count == 0)
        return HFD_OK;
    (void)snprintf(field, sizeof(field), "%.*s", HFD_SLICE_FMT(v->field));
    return hfd_fail_field(err, m->first, field, "%s: %.*s", field, HFD_SLICE_FMT(v->message));
}
