/*
 * The key ring of `serve` over time. Also the probes of a server that waits for its database:
 * /livez answers 200 and /readyz 503, so that no orchestrator restarts it. Thread: main.
 */
#ifndef HFD_CLI_SERVE_KEYS_H
#define HFD_CLI_SERVE_KEYS_H

#include "driver/core/driver.h"
#include "handlers/cli/cli.h"
#include "handlers/http/http.h"

#include <sys/stat.h>

struct hfd_app;
struct hfd_serve_ring;
struct hfd_server;

struct hfd_serve_keys {
    const char *path;
    bool shared;                  /* replicas use the database too */
    struct stat file;             /* its state before the latest ring was read */
    struct stat looked;           /* its state at the latest look */
    struct hfd_serve_ring *rings; /* newest first */
};

/* The way on when there is no key ring. */
enum hfd_serve_ring_need {
    HFD_SERVE_RING_MAKE,  /* there is no data: one is made and logged */
    HFD_SERVE_RING_DATA,  /* the data needs its own */
    HFD_SERVE_RING_SHARED /* one file for all replicas is never made by itself */
};

/**
 * Reads the key ring, or makes one.
 * @return OK, KEYS, DATA (the ring cannot be created), INTERNAL
 */
enum hfd_exit hfd_serve_keys_open(struct hfd_serve_keys *k, const char *path,
                                  enum hfd_serve_ring_need need, struct hfd_err *err);
void hfd_serve_keys_close(struct hfd_serve_keys *k);

/** Returns the newest ring, which lives until close. */
const struct hfd_keyring *hfd_serve_keys_ring(const struct hfd_serve_keys *k);

/**
 * Compares the newest ring with the database (hfd_ring_check).
 * @return HFD_OK, HFD_INVALID or HFD_CONFLICT (it is not that of the data), HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_serve_keys_check(const struct hfd_serve_keys *k, struct hfd_store *store,
                                           struct hfd_err *err);

/** Gives the exit status of a failed step. @return OK, KEYS, INTERNAL, DATA */
enum hfd_exit hfd_serve_keys_exit(hfd_rc rc);

/**
 * Reads the file again if it changed, gives the driver the new ring, and logs what came of it.
 * Keeps the old ring if the new one lacks the active key, or is the ring of another database.
 */
void hfd_serve_keys_hangup(struct hfd_serve_keys *k, struct hfd_store *store,
                           struct hfd_driver *driver);
/** Does so if the file has changed since the last look. @return true: it did */
bool hfd_serve_keys_look(struct hfd_serve_keys *k, struct hfd_store *store,
                         struct hfd_driver *driver);

struct hfd_serve_early {
    struct hfd_app app;
    struct hfd_server *server; /* NULL = none */
};

/**
 * Opens the ops listener for probes and metrics alone. With SQLite it opens none: no database is
 * away, or shared with a server that migrates it.
 * @param settings  outlives it
 * @return HFD_OK, HFD_INVALID, HFD_IO (an address in use), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_serve_early_open(struct hfd_serve_early *early,
                                           const struct hfd_settings *settings,
                                           struct hfd_err *err);
/** Closes it, once the server itself listens there as well. Closed already: no error. */
void hfd_serve_early_close(struct hfd_serve_early *early);

#endif
