/*
 * The words of a search: one call reads one token. Every failure quotes the search and the place.
 * Thread: any.
 */
#ifndef HFD_FLEET_SEARCH_LEX_H
#define HFD_FLEET_SEARCH_LEX_H

#include "driver/base/arena.h"
#include "store/filter.h"
#include "store/kind.h"

enum hfd_token {
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
    enum hfd_token tok;
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

/**
 * Reads the key of a label behind its dot, where it is not in quotes: letters, digits and -_./ in a
 * row. Else reads the next token.
 */
HFD_MUST_CHECK hfd_rc hfd_lex_next_label(struct hfd_search *s);
/** Reads the next token if the current one is this keyword. @param taken  whether it is */
HFD_MUST_CHECK hfd_rc hfd_lex_take_keyword(struct hfd_search *s, const char *word, bool *taken);

/** Fails with HyperFleet's text, then the position of the current token and what was expected. */
hfd_rc hfd_lex_fail(struct hfd_search *s, const char *expected);

/** True if c may stand in a name: an ASCII letter, a digit or an underscore. */
bool hfd_lex_is_name_char(char c);

/** The slice without white space around it. */
hfd_slice hfd_lex_trim(hfd_slice s);

#endif
