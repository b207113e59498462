/* The part of PostgreSQL's protocol 3 that the proxy reads: where a COMMIT is sent, and answered.
 */
#ifndef HFD_TEST_PGWIRE_H
#define HFD_TEST_PGWIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pgwire_found {
    PGWIRE_NOTHING,
    PGWIRE_COMMIT,
    PGWIRE_UNTYPED_ANSWER
};

/* One direction of a connection. All zero at its begin. */
struct pgwire {
    bool typed;        /* messages have a type byte: those behind the client's first */
    bool seen_match;   /* a text of this direction held the text that is looked for */
    bool plain_commit; /* the unnamed statement is a COMMIT */
    unsigned char head[5];
    size_t head_have;
    char type;
    uint32_t left; /* of the body */
    char text[2048];
    size_t text_have;
    char commit_name[64];    /* the statement that was prepared as COMMIT */
    enum pgwire_found found; /* by the last call */
    size_t begin;            /* of that message in its data; 0 when it began earlier */
};

/**
 * Reads on in what a client sends, to the end of a message of interest, or of the data.
 * Sets w->found to the kind of this message.
 *
 * @param match  a text to look for in statements; NULL: none
 * @return how many bytes were read
 */
size_t pgwire_client(struct pgwire *w, const char *data, size_t n, const char *match);

/** The same for what a server sends: PGWIRE_COMMIT is its answer to a COMMIT. */
size_t pgwire_server(struct pgwire *w, const char *data, size_t n);

#endif
