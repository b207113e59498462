/* See brief.h. */
#include "driver/fleet/brief.h"

#include "driver/fleet/aggregate.h"

/* Conditions of this length are read whole. Those of most adapters are below 1 KiB. */
#define LONG_FROM_BYTES 4096
/* The judged types with the longest reasons, each byte escaped, need less. */
#define BRIEF_MAX_BYTES ((size_t)256 * 1024)

hfd_slice hfd_message_shown(hfd_slice message, struct hfd_arena *mem)
{
    const hfd_slice end = HFD_SLICE("... (the adapter's report has the whole message)");
    size_t len = HFD_MESSAGE_SHOWN_MAX - end.len;

    if (message.len <= HFD_MESSAGE_SHOWN_MAX)
        return message;
    while (len > 0 && ((unsigned char)message.p[len] & 0xc0) == 0x80) /* no half characters */
        len--;
    return hfd_arena_printf(mem, "%.*s%.*s", (int)len, message.p, HFD_SLICE_FMT(end));
}

bool hfd_condition_is_judged(hfd_slice type)
{
    static const char *const types[] = {"Applied", "Available", "Finalized", "Health",
                                        HFD_OBSERVER_CONDITION};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (hfd_slice_is(type, types[i]))
            return true;
    return false;
}

/* Leaves the judged conditions in cs, with short messages. */
static bool shorten(struct hfd_conditions *cs, struct hfd_arena *mem)
{
    size_t count = 0;

    for (size_t i = 0; i < cs->count; i++) {
        struct hfd_condition c = cs->items[i];

        if (!hfd_condition_is_judged(c.type))
            continue;
        if (c.message.len > 0)
            c.message = hfd_message_shown(c.message, mem);
        if (c.message.len > 0 && c.message.p == NULL)
            return false;
        cs->items[count++] = c;
    }
    cs->count = count;
    return true;
}

hfd_rc hfd_report_brief(struct hfd_report_row *row, struct hfd_arena *mem, struct hfd_err *err)
{
    struct hfd_conditions cs;
    struct hfd_buf b;
    hfd_rc rc;

    row->brief = HFD_SLICE("");
    row->long_bytes = 0;
    if (row->conditions.len < LONG_FROM_BYTES)
        return HFD_OK;
    rc = hfd_conditions_parse(row->conditions, mem, &cs, err);
    if (rc != HFD_OK)
        return rc;
    if (!shorten(&cs, mem))
        return hfd_fail_nomem(err, "shorten the conditions of a report");
    hfd_buf_init(&b, BRIEF_MAX_BYTES);
    hfd_conditions_format(&b, &cs, true);
    rc = hfd_buf_to_arena(&b, mem, &row->brief, err);
    if (rc == HFD_OK)
        row->long_bytes = (int64_t)row->conditions.len;
    return rc;
}
