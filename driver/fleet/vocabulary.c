/* The two vocabularies of condition names. See vocabulary.h. */
#include "driver/fleet/vocabulary.h"

static const struct {
    const char *first, *later;
} types[] = {{"Ready", "Reconciled"}, {"Available", "LastKnownReconciled"}};

/* The later name of a reason, by the condition that has it. */
static const struct {
    const char *type, *first, *later;
} reasons[] = {
    {"Ready", "ResourceReady", "ReconciledAll"},
    {"Ready", "AwaitingAdapters", "ReconciledMissingAdapters"},
    {"Ready", "MissingRequiredAdapters", "ReconciledMissingAdapters"},
    {"Ready", "WaitingForChildren", "ReconciledWaitingForChildren"},
    {"Available", "ResourceAvailable", "AllAdaptersReconciled"},
    {"Available", "AwaitingAdapters", "AdaptersMissingReports"},
};

bool hfd_vocabulary_parse(hfd_slice text, enum hfd_vocabulary *out)
{
#define NAME(name, text) text,
    static const char *const names[HFD_VOCABULARY_COUNT] = {HFD_VOCABULARY_LIST(NAME)};
#undef NAME

    for (int v = 0; v < HFD_VOCABULARY_COUNT; v++) {
        if (hfd_slice_is(text, names[v])) {
            *out = (enum hfd_vocabulary)v;
            return true;
        }
    }
    return false;
}

static hfd_slice first_type(hfd_slice type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (hfd_slice_is(type, types[i].later))
            return hfd_slice_of(types[i].first);
    return type;
}

bool hfd_vocabulary_restore(struct hfd_condition *c)
{
    const hfd_slice first = first_type(c->type);

    if (hfd_slice_eq(first, c->type))
        return false;
    c->type = first;
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (hfd_slice_is(first, reasons[i].type) && hfd_slice_is(c->reason, reasons[i].later)) {
            c->reason = hfd_slice_of(reasons[i].first);
            break; /* two reasons share a later name; the first is the common one */
        }
    }
    return true;
}

/* @return whether the vocabulary shows conditions of that type */
static bool is_shown(enum hfd_vocabulary v, hfd_slice type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (hfd_slice_is(type, v == HFD_VOCABULARY_READY ? types[i].later : types[i].first))
            return false;
    return true;
}

hfd_rc hfd_vocabulary_show(enum hfd_vocabulary v, hfd_slice stored, struct hfd_arena *mem,
                           hfd_slice *out, struct hfd_err *err)
{
    struct hfd_conditions cs;
    struct hfd_buf b;
    size_t n = 0;
    hfd_rc rc;

    *out = stored;
    if (v == HFD_VOCABULARY_BOTH)
        return HFD_OK;
    rc = hfd_conditions_parse(stored, mem, &cs, err);
    if (rc != HFD_OK)
        return rc;
    for (size_t i = 0; i < cs.count; i++)
        if (is_shown(v, cs.items[i].type))
            cs.items[n++] = cs.items[i];
    cs.count = n;
    hfd_buf_init(&b, stored.len);
    hfd_conditions_format(&b, &cs, false);
    return hfd_buf_to_arena(&b, mem, out, err);
}
