/* See token.h. */
#include "handlers/auth/token.h"

#include "driver/base/arena.h"
#include "driver/base/clock.h"
#include "driver/base/file.h"
#include "driver/base/rng.h"
#include "driver/core/driver.h"
#include "handlers/auth/decide.h"

#include <sodium.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- token ---- */

#define HFD_TOKEN_PREFIX "hfd_"
#define HFD_TOKEN_NAME_MAX 63
#define SECRET_BYTES 32
#define PREFIX_CHARS (sizeof(HFD_TOKEN_PREFIX) - 1)

_Static_assert(PREFIX_CHARS + sodium_base64_ENCODED_LEN(SECRET_BYTES,
                                                        sodium_base64_VARIANT_URLSAFE_NO_PADDING) ==
                   HFD_TOKEN_CHARS + 1,
               "text of a token");

void hfd_token_make(const struct hfd_rng *rng, char text[HFD_TOKEN_CHARS + 1])
{
    unsigned char secret[SECRET_BYTES];

    hfd_rng_bytes(rng, secret, sizeof(secret));
    memcpy(text, HFD_TOKEN_PREFIX, PREFIX_CHARS);
    sodium_bin2base64(text + PREFIX_CHARS, HFD_TOKEN_CHARS + 1 - PREFIX_CHARS, secret,
                      sizeof(secret), sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(secret, sizeof(secret));
}

void hfd_token_hash(hfd_slice text, unsigned char hash[HFD_TOKEN_HASH_BYTES])
{
    (void)crypto_generichash(hash, HFD_TOKEN_HASH_BYTES, (const unsigned char *)text.p, text.len,
                             NULL, 0);
}

bool hfd_token_is(hfd_slice text)
{
    if (text.len != HFD_TOKEN_CHARS || !hfd_slice_starts(text, HFD_SLICE(HFD_TOKEN_PREFIX)))
        return false;
    for (size_t i = PREFIX_CHARS; i < text.len; i++)
        if (!hfd_is_alnum(text.p[i]) && text.p[i] != '-' && text.p[i] != '_')
            return false;
    return true;
}

hfd_rc hfd_token_name_check(hfd_slice name, struct hfd_err *err)
{
    bool ok = name.len > 0 && name.len <= HFD_TOKEN_NAME_MAX && hfd_is_alnum(name.p[0]);

    for (size_t i = 0; ok && i < name.len; i++)
        ok = hfd_is_alnum(name.p[i]) || memchr("-_.", name.p[i], 3) != NULL;
    return ok ? HFD_OK
              : hfd_fail(err, HFD_INVALID,
                         "expected a name of at most %d letters, digits and - _ . behind a letter "
                         "or digit, got \"%.*s\"",
                         HFD_TOKEN_NAME_MAX, (int)(name.len < 70 ? name.len : 70),
                         name.p != NULL ? name.p : "");
}

/* ---- token file ---- */

#define FIELDS 5
#define LISTS_MAX_BYTES ((size_t)64 << 20)

static const char file_head[] =
    "# Tokens of hyperfleet-driver: name, scopes, created, expires (- = never), BLAKE2b-256 of the "
    "token.\n"
    "# `hyperfleet-driver token` changes this file; a running server takes it up by itself.\n";

/* ---- text ---- */

static bool parse_hash(hfd_slice text, unsigned char hash[HFD_TOKEN_HASH_BYTES])
{
    size_t len = 0;

    return text.len == (size_t)2 * HFD_TOKEN_HASH_BYTES &&
           sodium_hex2bin(hash, HFD_TOKEN_HASH_BYTES, text.p, text.len, NULL, &len, NULL) == 0 &&
           len == HFD_TOKEN_HASH_BYTES;
}

static hfd_rc parse_line(hfd_slice line, struct hfd_token *out, struct hfd_err *err)
{
    hfd_slice fields[FIELDS], rest = line;
    hfd_rc rc;

    for (size_t i = 0; i < FIELDS; i++)
        fields[i] = hfd_slice_cut(&rest, ' ');
    *out = (struct hfd_token){.name = fields[0]};
    if (rest.len > 0 || !parse_hash(fields[4], out->hash))
        return hfd_fail(err, HFD_INVALID,
                        "expected name, scopes, created, expires and a hash of 64 hex digits");
    rc = hfd_token_name_check(fields[0], err);
    if (rc == HFD_OK)
        rc = hfd_grant_parse(fields[1], &out->grant, err);
    if (rc == HFD_OK)
        rc = hfd_time_parse(fields[2], &out->created_us, err);
    if (rc == HFD_OK && !hfd_slice_is(fields[3], "-"))
        rc = hfd_time_parse(fields[3], &out->expires_us, err);
    return rc;
}

static bool has_twin(const struct hfd_token_list *list, const struct hfd_token *token)
{
    for (size_t i = 0; i < list->count; i++)
        if (hfd_slice_eq(list->items[i].name, token->name) ||
            sodium_memcmp(list->items[i].hash, token->hash, HFD_TOKEN_HASH_BYTES) == 0)
            return true;
    return false;
}

static size_t count_lines(hfd_slice text)
{
    size_t n = 1;

    for (size_t i = 0; i < text.len; i++)
        n += text.p[i] == '\n';
    return n;
}

static hfd_rc add_token(struct hfd_token_list *list, hfd_slice line, struct hfd_arena *mem,
                        struct hfd_err *err)
{
    struct hfd_token token;
    hfd_rc rc = parse_line(line, &token, err);

    if (rc != HFD_OK)
        return rc;
    if (list->count == HFD_TOKENS_MAX)
        return hfd_fail(err, HFD_INVALID, "more than %d tokens", HFD_TOKENS_MAX);
    if (has_twin(list, &token))
        return hfd_fail(err, HFD_INVALID, "the name or the hash is given twice");
    token.name = hfd_arena_dup(mem, token.name);
    token.grant.adapters = hfd_arena_dup(mem, token.grant.adapters);
    if (token.name.p == NULL || token.grant.adapters.p == NULL)
        return hfd_fail_nomem(err, "read the tokens file");
    list->items[list->count++] = token;
    return HFD_OK;
}

hfd_rc hfd_token_list_parse(hfd_slice text, struct hfd_arena *mem, struct hfd_token_list *out,
                            struct hfd_err *err)
{
    struct hfd_err why = {0};
    hfd_rc rc = HFD_OK;

    *out = (struct hfd_token_list){
        .items = hfd_arena_array(mem, count_lines(text), sizeof(struct hfd_token))};
    if (out->items == NULL)
        return hfd_fail_nomem(err, "read the tokens file");
    for (int number = 1; text.len > 0 && rc == HFD_OK; number++) {
        hfd_slice line = hfd_slice_trim(hfd_slice_cut(&text, '\n'));

        if (line.len > 0 && line.p[line.len - 1] == '\r')
            line.len--;
        if (line.len == 0 || line.p[0] == '#')
            continue;
        rc = add_token(out, line, mem, &why);
        if (rc != HFD_OK)
            (void)hfd_fail(err, rc, "line %d: %s", number, why.msg);
    }
    if (rc != HFD_OK)
        out->count = 0;
    return rc;
}

static void format_time(struct hfd_buf *b, int64_t at_us)
{
    char text[HFD_TIME_TEXT_MAX];

    hfd_buf_add(b, (hfd_slice){text, hfd_time_format(at_us, text)});
}

void hfd_token_list_format(const struct hfd_token_list *list, struct hfd_buf *b)
{
    char hex[2 * HFD_TOKEN_HASH_BYTES + 1];

    hfd_buf_lit(b, file_head);
    for (size_t i = 0; i < list->count; i++) {
        const struct hfd_token *t = &list->items[i];

        hfd_buf_add(b, t->name);
        hfd_buf_addc(b, ' ');
        hfd_grant_format(b, &t->grant, false);
        hfd_buf_addc(b, ' ');
        format_time(b, t->created_us);
        hfd_buf_addc(b, ' ');
        if (t->expires_us != 0)
            format_time(b, t->expires_us);
        else
            hfd_buf_addc(b, '-');
        sodium_bin2hex(hex, sizeof(hex), t->hash, sizeof(t->hash));
        hfd_buf_addf(b, " %s\n", hex);
    }
}

/* ---- file ---- */

/* Others may read hashes, as in a mounted secret. Write access would be access to everything. */
static hfd_rc check_file(const char *path, const struct stat *st, struct hfd_err *err)
{
    if (!S_ISREG(st->st_mode))
        return hfd_fail(err, HFD_INVALID, "%.150s: it is not a regular file", path);
    if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return hfd_fail(err, HFD_INVALID, "%.150s: mode %04o lets others write it: chmod 0600",
                        path, (unsigned)(st->st_mode & 07777));
    if (!hfd_file_is_trusted(path, st))
        return hfd_fail(err, HFD_INVALID, "%.150s: owned by user %u, expected user %u or root",
                        path, (unsigned)st->st_uid, (unsigned)geteuid());
    return HFD_OK;
}

static hfd_rc read_text(const char *path, struct hfd_buf *text, struct hfd_err *err)
{
    struct stat st;
    hfd_rc rc;

    if (stat(path, &st) != 0) {
        const int why = errno;
        /* A link that leads nowhere is a file that cannot be read. */
        const bool none = lstat(path, &st) != 0 && (errno == ENOENT || errno == ENOTDIR);

        return hfd_fail(err, none ? HFD_NOT_FOUND : HFD_IO, "%.150s: %s", path, strerror(why));
    }
    rc = check_file(path, &st, err);
    return rc == HFD_OK ? hfd_file_read(path, "tokens file", text, err) : rc;
}

hfd_rc hfd_token_file_read(const char *path, struct hfd_arena *mem, struct hfd_token_list *out,
                           struct hfd_err *err)
{
    struct hfd_err why = {0};
    struct hfd_buf text;
    hfd_rc rc;

    *out = (struct hfd_token_list){.count = 0};
    hfd_buf_init(&text, HFD_TOKEN_FILE_MAX_BYTES);
    rc = read_text(path, &text, err);
    if (rc == HFD_OK) {
        rc = hfd_token_list_parse(hfd_buf_slice(&text), mem, out, &why);
        if (rc != HFD_OK)
            (void)hfd_fail(err, rc, "%.100s: %s", path, why.msg);
    }
    hfd_buf_fini(&text);
    return rc;
}

static hfd_rc fail_errno(struct hfd_err *err, const char *path, const char *what)
{
    return hfd_fail(err, HFD_IO, "%.150s: %s: %s", path, what, strerror(errno));
}

/* Opens the folder of a file and holds its lock: the file itself is replaced by a change. */
static hfd_rc lock_folder(const char *path, int *fd, struct hfd_err *err)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];

    if ((size_t)snprintf(folder, sizeof(folder), "%.*s",
                         slash == NULL   ? 1
                         : slash == path ? 1
                                         : (int)(slash - path),
                         slash == NULL ? "." : path) >= sizeof(folder))
        return hfd_fail(err, HFD_INVALID, "the path of the tokens file is too long");
    *fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0)
        return fail_errno(err, folder, "open the folder");
    while (flock(*fd, LOCK_EX) != 0)
        if (errno != EINTR)
            return fail_errno(err, folder, "lock the folder");
    return HFD_OK;
}

/* Replaces the file. A link, such as that of a mounted secret, is not replaced by a file. */
static hfd_rc replace(const char *path, hfd_slice text, struct hfd_err *err)
{
    struct stat st;

    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return hfd_fail(err, HFD_INVALID, "%.150s: it is not a file that can be replaced", path);
    return hfd_file_replace(path, "tokens file", text, err);
}

static hfd_rc edit_locked(const struct hfd_token_edit *edit, struct hfd_arena *mem,
                          struct hfd_err *err)
{
    struct hfd_token_list list;
    struct hfd_buf text;
    hfd_rc rc = hfd_token_file_read(edit->path, mem, &list, err);

    if (rc == HFD_NOT_FOUND && edit->create)
        rc = HFD_OK;
    if (rc == HFD_OK)
        rc = edit->change(&list, mem, edit->arg, err);
    if (rc != HFD_OK)
        return rc;
    hfd_buf_init(&text, HFD_TOKEN_FILE_MAX_BYTES);
    hfd_token_list_format(&list, &text);
    if (text.rc == HFD_OK)
        rc = replace(edit->path, hfd_buf_slice(&text), err);
    else
        rc = hfd_fail(err, text.rc, "%.150s: the file would be larger than %zu bytes", edit->path,
                      HFD_TOKEN_FILE_MAX_BYTES);
    hfd_buf_fini(&text);
    return rc;
}

hfd_rc hfd_token_file_edit(const struct hfd_token_edit *edit, struct hfd_err *err)
{
    struct hfd_arena mem;
    int fd = -1;
    hfd_rc rc = lock_folder(edit->path, &fd, err);

    hfd_arena_init(&mem, LISTS_MAX_BYTES);
    if (rc == HFD_OK)
        rc = edit_locked(edit, &mem, err);
    hfd_arena_fini(&mem);
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

/* ---- keyset ---- */

#define MEM_MAX_BYTES ((size_t)64 << 20)

static size_t slot_of(const struct hfd_keyset *set, const unsigned char *hash)
{
    size_t at;

    memcpy(&at, hash, sizeof(at));
    return at & set->mask;
}

static hfd_rc add_row(struct hfd_keyset *set, const struct hfd_token *token, struct hfd_err *err)
{
    struct hfd_keyset_row *row = &set->rows[set->count];
    size_t at = slot_of(set, token->hash);
    hfd_rc rc;

    row->token = *token;
    row->token.name = hfd_arena_dup(&set->mem, token->name);
    row->token.grant.adapters = hfd_arena_dup(&set->mem, token->grant.adapters);
    if (row->token.name.p == NULL || row->token.grant.adapters.p == NULL)
        return hfd_fail_nomem(err, "take up the tokens");
    rc = hfd_identity_make(token->name, &set->mem, &row->identity, err);
    if (rc != HFD_OK)
        return rc;
    while (set->slots[at] != NULL)
        at = (at + 1) & set->mask;
    set->slots[at] = row;
    set->count++;
    return HFD_OK;
}

hfd_rc hfd_keyset_new(const struct hfd_token_list *list, struct hfd_keyset **out,
                      struct hfd_err *err)
{
    struct hfd_keyset *set = calloc(1, sizeof(*set));
    size_t slots = 8;
    hfd_rc rc = HFD_OK;

    *out = NULL;
    if (set == NULL)
        return hfd_fail_nomem(err, "take up the tokens");
    while (slots < list->count * 2)
        slots *= 2;
    atomic_init(&set->refs, 1);
    hfd_arena_init(&set->mem, MEM_MAX_BYTES);
    set->mask = slots - 1;
    set->slots = hfd_arena_array(&set->mem, slots, sizeof(struct hfd_keyset_row *));
    set->rows = hfd_arena_array(&set->mem, list->count + 1, sizeof(*set->rows));
    if (set->slots == NULL || set->rows == NULL)
        rc = hfd_fail_nomem(err, "take up the tokens");
    for (size_t i = 0; rc == HFD_OK && i < list->count; i++)
        rc = add_row(set, &list->items[i], err);
    if (rc == HFD_OK)
        *out = set;
    else
        hfd_keyset_unref(set);
    return rc;
}

void hfd_keyset_unref(struct hfd_keyset *set)
{
    if (set == NULL || atomic_fetch_sub(&set->refs, 1) != 1)
        return;
    hfd_arena_fini(&set->mem);
    free(set);
}

struct hfd_keyset_row *hfd_keyset_find(const struct hfd_keyset *set,
                                       const unsigned char hash[HFD_TOKEN_HASH_BYTES])
{
    for (size_t at = slot_of(set, hash); set->slots[at] != NULL; at = (at + 1) & set->mask)
        if (sodium_memcmp(set->slots[at]->token.hash, hash, HFD_TOKEN_HASH_BYTES) == 0)
            return set->slots[at];
    return NULL;
}

bool hfd_keyset_has_name(const struct hfd_keyset *set, hfd_slice name)
{
    const hfd_slice s = hfd_slice_trim(name);

    for (size_t i = 0; i < set->count; i++)
        if (hfd_slice_ieq(set->rows[i].token.name, s))
            return true;
    return false;
}
