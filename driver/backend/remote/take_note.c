/* See take_note.h. */
#include "driver/backend/remote/take_note.h"

#include "driver/backend/remote/due.h"

hfd_rc hfd_take_note(struct hfd_take *t, hfd_slice fleet_id, enum hfd_part_fact fact,
                     struct hfd_err *err)
{
    struct hfd_part_note *note = hfd_arena_alloc(&t->pass->mem, sizeof(*note));

    if (note == NULL)
        return hfd_fail_nomem(err, "take HyperFleet's answer");
    *note = (struct hfd_part_note){
        .fleet_id = hfd_arena_dup(&t->pass->mem, fleet_id), .fact = fact, .next = t->m->notes};
    t->m->notes = note;
    return note->fleet_id.p != NULL ? HFD_OK : hfd_fail_nomem(err, "take HyperFleet's answer");
}

hfd_rc hfd_take_forget(struct hfd_take *t, hfd_slice fleet_id, struct hfd_err *err)
{
    struct hfd_seen_part *entry = hfd_arena_alloc(&t->pass->mem, sizeof(*entry));

    if (entry == NULL)
        return hfd_fail_nomem(err, "take HyperFleet's answer");
    *entry = (struct hfd_seen_part){
        .fleet_id = hfd_arena_dup(&t->pass->mem, fleet_id), .forgotten = true, .next = t->m->seen};
    t->m->seen = entry;
    return entry->fleet_id.p != NULL ? HFD_OK : hfd_fail_nomem(err, "take HyperFleet's answer");
}

hfd_rc hfd_take_look_again(struct hfd_take *t, hfd_slice fleet_id, struct hfd_err *err)
{
    if (++t->m->looks_again <= HFD_PASS_LOOKS_AGAIN_MAX)
        return hfd_take_forget(t, fleet_id, err);
    return hfd_due_later(t, err, "HyperFleet contradicts itself about %.*s (it answered %d)",
                         HFD_SLICE_FMT(fleet_id), t->answer->status);
}
