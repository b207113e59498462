#include "driver/core/wants.h"

#include "driver/core/apply.h"
#include "driver/core/history.h"
#include "driver/core/input.h"
#include "store/rows_wants.h"

hfd_rc hfd_resource_put_wants(struct hfd_txn *tx, const struct hfd_call *call, struct hfd_err *err)
{
    const struct hfd_ctx c = hfd_ctx_of(tx, call, err);
    const hfd_rc rc = hfd_wants_resource(tx, call->guresid, err);

    return rc == HFD_OK ? hfd_apply_wants(&c, call) : rc;
}

hfd_rc hfd_resource_delete_wants(struct hfd_txn *tx, const struct hfd_call *call,
                                 struct hfd_err *err)
{
    const struct hfd_history_subject subject = {HFD_ABOUT_RESOURCE, call->guresid};
    const hfd_rc rc = hfd_wants_deletion(tx, call->guresid, err);

    return rc == HFD_OK ? hfd_history_row_wants(tx, &subject, HFD_HISTORY_MAX, err) : rc;
}
