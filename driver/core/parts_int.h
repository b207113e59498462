/* Shared by parts.c and apply.c. */
#ifndef HFD_CORE_PARTS_INT_H
#define HFD_CORE_PARTS_INT_H

#include "driver/core/parts.h"

/** The row of a part that was just written. */
struct hfd_part_row hfd_part_row_of(hfd_slice guresid, const struct hfd_backend_written *w);
/** Writes that row. */
HFD_MUST_CHECK hfd_rc hfd_part_record(const struct hfd_ctx *c, hfd_slice guresid,
                                      const struct hfd_backend_written *w);
/** Fills in p->view from p->row. */
void hfd_part_see_row(struct hfd_part *p);
/** Fills in p->fleet and p->view from HyperFleet's row, but for its reports. */
HFD_MUST_CHECK hfd_rc hfd_part_see_fleet(const struct hfd_ctx *c, const struct hfd_fleet_row *row,
                                         struct hfd_arena *scratch, struct hfd_part *p);
/** The same without conditions: those of a part that is not ready say nothing before a report. */
HFD_MUST_CHECK hfd_rc hfd_part_see_unready(const struct hfd_ctx *c, const struct hfd_fleet_row *row,
                                           struct hfd_part *p);

#endif
