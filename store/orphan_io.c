#include "store/orphan_io.h"

void hfd_row_orphan(struct hfd_row_in *in, struct hfd_orphan_row *row)
{
    *row = (struct hfd_orphan_row){.error = HFD_SLICE("")};
    row->id = hfd_row_text(in);
    row->kind = hfd_row_kind(in);
    row->owner_id = hfd_row_text(in);
    row->label = hfd_row_text(in);
    row->name = hfd_row_text(in);
    row->generation = hfd_row_i64(in);
    row->ready = hfd_row_i64(in) != 0;
    row->created_us = hfd_row_i64(in);
    row->deleted_us = hfd_row_i64(in);
    row->created_by = hfd_row_text(in);
}
