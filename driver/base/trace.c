/* See trace.h. */
#include "driver/base/trace.h"

#include <string.h>

#define ID_AT 3 /* behind the version */
#define ID_LEN 32
#define PARENT_AT (ID_AT + ID_LEN + 1)
#define PARENT_LEN 16
#define FLAGS_AT (PARENT_AT + PARENT_LEN + 1)

static _Thread_local struct hfd_trace now;

/* Hexadecimal digits in lower case. */
static bool is_hex(const char *p, size_t len)
{
    return strspn(p, "0123456789abcdef") >= len;
}

/* An id of zeros alone is none. */
static bool is_id(const char *p, size_t len)
{
    return is_hex(p, len) && strspn(p, "0") < len;
}

struct hfd_trace hfd_trace_parse(hfd_slice header)
{
    struct hfd_trace t = {{0}};
    const char *p = t.text;

    if (header.len != HFD_TRACE_LEN)
        return t;
    memcpy(t.text, header.p, HFD_TRACE_LEN);
    if (memcmp(p, "00-", ID_AT) != 0 || !is_id(p + ID_AT, ID_LEN) || p[PARENT_AT - 1] != '-' ||
        !is_id(p + PARENT_AT, PARENT_LEN) || p[FLAGS_AT - 1] != '-' ||
        !is_hex(p + FLAGS_AT, HFD_TRACE_LEN - FLAGS_AT))
        t = (struct hfd_trace){{0}};
    return t;
}

hfd_slice hfd_trace_id(const struct hfd_trace *trace)
{
    return (hfd_slice){trace->text + ID_AT, trace->text[0] == '\0' ? 0 : ID_LEN};
}

void hfd_trace_enter(const struct hfd_trace *trace)
{
    if (trace != NULL)
        now = *trace;
    else
        now.text[0] = '\0';
}

const struct hfd_trace *hfd_trace_now(void)
{
    return &now;
}
