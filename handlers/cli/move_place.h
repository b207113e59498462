/* The places that `migrate` moves data between, as its flags name them. Thread: main. */
#ifndef HFD_CLI_MOVE_PLACE_H
#define HFD_CLI_MOVE_PLACE_H

#include "driver/base/arena.h"
#include "store/place.h"

struct hfd_move_place {
    struct hfd_store_place place;
    const char *text; /* without a password: "sqlite:/var/lib/hyperfleet" */
};

/**
 * Reads "sqlite:FOLDER", or the URL of a PostgreSQL database.
 * @param arg  borrowed as long as `out`
 * @param mem  keeps the text
 * @return HFD_OK, HFD_INVALID, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_move_place_read(const char *arg, struct hfd_arena *mem,
                                          struct hfd_move_place *out, struct hfd_err *err);
/**
 * Checks that a folder has a database. A PostgreSQL database is not looked at.
 * @return HFD_OK, HFD_NOT_FOUND
 */
HFD_MUST_CHECK hfd_rc hfd_move_place_exists(const struct hfd_move_place *place,
                                            struct hfd_err *err);
/**
 * Gives the database in a folder to the owner of the folder when root has made it: the server may
 * run as that user.
 * @return HFD_OK, HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_move_place_give(const struct hfd_move_place *place, struct hfd_err *err);

#endif
