/*
 * This server as one of several on a PostgreSQL database (driver/replica/keeper.h). With SQLite
 * there is none. Thread: main.
 */
#ifndef HFD_CLI_SERVE_REPLICA_H
#define HFD_CLI_SERVE_REPLICA_H

#include "driver/core/driver.h"
#include "driver/replica/keeper.h"
#include "handlers/cli/cli.h"

/**
 * Starts the keeper, and gives the driver's fingerprint the epoch of the settings.
 * @param driver  complete
 * @param out     gives; NULL with SQLite
 * @return OK, DATA (the database failed), INTERNAL
 */
enum hfd_exit hfd_serve_replica_open(const struct hfd_settings *settings, struct hfd_driver *driver,
                                     struct hfd_store *store, struct hfd_keeper **out,
                                     struct hfd_err *err);
/**
 * Logs why the store takes no more work. Accepts NULL.
 * @return DATA (the database needs a newer program), INTERNAL (the store failed)
 */
enum hfd_exit hfd_serve_replica_broken(struct hfd_keeper *keeper);
/** The driver has another key ring. Accepts NULL. */
void hfd_serve_replica_keys(struct hfd_keeper *keeper, const struct hfd_keyring *ring);

#endif
