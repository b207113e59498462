/*
 * GET /admin/backup. The copy is made in steps, each a job of a reader thread. Then it is sent in
 * pieces. At its end is the note of driver/core/backup_note.h. Thread: loop; the jobs: reader.
 */
#include "handlers/http/backup_api.h"

#include "driver/base/log.h"
#include "driver/core/backup_note.h"
#include "handlers/http/exchange.h"
#include "handlers/http/pieces.h"
#include "store/backup.h"

#define STATUS_NO_ROOM 507

/* In the memory of the exchange. */
struct making {
    struct hfd_backup *backup;
    struct hfd_arena *mem;
    struct hfd_backup_note note;
    struct hfd_backup_sum sum;
    struct hfd_pieces pieces;
    hfd_slice piece;
    char *bytes; /* HFD_PIECE_BYTES */
    bool done;   /* the copy is whole */
};

static void close_backup(void *arg)
{
    struct making *m = arg;

    hfd_backup_close(&m->backup);
}

static void fail(struct hfd_exchange *x, hfd_rc rc, const struct hfd_err *err)
{
    if (rc == HFD_LIMIT)
        hfd_exchange_fail_as(x, STATUS_NO_ROOM, rc, err);
    else
        hfd_exchange_fail(x, rc, err);
}

/* ---- the copy ---- */

/* Collects the facts of the note, from the snapshot that the copy shows. */
static hfd_rc txn_facts(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct making *m = arg;

    return hfd_backup_note_collect(tx, m->mem, &m->note, err);
}

static hfd_rc job_begin(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct making *m = arg;

    (void)tx;
    return hfd_backup_begin(m->backup, txn_facts, m, err);
}

static hfd_rc job_step(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct making *m = arg;

    (void)tx;
    return hfd_backup_step(m->backup, &m->done, err);
}

/* ---- the body ---- */

/* The next piece of the database; behind its end, the note. */
static hfd_rc job_read(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct making *m = arg;
    size_t len;
    hfd_rc rc = hfd_backup_read(m->backup, m->bytes, HFD_PIECE_BYTES, &len, err);

    (void)tx;
    if (rc == HFD_OK && len == 0) {
        rc = hfd_backup_note_format(&m->note, &m->sum, m->bytes, err);
        len = HFD_BACKUP_NOTE_BYTES;
    } else if (rc == HFD_OK) {
        hfd_backup_sum_add(&m->sum, m->bytes, len);
    }
    m->piece = (hfd_slice){m->bytes, len};
    return rc;
}

static void send_copy(struct hfd_exchange *x, struct making *m)
{
    struct hfd_reply reply = {
        .status = 200, .content_type = "application/octet-stream", .pieces = &m->pieces};

    m->note.bytes = hfd_backup_bytes(m->backup);
    hfd_backup_sum_init(&m->sum);
    m->pieces = (struct hfd_pieces){.length = (size_t)m->note.bytes + HFD_BACKUP_NOTE_BYTES,
                                    .read = job_read,
                                    .arg = m,
                                    .next = &m->piece};
    HFD_LOG(HFD_LOG_INFO, "audit: backup made", HFD_LOG_INT("bytes", m->note.bytes),
            HFD_LOG_INT("resources", m->note.resources), HFD_LOG_STR("by", hfd_exchange_caller(x)));
    hfd_exchange_reply(x, &reply);
}

static void on_stepped(struct hfd_exchange *x, void *arg, hfd_rc rc, const struct hfd_err *err)
{
    struct making *m = arg;
    struct hfd_err stopping;

    if (rc != HFD_OK)
        fail(x, rc, err);
    else if (m->done)
        send_copy(x, m);
    else if (hfd_exchange_draining(x))
        hfd_exchange_fail(x, hfd_fail(&stopping, HFD_IO, "backup: the server stops"), &stopping);
    else
        hfd_exchange_step(x, job_step, m, on_stepped);
}

void hfd_backup_api(struct hfd_exchange *x)
{
    const struct hfd_app *app = hfd_exchange_app(x);
    struct hfd_arena *mem = hfd_exchange_mem(x);
    struct making *m = hfd_arena_alloc(mem, sizeof(*m));
    struct hfd_err err;
    hfd_rc rc;

    if (m == NULL) {
        hfd_exchange_fail(x, hfd_fail_nomem(&err, "begin a backup"), &err);
        return;
    }
    *m = (struct making){.mem = mem, .bytes = hfd_arena_alloc(mem, HFD_PIECE_BYTES)};
    rc = m->bytes != NULL ? hfd_backup_open(app->store, &m->backup, &err)
                          : hfd_fail_nomem(&err, "begin a backup");
    if (rc != HFD_OK) {
        hfd_exchange_fail(x, rc, &err);
        return;
    }
    hfd_exchange_at_end(x, close_backup, m);
    m->note.clock_us = hfd_clock_wall_us(app->clock);
    m->note.taken_us = m->note.clock_us + hfd_clock_skew_us(app->clock);
    hfd_exchange_step(x, job_begin, m, on_stepped);
}
