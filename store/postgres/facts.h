/*
 * A look at a PostgreSQL database for commands: its settings, its standbys, and the replicas on it.
 * Each look has a connection of its own, and writes nothing. Thread: any.
 */
#ifndef HFD_STORE_POSTGRES_FACTS_H
#define HFD_STORE_POSTGRES_FACTS_H

#include "driver/base/arena.h"
#include "store/place.h"

/** A standby that is connected, as pg_stat_replication shows it. */
struct hfd_pg_standby {
    hfd_slice name;
    hfd_slice sync; /* sync, quorum, async, potential; empty = this user may not see it */
};

struct hfd_pg_facts {
    hfd_slice version, collation, encoding;
    hfd_slice synchronous_commit, fsync, full_page_writes; /* on, off, ... */
    hfd_slice standby_names; /* synchronous_standby_names; empty = none is synchronous */
    bool standby;            /* it is no primary */
    bool patroni;            /* a session of Patroni is there */
    bool may_create;         /* this user may make tables */
    int64_t connections;     /* that this user may have in this database, together */
    int64_t in_use;          /* of them, by whatever */
    int64_t schema;          /* version; 0 = no tables yet */
    struct hfd_pg_standby *standbys;
    size_t standby_count;
};

/**
 * Reads the facts.
 * @param out  in mem
 * @return HFD_OK, HFD_AWAY (it cannot be reached), HFD_INVALID (user, password, or a database that
 * cannot be used), HFD_IO, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_pg_facts_read(const struct hfd_store_place *place, struct hfd_arena *mem,
                                        struct hfd_pg_facts *out, struct hfd_err *err);

/** Reads the version of the schema; 0 = no tables yet. Returns as hfd_pg_facts_read. */
HFD_MUST_CHECK hfd_rc hfd_pg_schema_read(const struct hfd_store_place *place, int64_t *out,
                                         struct hfd_err *err);

/** A replica with a sign of life in the last 9 seconds of the database's time. */
struct hfd_pg_replica {
    hfd_slice id, name, version;
    hfd_slice key_ids; /* with commas */
    int64_t schema, epoch;
    int64_t age_us; /* of the last sign of life */
    bool leads;     /* it does the work in the background */
};

struct hfd_pg_replicas {
    struct hfd_pg_replica *items; /* by name */
    size_t count;
};

/**
 * Lists the live replicas; none if the database has no table of the one that leads.
 * @return as hfd_pg_facts_read
 */
HFD_MUST_CHECK hfd_rc hfd_pg_replicas_read(const struct hfd_store_place *place,
                                           struct hfd_arena *mem, struct hfd_pg_replicas *out,
                                           struct hfd_err *err);

/** True if a replica's key ring has the key. Pure. @param id  in hex */
bool hfd_pg_replica_has_key(const struct hfd_pg_replica *replica, hfd_slice id);

#endif
