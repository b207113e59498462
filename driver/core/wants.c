#include "driver/core/wants.h"

#include "driver/core/apply.h"
#include "driver/core/history.h"
#include "driver/core/input.h"
#include "store/roots.h"
#include "store/rows_wants.h"

hfd_rc hfd_resource_put_wants(struct hfd_txn *tx, const struct hfd_call *call, struct hfd_err *err)
{
    const struct hfd_ctx c = hfd_ctx_of(tx, call, err);
    hfd_rc rc = hfd_root_resource(tx, call->guresid, err);

    if (rc == HFD_OK && call->input->cluster_guresid.len > 0)
        rc = hfd_root_resource(tx, call->input->cluster_guresid, err);
    if (rc == HFD_OK && call->input->cluster_id.len > 0)
        rc = hfd_root_fleet(tx, call->input->cluster_id, err);
    if (rc == HFD_OK)
        rc = hfd_wants_resource(tx, call->guresid, err);
    return rc == HFD_OK ? hfd_apply_wants(&c, call) : rc;
}

hfd_rc hfd_resource_delete_wants(struct hfd_txn *tx, const struct hfd_call *call,
                                 struct hfd_err *err)
{
    const struct hfd_history_subject subject = {HFD_ABOUT_RESOURCE, call->guresid};
    hfd_rc rc = hfd_root_resource(tx, call->guresid, err);

    if (rc == HFD_OK)
        rc = hfd_wants_deletion(tx, call->guresid, err);
    return rc == HFD_OK ? hfd_history_row_wants(tx, &subject, HFD_HISTORY_MAX, err) : rc;
}
