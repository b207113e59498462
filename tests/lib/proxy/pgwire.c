#include "tests/lib/proxy/pgwire.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static uint32_t pgwire_number(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool pgwire_is_word(char c)
{
    return isalnum((unsigned char)c) != 0 || c == '_';
}

/* Says if a statement has the word COMMIT. */
static bool pgwire_commits(const char *text)
{
    for (const char *at = text; (at = strcasestr(at, "commit")) != NULL; at += 6)
        if ((at == text || !pgwire_is_word(at[-1])) && !pgwire_is_word(at[6]))
            return true;
    return false;
}

/*
 * Takes bytes into the message that is being read.
 *
 * @return how many were taken; *whole says that the message ends there
 */
static size_t pgwire_take(struct pgwire *w, const char *data, size_t n, bool *whole)
{
    size_t used = 0, head = w->typed ? 5 : 4;
    *whole = false;
    while (used < n && w->head_have < head) {
        w->head[w->head_have++] = (unsigned char)data[used++];
        if (w->head_have == head) {
            uint32_t length = pgwire_number(w->head + head - 4);
            w->type = w->typed ? (char)w->head[0] : '\0';
            w->left = length > 4 ? length - 4 : 0;
            w->text_have = 0;
        }
    }
    if (w->head_have < head)
        return used;
    size_t body = n - used < w->left ? n - used : w->left;
    size_t room = sizeof w->text - 1 - w->text_have;
    memcpy(w->text + w->text_have, data + used, body < room ? body : room);
    w->text_have += body < room ? body : room;
    w->text[w->text_have] = '\0';
    w->left -= (uint32_t)body;
    if (w->left == 0) {
        *whole = true;
        w->head_have = 0;
    }
    return used + body;
}

/* A name and the text behind it, as Parse and Bind have them. */
static const char *pgwire_second(const struct pgwire *w)
{
    size_t at = strlen(w->text) + 1;
    return at < w->text_have ? w->text + at : "";
}

static void pgwire_prepared(struct pgwire *w, const char *match)
{
    const char *text = pgwire_second(w);
    bool commits = pgwire_commits(text);
    if (w->text[0] == '\0')
        w->plain_commit = commits;
    else if (commits && strlen(w->text) < sizeof w->commit_name)
        memcpy(w->commit_name, w->text, strlen(w->text) + 1);
    if (match != NULL && strstr(text, match) != NULL)
        w->seen_match = true;
}

static enum pgwire_found pgwire_client_message(struct pgwire *w, const char *match)
{
    if (!w->typed) {
        uint32_t code = w->text_have >= 4 ? pgwire_number((unsigned char *)w->text) : 0;
        if (code == 80877103 || code == 80877104) /* asks for TLS, for GSSAPI */
            return PGWIRE_UNTYPED_ANSWER;
        w->typed = true;
        return PGWIRE_NOTHING;
    }
    if (w->type == 'P') {
        pgwire_prepared(w, match);
    } else if (w->type == 'Q') {
        if (match != NULL && strstr(w->text, match) != NULL)
            w->seen_match = true;
        return pgwire_commits(w->text) ? PGWIRE_COMMIT : PGWIRE_NOTHING;
    } else if (w->type == 'B') {
        const char *name = pgwire_second(w);
        bool commits = name[0] == '\0' ? w->plain_commit : strcmp(name, w->commit_name) == 0;
        return commits ? PGWIRE_COMMIT : PGWIRE_NOTHING;
    }
    return PGWIRE_NOTHING;
}

size_t pgwire_client(struct pgwire *w, const char *data, size_t n, const char *match)
{
    size_t used = 0;
    w->found = PGWIRE_NOTHING;
    w->begin = 0;
    while (used < n && w->found == PGWIRE_NOTHING) {
        bool whole;
        if (w->head_have == 0) {
            w->begin = used;
        }
        used += pgwire_take(w, data + used, n - used, &whole);
        if (whole) {
            w->found = pgwire_client_message(w, match);
        }
    }
    return used;
}

size_t pgwire_server(struct pgwire *w, const char *data, size_t n)
{
    size_t used = 0;
    w->found = PGWIRE_NOTHING;
    w->begin = 0;
    w->typed = true;
    while (used < n && w->found == PGWIRE_NOTHING) {
        bool whole;
        if (w->head_have == 0) {
            w->begin = used;
        }
        used += pgwire_take(w, data + used, n - used, &whole);
        if (whole && w->type == 'C' && strcmp(w->text, "COMMIT") == 0) {
            w->found = PGWIRE_COMMIT;
        }
    }
    return used;
}
