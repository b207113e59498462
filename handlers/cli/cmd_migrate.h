/* The progress of a move, for commands that move rows. Thread: main. */
#ifndef HFD_CLI_CMD_MIGRATE_H
#define HFD_CLI_CMD_MIGRATE_H

#include "store/move.h"

/** Shows how far a move is; for hfd_move_config, with a struct hfd_meter as ctx. */
void hfd_move_show(void *ctx, const struct hfd_move_progress *now);

#endif
