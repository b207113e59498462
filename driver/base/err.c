/* Result codes and their texts. See err.h. */
#include "driver/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "driver/base/foreign.h"

#define ROW(name, text) [HFD_##name] = {#name, text},
static const struct {
    const char *name;
    const char *text;
} codes[HFD_RC_COUNT] = {HFD_RC_LIST(ROW)};
#undef ROW

const char *hfd_rc_name(hfd_rc rc)
{
    return (unsigned)rc < HFD_RC_COUNT ? codes[rc].name : "UNKNOWN";
}

const char *hfd_rc_text(hfd_rc rc)
{
    return (unsigned)rc < HFD_RC_COUNT ? codes[rc].text : "an unknown result";
}

/*
 * Puts "..." at the end of a text that was cut, without leaving half a UTF-8 character before it.
 */
static void mark_cut(char *text, size_t cap)
{
    size_t end = cap - sizeof("...");

    while (end > 0 && ((unsigned char)text[end] & 0xc0u) == 0x80u)
        end--;
    memcpy(text + end, "...", sizeof("..."));
}

__attribute__((format(printf, 3, 0))) static void fill_message(struct hfd_err *err, hfd_rc rc,
                                                               const char *fmt, va_list ap)
{
    int n;

    err->rc = rc;
    err->field[0] = '\0';
    n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    if (n < 0)
        err->msg[0] = '\0';
    else if ((size_t)n >= sizeof(err->msg))
        mark_cut(err->msg, sizeof(err->msg));
    if (strstr(fmt, "%.") != NULL)
        hfd_foreign_drop_halves(err->msg);
    err->msg[hfd_foreign_mask(err->msg, strlen(err->msg))] = '\0';
}

/*
 * The names stand in parentheses because err.h defines macros of the same names for the analyser.
 */
hfd_rc(hfd_fail)(struct hfd_err *err, hfd_rc rc, const char *fmt, ...)
{
    /*
     * An argument may point into err->msg ("reading x: %s"), so the text is complete before it is
     * copied.
     */
    struct hfd_err made;
    va_list ap;

    if (err == NULL)
        return rc;
    va_start(ap, fmt);
    fill_message(&made, rc, fmt, ap);
    va_end(ap);
    *err = made;
    return rc;
}

hfd_rc(hfd_fail_field)(struct hfd_err *err, hfd_rc rc, const char *field, const char *fmt, ...)
{
    struct hfd_err made;
    va_list ap;
    int n;

    if (err == NULL)
        return rc;
    va_start(ap, fmt);
    fill_message(&made, rc, fmt, ap);
    va_end(ap);
    n = snprintf(made.field, sizeof(made.field), "%s", field);
    if (n < 0)
        made.field[0] = '\0';
    else if ((size_t)n >= sizeof(made.field))
        mark_cut(made.field, sizeof(made.field));
    *err = made;
    return rc;
}

hfd_rc(hfd_fail_nomem)(struct hfd_err *err, const char *what)
{
    return (hfd_fail)(err, HFD_NOMEM, "out of memory: %s", what);
}
