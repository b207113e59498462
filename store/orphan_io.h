/* The columns that orphans of the embedded and of a remote HyperFleet have in common. */
#ifndef HFD_STORE_ORPHAN_IO_H
#define HFD_STORE_ORPHAN_IO_H

#include "store/row_io.h"
#include "store/rows_orphan.h"

/* The first columns of both kinds of orphans. `label` is the column of the label's value. */
#define HFD_ORPHAN_COLUMNS(t, label)                                                               \
    t "id, " t "kind, " t "owner_id, " label ", " t "name, " t "generation, " t "ready, " t        \
      "created_us, " t "deleted_us, " t "created_by"

/** Reads these columns; sets the other members to none. */
void hfd_row_orphan(struct hfd_row_in *in, struct hfd_orphan_row *row);

#endif
