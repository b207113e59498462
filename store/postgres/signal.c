/* See signal.h. */
#include "store/postgres/signal.h"

#include "driver/base/clock.h"
#include "store/postgres/fail.h"

#include <errno.h>
#include <poll.h>

/* Takes the signals that came so far; one's own is none. */
static bool take_signals(struct hfd_db *db)
{
    bool heard = false;
    PGnotify *n;

    while ((n = PQnotifies(db->conn)) != NULL) {
        heard = heard || n->be_pid != PQbackendPID(db->conn);
        PQfreemem(n);
    }
    return heard;
}

static hfd_rc wait_for_one(struct hfd_db *db, const struct hfd_db_signal *signal, bool *heard,
                           struct hfd_err *err)
{
    struct pollfd p[] = {{.fd = PQsocket(db->conn), .events = POLLIN},
                         {.fd = signal->fd, .events = POLLIN}};

    const int ready = poll(p, 2, (int)(signal->wait_us / 1000));

    if (ready < 0 && errno != EINTR)
        return hfd_pg_lost(db, strerror(errno), err);
    if (ready == 0 && signal->fd >= 0)
        db->listens = 0; /* the next call shows that the connection is still there */
    if (p[0].revents != 0 && PQconsumeInput(db->conn) == 0)
        return hfd_pg_lost(db, PQerrorMessage(db->conn), err);
    *heard = take_signals(db);
    return HFD_OK;
}

hfd_rc hfd_pg_signal(struct hfd_db *db, const struct hfd_db_signal *signal, bool *heard,
                     struct hfd_err *err)
{
    hfd_rc rc = HFD_OK;

    *heard = false;
    hfd_pg_check_owner(db);
    if (db->broken)
        return hfd_pg_fail_before(db, err);
    if (db->listens != db->session) { /* a new connection */
        rc = hfd_pg_run(db, "LISTEN hfd_work", NULL, err);
        if (rc == HFD_OK)
            db->listens = db->session;
    }
    if (rc == HFD_OK && signal->send)
        rc = hfd_pg_run(db, "NOTIFY hfd_work", NULL, err);
    if (rc != HFD_OK)
        return rc;
    *heard = take_signals(db);
    return *heard ? HFD_OK : wait_for_one(db, signal, heard, err);
}
