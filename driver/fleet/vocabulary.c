/* The two vocabularies of condition names. See vocabulary.h. */
#include "driver/fleet/vocabulary.h"

/* The most bytes by which both pairs of names and reasons can be longer than one pair. */
#define LATER_MAX_BYTES 4096

static const struct {
    const char *stored, *later;
} types[] = {{"Ready", "Reconciled"}, {"Available", "LastKnownReconciled"}};

/* The later name of a stored reason, by the condition that has it. */
static const struct {
    const char *type, *stored, *later;
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

hfd_slice hfd_vocabulary_stored(hfd_slice type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (hfd_slice_is(type, types[i].later))
            return hfd_slice_of(types[i].stored);
    return type;
}

bool hfd_vocabulary_restore(struct hfd_condition *c)
{
    const hfd_slice stored = hfd_vocabulary_stored(c->type);

    if (hfd_slice_eq(stored, c->type))
        return false;
    c->type = stored;
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (hfd_slice_is(stored, reasons[i].type) && hfd_slice_is(c->reason, reasons[i].later)) {
            c->reason = hfd_slice_of(reasons[i].stored);
            break; /* two stored reasons share a later name; the first is the common one */
        }
    }
    return true;
}

/*
 * Gives a condition its later names.
 * @return false when its type has no later name
 */
static bool rename_later(const struct hfd_condition *c, struct hfd_condition *out)
{
    *out = *c;
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (hfd_slice_is(c->type, reasons[i].type) && hfd_slice_is(c->reason, reasons[i].stored))
            out->reason = hfd_slice_of(reasons[i].later);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (hfd_slice_is(c->type, types[i].stored)) {
            out->type = hfd_slice_of(types[i].later);
            return true;
        }
    }
    return false;
}

hfd_rc hfd_vocabulary_show(enum hfd_vocabulary v, hfd_slice stored, struct hfd_arena *mem,
                           hfd_slice *out, struct hfd_err *err)
{
    struct hfd_conditions in, shown = {NULL, 0};
    struct hfd_buf b;
    hfd_rc rc;

    *out = stored;
    if (v == HFD_VOCABULARY_READY)
        return HFD_OK;
    rc = hfd_conditions_parse(stored, mem, &in, err);
    if (rc != HFD_OK)
        return rc;
    shown.items =
        hfd_arena_array(mem, in.count + sizeof(types) / sizeof(types[0]), sizeof(*shown.items));
    if (shown.items == NULL)
        return hfd_fail_nomem(err, "show conditions");
    for (size_t i = 0; i < in.count; i++) {
        struct hfd_condition later;

        if (v == HFD_VOCABULARY_BOTH || !rename_later(&in.items[i], &later))
            later = in.items[i];
        shown.items[shown.count++] = later;
    }
    for (size_t i = 0; v == HFD_VOCABULARY_BOTH && i < in.count; i++) {
        struct hfd_condition later;

        if (rename_later(&in.items[i], &later))
            shown.items[shown.count++] = later;
    }
    hfd_buf_init(&b, 2 * stored.len + LATER_MAX_BYTES);
    hfd_conditions_format(&b, &shown, false);
    return hfd_buf_to_arena(&b, mem, out, err);
}
