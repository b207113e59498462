/* See report.h. */
#include "driver/adapters/hypershift/report.h"

/* Available is known to flap just after an installation. */
#define DOWN_MAX_US INT64_C(30000000)

static const char works[] = "AdapterWorks";

/* ---- what to report ---- */

static int64_t serves_of(const struct hfd_hs_work *w)
{
    return json_integer_value(json_object_get(w->prev_data, "serves"));
}

/* A serving generation counts as down when it has been so for a while. */
static bool is_down(struct hfd_hs_work *w)
{
    struct hfd_hs_record *r = w->record;

    if (serves_of(w) == 0) {
        r->down_since_us = 0;
        return false;
    }
    if (!w->judged)
        return r->down_since_us != 0 && w->mono_us - r->down_since_us > DOWN_MAX_US;
    if (w->judgement.up)
        r->down_since_us = 0;
    else if (r->down_since_us == 0)
        r->down_since_us = w->mono_us;
    return r->down_since_us != 0 && w->mono_us - r->down_since_us > DOWN_MAX_US;
}

/* "GATE Available" for a closed gate, "SYNC Validated" for any other step. */
static const char *step_text(struct hfd_hs_work *w, const struct hfd_reconciled *ended)
{
    const char *kind = w->row.deleted_us != 0 ? "TEARDOWN" : "SYNC";

    if (ended->at == NULL)
        return NULL;
    if (w->judged && w->judgement.gate != NULL)
        return hfd_arena_printf(w->mem, "GATE %s", w->judgement.gate).p;
    return hfd_arena_printf(w->mem, "%s %s", kind, ended->at->name).p;
}

static const char *rsync_word(const struct hfd_hs_work *w, const struct hfd_reconciled *ended)
{
    if (ended->end == HFD_STEP_FAULT)
        return "Retrying";
    if (ended->end == HFD_STEP_REFUSED && !w->judged)
        return "Failed";
    if (w->row.deleted_us != 0)
        return w->object.doc != NULL ? "Applied" : "Terminated";
    return w->object.doc != NULL ? "Applied" : "Pending";
}

/* Where what is reported stands: the generation, and whether it serves. */
static void report_sync(struct hfd_hs_work *w, const struct hfd_reconciled *ended,
                        struct hfd_hs_report *r, struct hfd_hs_progress *p)
{
    const bool reached = ended->end == HFD_STEP_DONE;
    const bool down = is_down(w);
    const int64_t generation = w->row.generation;
    int64_t serves = serves_of(w);

    if (reached)
        serves = generation;
    p->serves = serves;
    p->updating_to = serves != 0 && serves != generation ? generation : 0;
    r->generation = serves != 0 ? serves : generation;
    r->applied = w->object.doc != NULL && hfd_hs_applied_generation(w->object.doc) != 0;
    r->available = serves != 0 && !down;
    if (serves != 0 && down) {
        r->reason = w->judgement.down_reason;
        r->message = w->judgement.down_message;
        if (p->updating_to != 0)
            r->message = hfd_arena_printf(w->mem, "%s; %s", w->words, r->message).p;
    } else if (reached && w->judgement.stage == HFD_HS_PAUSED) {
        r->reason = "ReconciliationPaused";
        r->message = w->judgement.message;
    } else if (serves == generation) {
        r->reason = "ResourceAvailable";
        r->message = "";
    } else {
        r->reason = p->updating_to != 0 ? "Updating" : "Progressing";
        r->message = w->words;
    }
}

static void report_teardown(struct hfd_hs_work *w, const struct hfd_reconciled *ended,
                            struct hfd_hs_report *r)
{
    r->generation = w->row.generation;
    r->finalized = ended->end == HFD_STEP_DONE;
    r->applied = !r->finalized;
    r->reason = r->finalized ? "Finalized" : "Deleting";
    r->message = r->finalized ? "nothing is left on the management cluster" : w->words;
}

/* A condition of the object refuses, or the API server did, or it is not ours. */
static void report_validation(struct hfd_hs_work *w, const struct hfd_reconciled *ended,
                              struct hfd_hs_reports *out)
{
    const bool refused = ended->end == HFD_STEP_REFUSED;
    const bool deleting = w->row.deleted_us != 0;

    if (deleting ? ended->end != HFD_STEP_DONE : !refused && !w->validated)
        return;
    out->items[out->count++] = (struct hfd_hs_report){
        .adapter = HFD_HS_VALIDATION,
        .generation = w->row.generation,
        .available = !deleting && !refused,
        .applied = !deleting && !refused,
        .healthy = true,
        .finalized = deleting,
        .reason = deleting  ? "Finalized"
                  : refused ? w->reason
                            : "Validated",
        .message = refused ? w->words : "",
        .health_reason = works,
        .health_message = "",
        .data = {.text = HFD_SLICE("{}"), .secrets = HFD_SLICE("")},
    };
}

hfd_rc hfd_hs_reports_make(struct hfd_hs_work *w, const struct hfd_reconciled *ended,
                           struct hfd_hs_reports *out, struct hfd_err *err)
{
    struct hfd_hs_report *r;
    struct hfd_hs_progress p = {.step = step_text(w, ended), .rsync = rsync_word(w, ended)};
    const bool fault = ended->end == HFD_STEP_FAULT;

    *out = (struct hfd_hs_reports){.count = 0};
    if (ended->at != NULL && p.step == NULL)
        return hfd_fail_nomem(err, "make a report");
    report_validation(w, ended, out);
    /* A new resource that is refused has nothing that this adapter can report on. */
    r = &out->items[out->count++];
    *r = (struct hfd_hs_report){.adapter = HFD_HS_ADAPTER,
                                .healthy = !fault,
                                .health_reason = fault ? w->reason : works,
                                .health_message = fault ? w->words : ""};
    if (w->row.deleted_us != 0)
        report_teardown(w, ended, r);
    else
        report_sync(w, ended, r, &p);
    if (r->message == NULL)
        return hfd_fail_nomem(err, "make a report");
    p.percent = hfd_hs_percent(w, w->row.generation, w->judgement.progress);
    p.message = w->words;
    if (w->row.deleted_us != 0)
        p.serves = 0;
    return hfd_hs_data_make(w, &p, &r->data) == HFD_OK ? HFD_OK
                                                       : hfd_fail_nomem(err, "make a report");
}

/* ---- its form ---- */

size_t hfd_hs_report_conditions(const struct hfd_hs_work *w, const struct hfd_hs_report *r,
                                struct hfd_condition out[HFD_HS_CONDITIONS_MAX])
{
    const enum hfd_status available = r->available ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
    const enum hfd_status applied = r->applied ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
    const enum hfd_status healthy = r->healthy ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
    const enum hfd_status finalized = r->finalized ? HFD_STATUS_TRUE : HFD_STATUS_FALSE;
    const hfd_slice reason = hfd_slice_of(r->reason), message = hfd_slice_of(r->message);

    out[0] = (struct hfd_condition){
        .type = HFD_SLICE("Available"), .status = available, .reason = reason, .message = message};
    out[1] =
        (struct hfd_condition){.type = HFD_SLICE("Applied"),
                               .status = applied,
                               .reason = r->applied ? HFD_SLICE("AppliedManifestComplete") : reason,
                               .message = r->applied ? HFD_SLICE("") : message};
    out[2] = (struct hfd_condition){.type = HFD_SLICE("Health"),
                                    .status = healthy,
                                    .reason = hfd_slice_of(r->health_reason),
                                    .message = hfd_slice_of(r->health_message)};
    out[3] = (struct hfd_condition){
        .type = HFD_SLICE("Finalized"), .status = finalized, .reason = reason, .message = message};
    return w->row.deleted_us != 0 ? HFD_HS_CONDITIONS_MAX : HFD_HS_CONDITIONS_MAX - 1;
}

const struct hfd_report_row *hfd_hs_report_previous(const struct hfd_hs_work *w,
                                                    const struct hfd_hs_report *r)
{
    return strcmp(r->adapter, HFD_HS_ADAPTER) == 0 ? &w->prev : &w->prev_validation;
}
