/*
 * The words of a search: one call reads one token. Every failure quotes the search and the place.
 * Thread: any.
 *
 * The fields of a search: reads "labels.region" and finds the column, label, condition or member of
 * spec that it names. Source: HyperFleet API, "search". Thread: any.
 */
#ifndef HFD_FLEET_SEARCH_LEX_H
#define HFD_FLEET_SEARCH_LEX_H

#include "driver/base/arena.h"
#include "store/filter.h"
#include "store/kind.h"

enum hfd_search_token {
    HFD_TOK_END,
    HFD_TOK_NAME,
    HFD_TOK_STRING, /* text in single quotes, or a time without quotes */
    HFD_TOK_NUMBER,
    HFD_TOK_OP, /* hfd_search.op says which */
    HFD_TOK_LPAREN,
    HFD_TOK_RPAREN,
    HFD_TOK_LBRACKET,
    HFD_TOK_RBRACKET,
    HFD_TOK_COMMA,
    HFD_TOK_DOT,
    HFD_TOK_SIGN,
};

/** One search that is being parsed. search.c sets up text, room, kind, mem and err. */
struct hfd_search {
    hfd_slice text;
    size_t at;    /* behind the current token */
    size_t start; /* of the current token */
    char *room;   /* for text without its quotes; as many bytes as the text is enough */
    enum hfd_search_token tok;
    enum hfd_filter_op op;
    hfd_slice word; /* NAME: the name; STRING: the text; NUMBER and SIGN: as written */
    bool quoted;    /* a NAME in quotes is never a keyword */
    int depth;
    enum hfd_kind kind;
    bool of_reports; /* the fields are those of reports, not of clusters or nodepools */
    struct hfd_arena *mem;
    struct hfd_err *err;
};

/** Reads the next token. @return HFD_OK, HFD_BAD_REQUEST */
HFD_MUST_CHECK hfd_rc hfd_lex_next(struct hfd_search *s);

/** Reads the next token if the current one is this keyword. @param taken  whether it is */
HFD_MUST_CHECK hfd_rc hfd_lex_take_keyword(struct hfd_search *s, const char *word, bool *taken);

/** Fails with HyperFleet's text, then the position of the current token and what was expected. */
hfd_rc hfd_lex_fail(struct hfd_search *s, const char *expected);

/** The slice without white space around it. */
hfd_slice hfd_lex_trim(hfd_slice s);

#define HFD_PATH_MAX 12

/** A field as the search names it. */
struct hfd_field_path {
    hfd_slice parts[HFD_PATH_MAX];
    size_t count;
    hfd_slice whole; /* as written */
};

/** Reads a path; the current token is its first name. @return HFD_OK, HFD_BAD_REQUEST */
HFD_MUST_CHECK hfd_rc hfd_field_read(struct hfd_search *s, struct hfd_field_path *path);

/**
 * Sets f->field and f->name.
 * @return HFD_OK, HFD_BAD_REQUEST (no such field), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_field_resolve(struct hfd_search *s, const struct hfd_field_path *path,
                                        struct hfd_filter *f);

/** Finds a column by its name. @return whether resources of this kind have it */
bool hfd_field_column(enum hfd_kind kind, hfd_slice name, enum hfd_field *out);

/** Finds a column of reports by its name. */
bool hfd_field_report_column(hfd_slice name, enum hfd_field *out);
/** Checks the key of a label. @param parameter  of the request, for the error */
HFD_MUST_CHECK hfd_rc hfd_field_check_label(const char *parameter, hfd_slice key,
                                            struct hfd_err *err);

/** True for a subfield of a condition, such as its last_updated_time. */
bool hfd_field_is_condition_sub(enum hfd_field field);

#endif
