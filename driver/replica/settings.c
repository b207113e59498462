/* See settings.h. */
#include "driver/replica/settings.h"

#include "store/rows_replica.h"

#define MEM_BYTES ((size_t)64 << 10)

hfd_rc hfd_replica_settings_look(struct hfd_txn *tx, const struct hfd_replica_settings *own,
                                 bool starting, struct hfd_settings_epoch *out, struct hfd_err *err)
{
    struct hfd_settings_row newest = {.epoch = 0};
    struct hfd_arena mem;
    hfd_rc rc;

    *out = (struct hfd_settings_epoch){.epoch = 0};
    hfd_arena_init(&mem, MEM_BYTES);
    rc = hfd_settings_row_get(tx, &mem, &newest, err);
    hfd_arena_fini(&mem);
    if (rc == HFD_NOT_FOUND)
        rc = HFD_OK;
    if (rc == HFD_OK && (newest.epoch == 0 || (starting && newest.mark != own->mark))) {
        newest = (struct hfd_settings_row){newest.epoch + 1, own->mark, own->rules};
        rc = hfd_settings_row_put(tx, &newest, err);
    }
    if (rc == HFD_OK)
        *out = (struct hfd_settings_epoch){newest.epoch, newest.rules != own->rules};
    return rc;
}
