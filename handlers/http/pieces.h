/*
 * Sends a long body in pieces, which reader threads read one after the other. The next one is read
 * when the last one is written, so a slow client holds one piece only. Thread: loop.
 */
#ifndef HFD_HTTP_PIECES_H
#define HFD_HTTP_PIECES_H

#include "handlers/http/loop.h"

#define HFD_PIECE_BYTES ((size_t)262144)

/** In the memory of the exchange. */
struct hfd_pieces {
    h2o_generator_t generator; /* first member: h2o gives it back */
    struct hfd_exchange *x;    /* set by the start */
    size_t length;             /* of the body */
    size_t sent;               /* 0 */
    hfd_txn_fn *read;          /* puts a piece into *next; an error cuts the answer short */
    void *arg;                 /* for read */
    const hfd_slice *next;     /* stays valid until the next read */
};

/**
 * Has fn called when the exchange ends, whatever happened, before its memory is freed. Once per
 * exchange. No job is out then.
 */
void hfd_exchange_at_end(struct hfd_exchange *x, void (*fn)(void *arg), void *arg);

/** Starts the response that is set up in the request of x, and reads the first piece. */
void hfd_pieces_start(struct hfd_pieces *p, struct hfd_exchange *x);

#endif
