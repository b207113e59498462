/* See take_part.h. */
#include "driver/backend/remote/take_part.h"

#include "driver/backend/remote/due.h"
#include "driver/backend/remote/observe.h"
#include "driver/backend/remote/refuse.h"
#include "driver/backend/remote/take_note.h"
#include "driver/backend/remote/words.h"
#include "driver/base/check.h"
#include "driver/fleet/names.h"

/* Reads the answer's document. Fails the pass if it is no such resource, or has another id. */
static hfd_rc read_document(struct hfd_take *t, enum hfd_kind kind, hfd_slice id,
                            struct hfd_wire_resource *doc, struct hfd_err *err)
{
    struct hfd_err why;
    const hfd_rc rc = hfd_wire_resource_read(t->doc, kind, t->mem, doc, &why);

    if (rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "take HyperFleet's answer");
    if (rc != HFD_OK)
        return hfd_due_later(t, err, "HyperFleet answered with a %s that cannot be read: %s",
                             hfd_kind_name(kind), why.msg);
    if (id.len == 0 || hfd_slice_eq(doc->id, id))
        return HFD_OK;
    return hfd_due_later(t, err, "HyperFleet answered with another %s than was asked for",
                         hfd_kind_name(kind));
}

static hfd_rc take_get(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_wire_resource doc;
    hfd_rc rc;

    if (t->verdict == HFD_ON_MISSING)
        return hfd_observe_gone(t, part, err);
    rc = read_document(t, part->row.kind, part->row.fleet_id, &doc, err);
    return rc == HFD_OK && !t->failed ? hfd_observe_document(t, part, &doc, err) : rc;
}

/* The cluster that a nodepool resource names by its id. */
static hfd_rc take_owner(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    const hfd_slice cluster_id = part->fleet.owner_id;
    struct hfd_wire_resource doc = {.deleting = true};
    hfd_rc rc = HFD_OK;

    if (t->verdict != HFD_ON_MISSING)
        rc = read_document(t, HFD_KIND_CLUSTER, cluster_id, &doc, err);
    if (rc != HFD_OK || t->failed)
        return rc;
    if (!doc.deleting)
        return hfd_due_later(t, err, "HyperFleet contradicts itself about cluster %.*s",
                             HFD_SLICE_FMT(cluster_id));
    return hfd_refuse(t, "RES-101", hfd_words_no_cluster(t, cluster_id), err);
}

/* The name is taken. For a nodepool, WRITE looks for the name before it goes on. */
static hfd_rc name_is_taken(struct hfd_take *t, const struct hfd_pass_part *part,
                            struct hfd_err *err)
{
    if (part == hfd_pass_own(&t->rows)) {
        hfd_pass_move(t->m, HFD_PASS_FIND_NAME);
        return HFD_OK;
    }
    return hfd_take_note(t, part->row.fleet_id, HFD_PART_NAME_TAKEN, err);
}

/* POST of a nodepool found no cluster, or one that is being deleted. */
static hfd_rc has_no_cluster(struct hfd_take *t, const struct hfd_pass_part *part,
                             struct hfd_err *err)
{
    if (part->row.kind == HFD_KIND_CLUSTER)
        return hfd_due_later_by_answer(t, err);
    if (part != hfd_pass_own(&t->rows))
        return hfd_take_look_again(t, part->fleet.owner_id, err);
    hfd_pass_move(t->m, HFD_PASS_ASK_OWNER);
    return HFD_OK;
}

static hfd_rc take_post(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_wire_resource doc;
    bool available;
    hfd_rc rc;

    if (t->verdict == HFD_ON_TAKEN)
        return name_is_taken(t, part, err);
    if (t->verdict == HFD_ON_INVALID)
        return hfd_refuse_invalid(t, part, err);
    if (t->verdict != HFD_ON_WELL)
        return has_no_cluster(t, part, err);
    rc = read_document(t, part->row.kind, HFD_SLICE_NONE, &doc, err);
    if (rc != HFD_OK || t->failed) {
        t->rows.remote.unsure_us = t->now_us;
        return rc;
    }
    if (part == hfd_pass_own(&t->rows))
        t->rows.remote.unsure_us = 0; /* an earlier POST would have taken the name */
    rc = hfd_observe_id(t, part, &doc, &available, err);
    if (rc == HFD_OK && !available)
        return hfd_refuse_taken(t, part, doc.id, HFD_SLICE_NONE, err);
    if (rc != HFD_OK)
        return rc;
    if (part == hfd_pass_own(&t->rows))
        hfd_pass_move(t->m, HFD_PASS_LOOK);
    return hfd_observe_written(t, part, &doc, err);
}

static hfd_rc take_patch(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_wire_resource doc;
    hfd_rc rc;

    /*
     * Old generations have no such route, and answer as if the resource did not exist: look at it,
     * and believe the second 404.
     */
    if (t->verdict == HFD_ON_UNABLE ||
        (t->verdict == HFD_ON_MISSING &&
         hfd_pass_noted(t->m, part->row.fleet_id, HFD_PART_PATCH_DENIED)))
        return hfd_refuse_unable(t, part, err);
    if (t->verdict == HFD_ON_INVALID)
        return hfd_refuse_invalid(t, part, err);
    if (t->verdict != HFD_ON_WELL) {
        rc = hfd_take_note(t, part->row.fleet_id, HFD_PART_PATCH_DENIED, err);
        return rc == HFD_OK ? hfd_take_look_again(t, part->row.fleet_id, err) : rc;
    }
    rc = read_document(t, part->row.kind, part->row.fleet_id, &doc, err);
    return rc == HFD_OK && !t->failed ? hfd_observe_written(t, part, &doc, err) : rc;
}

static hfd_rc take_delete(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    hfd_rc rc;

    if (t->verdict == HFD_ON_MISSING)
        return hfd_observe_gone(t, part, err);
    if (t->verdict == HFD_ON_UNABLE)
        return hfd_refuse_unable(t, part, err);
    if (t->verdict == HFD_ON_LEAVING)
        return hfd_due_later_by_answer(t, err);
    /* Some generations remove it at once, with the same answer: look at it. */
    rc = hfd_take_note(t, part->row.fleet_id, HFD_PART_DELETE_SENT, err);
    return rc == HFD_OK ? hfd_take_forget(t, part->row.fleet_id, err) : rc;
}

static hfd_rc take_reports(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    struct hfd_pass_list *list = &t->m->reports.list;
    struct hfd_wire_page page;
    struct hfd_err why;
    bool last = t->verdict == HFD_ON_MISSING; /* the next GET of the part shows it */
    hfd_rc rc = HFD_OK;

    if (!last && hfd_wire_page_read(t->doc, &page, &why) != HFD_OK)
        return hfd_due_later(t, err, HFD_WORDS_NO_LIST);
    for (size_t i = 0;
         !last && rc == HFD_OK && i < page.count && list->count < HFD_WIRE_REPORTS_MAX;
         i++, list->count++)
        rc = hfd_observe_report(t, part->row.fleet_id, json_array_get(page.items, i), err);
    if (rc != HFD_OK)
        return rc;
    last = last || page.count == 0 || (page.total >= 0 && list->count >= page.total) ||
           list->count >= HFD_WIRE_REPORTS_MAX;
    list->page = last ? 0 : list->page + 1;
    list->count = last ? 0 : list->count;
    return last ? hfd_observe_release(t, part, err) : HFD_OK;
}

hfd_rc hfd_take_part(struct hfd_take *t, struct hfd_pass_part *part, struct hfd_err *err)
{
    static hfd_rc (*const by_step[])(struct hfd_take *, struct hfd_pass_part *,
                                     struct hfd_err *) = {
        [HFD_STEP_GET] = take_get,       [HFD_STEP_OWNER] = take_owner,
        [HFD_STEP_POST] = take_post,     [HFD_STEP_PATCH] = take_patch,
        [HFD_STEP_DELETE] = take_delete, [HFD_STEP_REPORTS] = take_reports,
    };
    const size_t step = (size_t)t->request->step;

    HFD_ASSERT(step < sizeof(by_step) / sizeof(by_step[0]));
    HFD_ASSERT(by_step[step] != NULL);
    return by_step[step](t, part, err);
}
