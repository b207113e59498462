/*
 * The embedded HyperFleet: what is asked for is done at once, by the engine in driver/fleet. See
 * backend.h.
 */
#include "driver/backend/backend.h"
#include "store/rows_fleet.h"

static hfd_rc embedded_patch(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                             const struct hfd_fleet_patch *in, struct hfd_fleet_row *out,
                             bool *pending, struct hfd_err *err)
{
    *pending = false;
    return hfd_fleet_patch(tx, call, in, out, err);
}

/* Here the rows know all that there is. */
static hfd_rc embedded_seek(struct hfd_txn *tx, const struct hfd_fleet_call *call,
                            enum hfd_kind kind, struct hfd_fleet_row *out, struct hfd_err *err)
{
    (void)tx;
    (void)call;
    (void)kind;
    (void)out;
    return hfd_fail(err, HFD_NOT_FOUND, "an embedded HyperFleet has nothing that is not stored");
}

static hfd_rc embedded_schedule(struct hfd_txn *tx, hfd_slice guresid, enum hfd_backend_goal goal,
                                int64_t now_us, struct hfd_err *err)
{
    (void)tx;
    (void)guresid;
    (void)goal;
    (void)now_us;
    (void)err;
    return HFD_OK;
}

static hfd_rc embedded_forget(struct hfd_txn *tx, hfd_slice guresid, int64_t now_us,
                              struct hfd_err *err)
{
    (void)tx;
    (void)guresid;
    (void)now_us;
    (void)err;
    return HFD_OK;
}

/* What is there, the rows show. */
static hfd_rc embedded_absent(struct hfd_txn *tx, hfd_slice guresid, int64_t now_us, bool *yes,
                              struct hfd_err *err)
{
    (void)tx;
    (void)guresid;
    (void)now_us;
    (void)err;
    *yes = true;
    return HFD_OK;
}

static hfd_rc embedded_trouble(struct hfd_txn *tx, hfd_slice guresid, struct hfd_arena *mem,
                               hfd_slice *out, struct hfd_err *err)
{
    (void)tx;
    (void)guresid;
    (void)mem;
    (void)err;
    *out = HFD_SLICE("");
    return HFD_OK;
}

const struct hfd_backend hfd_backend_embedded = {
    .deferred = false,
    .create = hfd_fleet_create,
    .patch = embedded_patch,
    .remove = hfd_fleet_delete,
    .seek = embedded_seek,
    .schedule = embedded_schedule,
    .forget = embedded_forget,
    .absent = embedded_absent,
    .trouble = embedded_trouble,
};
