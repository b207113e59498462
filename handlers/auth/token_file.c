/* See token_file.h. */
#include "handlers/auth/token_file.h"

#include "driver/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIELDS 5
#define LISTS_MAX_BYTES ((size_t)64 << 20)

static const char file_head[] =
    "# Tokens of hyperfleet-driver: name, scopes, created, expires (- = never), BLAKE2b-256 of the "
    "token.\n"
    "# `hyperfleet-driver token` changes this file; a running server takes it up by itself.\n";

/* ---- text ---- */

static hfd_slice next_part(hfd_slice *rest, char end)
{
    const char *at = rest->len > 0 ? memchr(rest->p, end, rest->len) : NULL;
    const hfd_slice part = {rest->p, at != NULL ? (size_t)(at - rest->p) : rest->len};
    const size_t used = part.len + (at != NULL ? 1 : 0);

    rest->p += used;
    rest->len -= used;
    return part;
}

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
        fields[i] = next_part(&rest, ' ');
    *out = (struct hfd_token){.name = fields[0]};
    if (rest.len > 0 || !parse_hash(fields[4], out->hash))
        return hfd_fail(err, HFD_INVALID,
                        "expected name, scopes, created, expires and a hash of 64 hex digits");
    rc = hfd_token_name_check(fields[0], err);
    if (rc == HFD_OK)
        rc = hfd_scopes_parse(fields[1], &out->scopes, err);
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
    if (token.name.p == NULL)
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
        hfd_slice line = hfd_slice_trim(next_part(&text, '\n'));

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
        hfd_scopes_format(b, t->scopes);
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
    return HFD_OK;
}

static hfd_rc read_text(const char *path, struct hfd_buf *text, struct hfd_err *err)
{
    struct stat st;
    hfd_rc rc;

    if (stat(path, &st) != 0)
        return hfd_fail(err, errno == ENOENT || errno == ENOTDIR ? HFD_NOT_FOUND : HFD_IO,
                        "%.150s: %s", path, strerror(errno));
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

static hfd_rc write_all(int fd, hfd_slice s)
{
    while (s.len > 0) {
        const ssize_t n = write(fd, s.p, s.len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return HFD_IO;
        s = (hfd_slice){s.p + n, s.len - (size_t)n};
    }
    return fsync(fd) == 0 ? HFD_OK : HFD_IO;
}

/*
 * Gives a new file to the owner of the old one, or of the folder. So root can edit the file of a
 * server that runs as another user.
 */
static bool keep_owner(int fd, int folder_fd, const char *path)
{
    struct stat st;

    if (geteuid() != 0)
        return true;
    if (lstat(path, &st) != 0 && fstat(folder_fd, &st) != 0)
        return false;
    return fchown(fd, st.st_uid, st.st_gid) == 0;
}

/* Replaces the file. A link, such as that of a mounted secret, is not replaced by a file. */
static hfd_rc replace(const char *path, int folder_fd, hfd_slice text, struct hfd_err *err)
{
    char temp[PATH_MAX];
    struct stat st;
    hfd_rc rc;
    int fd;

    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return hfd_fail(err, HFD_INVALID, "%.150s: it is not a file that can be replaced", path);
    if ((size_t)snprintf(temp, sizeof(temp), "%s.new", path) >= sizeof(temp))
        return hfd_fail(err, HFD_INVALID, "the path of the tokens file is too long");
    (void)unlink(temp); /* of an edit that was cut short; the lock is ours */
    fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_errno(err, path, "make a file beside it");
    rc = keep_owner(fd, folder_fd, path) ? write_all(fd, text) : HFD_IO;
    if (rc != HFD_OK)
        (void)fail_errno(err, path, "write");
    (void)close(fd);
    if (rc == HFD_OK && rename(temp, path) != 0)
        rc = fail_errno(err, path, "replace");
    if (rc == HFD_OK && hfd_file_sync_parent(path) != 0)
        rc = fail_errno(err, path, "sync its folder");
    if (rc != HFD_OK)
        (void)unlink(temp);
    return rc;
}

static hfd_rc edit_locked(const struct hfd_token_edit *edit, int folder_fd, struct hfd_arena *mem,
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
        rc = replace(edit->path, folder_fd, hfd_buf_slice(&text), err);
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
        rc = edit_locked(edit, fd, &mem, err);
    hfd_arena_fini(&mem);
    if (fd >= 0)
        (void)close(fd);
    return rc;
}
