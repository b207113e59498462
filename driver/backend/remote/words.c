/* See words.h. */
#include "driver/backend/remote/words.h"

#include <stdio.h>

#include "driver/fleet/names.h"

/* ---- messages ---- */

hfd_slice hfd_words_other_server(const struct hfd_take *t, const struct hfd_pass_part *part,
                                 hfd_slice id, hfd_slice owner)
{
    return hfd_arena_printf(t->mem,
                            "HyperFleet's %s %.*s belongs to another server of this driver "
                            "(" HFD_OWNER_LABEL
                            " is '%.*s'): delete it there, or use another name and resource.",
                            hfd_kind_word(part->row.kind), HFD_SLICE_FMT(id),
                            HFD_SLICE_FMT(hfd_wire_tidy(owner, 63, t->mem)));
}

hfd_slice hfd_words_name_taken(const struct hfd_take *t, const struct hfd_pass_part *part,
                               hfd_slice id)
{
    return hfd_arena_printf(t->mem,
                            "The name '%.*s' is taken by HyperFleet's %s %.*s, which is not of "
                            "this resource. Choose another name and deploy again, or delete the "
                            "resource.",
                            HFD_SLICE_FMT(part->fleet.name), hfd_kind_word(part->row.kind),
                            HFD_SLICE_FMT(id));
}

hfd_slice hfd_words_other_name(const struct hfd_take *t, const struct hfd_pass_part *part,
                               hfd_slice id, hfd_slice name)
{
    return hfd_arena_printf(t->mem,
                            "HyperFleet's %s %.*s of this resource is called '%.*s', and a name "
                            "cannot change to '%.*s'. Use the same name, or delete the resource "
                            "first.",
                            hfd_kind_word(part->row.kind), HFD_SLICE_FMT(id), HFD_SLICE_FMT(name),
                            HFD_SLICE_FMT(part->fleet.name));
}

hfd_slice hfd_words_invalid(const struct hfd_take *t, const struct hfd_pass_part *part)
{
    return hfd_arena_printf(t->mem,
                            "HyperFleet refused %s '%.*s' (it answered %d%s%.*s). Correct the "
                            "input and deploy again, or delete the resource.",
                            hfd_kind_word(part->row.kind), HFD_SLICE_FMT(part->row.name),
                            t->answer->status, t->problem.words.len > 0 ? ": " : "",
                            HFD_SLICE_FMT(t->problem.words));
}

hfd_slice hfd_words_unable(const struct hfd_take *t, const struct hfd_pass_part *part)
{
    const bool deleting = t->request->method == HFD_REMOTE_DELETE;
    const char *kind = hfd_kind_word(part->row.kind);

    return hfd_arena_printf(
        t->mem,
        "This HyperFleet cannot %s %ss (it answered %d to %s): its version is "
        "too old for that. "
        "The platform's operator has to %s %s '%.*s' (%.*s) in HyperFleet, or to "
        "upgrade it; "
        "then %s again.",
        deleting ? "delete" : "change", kind, t->answer->status, deleting ? "DELETE" : "PATCH",
        deleting ? "remove" : "change", kind, HFD_SLICE_FMT(part->row.name),
        HFD_SLICE_FMT(part->row.fleet_id), deleting ? "delete" : "deploy");
}

hfd_slice hfd_words_credentials(const struct hfd_take *t)
{
    return hfd_arena_printf(t->mem,
                            "HyperFleet refused the driver's credentials (it answered %d). The "
                            "platform's operator has to renew them; then deploy again.",
                            t->answer->status);
}

hfd_slice hfd_words_no_cluster(const struct hfd_take *t, hfd_slice cluster_id)
{
    return hfd_arena_printf(t->mem,
                            "There is no cluster '%.*s' in HyperFleet, or it is being deleted. "
                            "Correct the input and deploy again, or delete the resource.",
                            HFD_SLICE_FMT(cluster_id));
}

/* ---- troubles ---- */

hfd_slice hfd_words_answer(const struct hfd_take *t)
{
    const struct hfd_remote_answer *a = t->answer;

    if (!a->arrived)
        return hfd_arena_printf(t->mem, "HyperFleet gave no answer: %s",
                                a->failure != NULL ? a->failure : "unknown");
    if (t->verdict == HFD_ON_WRONG)
        return hfd_arena_printf(
            t->mem, "there is no HyperFleet at the configured address (it answered %d)", a->status);
    if (t->verdict == HFD_ON_REFUSED)
        return hfd_arena_printf(
            t->mem, "HyperFleet refused the driver's credentials (it answered %d)", a->status);
    if (a->status >= 200 && a->status <= 299)
        return hfd_arena_printf(
            t->mem, "HyperFleet answered %d with a document that cannot be read", a->status);
    if (t->problem.words.len > 0)
        return hfd_arena_printf(t->mem, "HyperFleet answered %d: %.*s", a->status,
                                HFD_SLICE_FMT(t->problem.words));
    return hfd_arena_printf(t->mem, "HyperFleet answered %d", a->status);
}

hfd_slice hfd_words_cannot_search(const struct hfd_take *t, enum hfd_kind kind, hfd_slice answer)
{
    return hfd_arena_printf(t->mem,
                            "this HyperFleet cannot list %ss by label: look for orphans there, by "
                            "their label %s (%.*s)",
                            hfd_kind_word(kind), HFD_GURESID_LABEL, HFD_SLICE_FMT(answer));
}

hfd_slice hfd_words_cannot_delete(const struct hfd_take *t, enum hfd_kind kind)
{
    const char *word = hfd_kind_word(kind);

    return hfd_arena_printf(t->mem,
                            "this HyperFleet cannot delete %ss (it answered %d to DELETE): its "
                            "version is too old for that. Remove the %s in HyperFleet, or upgrade "
                            "it and delete again",
                            word, t->answer->status, word);
}
