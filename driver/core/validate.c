/* See validate.h. */
#include "driver/core/validate.h"

#include "driver/base/check.h"
#include "driver/core/answer.h"
#include "driver/core/apply.h"
#include "driver/core/lookup.h"
#include "driver/core/resource.h"

/* The part that an input calls its own. */
static const struct hfd_input_part *own_part(const struct hfd_input *in)
{
    return in->kind == HFD_KIND_CLUSTER ? &in->cluster : &in->nodepools[0];
}

/* An input without a name keeps the name that is there. */
static hfd_rc find_name(const struct hfd_ctx *c, const struct hfd_call *call,
                        struct hfd_validated *out)
{
    const struct hfd_input_part *own = own_part(call->input);
    const struct hfd_part *main;
    struct hfd_parts parts;
    hfd_rc rc = hfd_parts_load(c, call->guresid, &parts);

    main = rc == HFD_OK ? hfd_parts_main(&parts) : NULL;
    if (own->name_given || call->guresid.len > 0)
        out->name = own->name;
    if (!own->name_given && main != NULL && main->view.exists && !main->view.deleting)
        out->name = main->fleet.name;
    return rc;
}

static hfd_rc preview_new(const struct hfd_ctx *c, const struct hfd_call *call,
                          struct hfd_validated *out)
{
    struct hfd_resource_row row = {
        .guresid = call->guresid, .type = call->input->type, .kind = call->input->kind};
    bool anew;

    hfd_rc rc = hfd_ctx_admit(c, call, NULL);

    out->action = "create";
    return rc == HFD_OK ? hfd_parts_preview(c, call, &row, &out->changes, &anew) : rc;
}

static hfd_rc preview_change(const struct hfd_ctx *c, const struct hfd_call *call,
                             struct hfd_resource_row *row, struct hfd_validated *out)
{
    hfd_rc rc = hfd_resource_check_type(row, call->input, c->err);
    bool anew = false;

    if (rc == HFD_OK)
        rc = hfd_ctx_admit(c, call, row);
    if (rc == HFD_OK)
        rc = hfd_parts_preview(c, call, row, &out->changes, &anew);
    out->action = hfd_op_name(hfd_resource_op_of_put(row, anew));
    return rc;
}

static hfd_rc preview_existing(const struct hfd_ctx *c, const struct hfd_call *call,
                               struct hfd_resource_row *row, struct hfd_validated *out)
{
    const bool same = hfd_keyring_digest_is(c->driver->ring, row->digest, call->input->canonical);
    struct hfd_answer_doc busy = {.answer = HFD_ANSWER_BUSY};
    hfd_rc rc;

    switch (hfd_resource_put_action(row, same)) {
    case HFD_PUT_ANSWER:
        out->action = "none";
        return HFD_OK;
    case HFD_PUT_CONFLICT:
        rc = hfd_answer_put(c, row, true, &busy);
        out->hint = busy.hint;
        return rc;
    case HFD_PUT_UPDATE:
    case HFD_PUT_RETRY:
        return preview_change(c, call, row, out);
    case HFD_PUT_CREATE:
        break;
    }
    return hfd_fail(c->err, HFD_CORRUPT, "resource %.*s is in no known state",
                    HFD_SLICE_FMT(row->guresid));
}

hfd_rc hfd_resource_validate(struct hfd_txn *tx, const struct hfd_call *call,
                             struct hfd_validated *out, struct hfd_err *err)
{
    const struct hfd_ctx c = hfd_ctx_of(tx, call, err);
    struct hfd_found f;
    hfd_rc rc;

    HFD_ASSERT(call->input != NULL);
    *out = (struct hfd_validated){.name = HFD_SLICE_NONE};
    rc = hfd_lookup(&c, call, &f);
    if (rc != HFD_OK)
        return rc;
    rc = f.exists ? preview_existing(&c, call, &f.row, out) : preview_new(&c, call, out);
    return rc == HFD_OK ? find_name(&c, call, out) : rc;
}
