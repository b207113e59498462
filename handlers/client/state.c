/* See state.h. */
#include "handlers/client/state.h"

#include "driver/base/file.h"
#include "driver/base/jsonx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#define STATE_MAX_BYTES ((size_t)64 * 1024 * 1024)
#define SUFFIX_MAX 16

hfd_rc hfd_client_state_find(const char *path, struct hfd_client_state *out, struct hfd_err *err)
{
    const char *home = getenv("XDG_STATE_HOME");
    int n;

    if (path != NULL)
        n = snprintf(out->path, sizeof(out->path), "%s", path);
    else if (home != NULL && home[0] == '/')
        n = snprintf(out->path, sizeof(out->path), "%s/hyperfleet-driver/cookies.json", home);
    else if ((home = getenv("HOME")) != NULL && home[0] == '/')
        n = snprintf(out->path, sizeof(out->path), "%s/.local/state/hyperfleet-driver/cookies.json",
                     home);
    else
        return hfd_fail(err, HFD_INVALID, "there is no home folder: expected --state FILE");
    if (n < 0 || (size_t)n >= sizeof(out->path))
        return hfd_fail(err, HFD_INVALID, "the path of the state file is too long");
    return HFD_OK;
}

static hfd_rc fail_errno(struct hfd_err *err, const char *what, const char *path)
{
    return hfd_fail(err, HFD_IO, "%s %s: %s", what, path, strerror(errno));
}

/* Reads the document; an empty one when there is no file. */
static hfd_rc load(const struct hfd_client_state *state, json_t **out, struct hfd_err *err)
{
    struct hfd_err why;
    struct hfd_buf b;
    hfd_rc rc;

    *out = NULL;
    if (access(state->path, F_OK) != 0 && errno == ENOENT) {
        *out = json_object();
        return *out != NULL ? HFD_OK : hfd_fail_nomem(err, "read the state file");
    }
    hfd_buf_init(&b, STATE_MAX_BYTES);
    rc = hfd_file_read(state->path, "state file", &b, err);
    if (rc == HFD_OK && hfd_json_parse(hfd_buf_slice(&b), out, &why) != HFD_OK)
        rc = hfd_fail(err, HFD_INVALID, "state file %s: %s", state->path, why.msg);
    if (rc == HFD_OK && !json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        rc = hfd_fail(err, HFD_INVALID, "state file %s: expected an object", state->path);
    }
    hfd_buf_fini(&b);
    return rc;
}

hfd_rc hfd_client_state_read(const struct hfd_client_state *state,
                             const struct hfd_client_resource *resource, struct hfd_buf *out,
                             struct hfd_err *err)
{
    json_t *doc, *cookie;
    hfd_rc rc = load(state, &doc, err);

    if (rc != HFD_OK)
        return rc;
    cookie = json_object_get(json_object_get(doc, resource->url), resource->id);
    hfd_buf_add(out, hfd_slice_of(json_string_value(cookie)));
    json_decref(doc);
    return out->rc == HFD_OK ? HFD_OK : hfd_fail_nomem(err, "read the state file");
}

/* Makes the folders above a file, for this user alone. */
static hfd_rc make_folders(const char *path, struct hfd_err *err)
{
    char folder[HFD_CLIENT_PATH_MAX];

    (void)snprintf(folder, sizeof(folder), "%s", path);
    for (char *p = strchr(folder + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
        *p = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            return fail_errno(err, "create", folder);
        *p = '/';
    }
    return HFD_OK;
}

static hfd_rc write_all(int fd, hfd_slice text)
{
    while (text.len > 0) {
        const ssize_t n = write(fd, text.p, text.len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return HFD_IO;
        text.p += n;
        text.len -= (size_t)n;
    }
    return fsync(fd) == 0 ? HFD_OK : HFD_IO;
}

/* Replaces the file: the new one is whole before it has the name. */
static hfd_rc replace(const struct hfd_client_state *state, const json_t *doc, struct hfd_err *err)
{
    char temp[HFD_CLIENT_PATH_MAX + SUFFIX_MAX];
    struct hfd_buf b;
    hfd_slice text;
    hfd_rc rc;
    int fd;

    (void)snprintf(temp, sizeof(temp), "%s.new", state->path);
    hfd_buf_init(&b, STATE_MAX_BYTES);
    hfd_json_dump(&b, doc);
    rc = hfd_buf_finish(&b, &text, err);
    fd = rc == HFD_OK ? open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (rc == HFD_OK && (fd < 0 || write_all(fd, text) != HFD_OK))
        rc = fail_errno(err, "write", temp);
    if (fd >= 0 && close(fd) != 0 && rc == HFD_OK)
        rc = fail_errno(err, "write", temp);
    if (rc == HFD_OK && (rename(temp, state->path) != 0 || hfd_file_sync_parent(state->path) != 0))
        rc = fail_errno(err, "write", state->path);
    hfd_buf_fini(&b);
    return rc;
}

/* Puts a cookie into the document, or takes it out. */
static hfd_rc change(json_t *doc, const struct hfd_client_resource *resource, hfd_slice cookie,
                     struct hfd_err *err)
{
    json_t *of_url = json_object_get(doc, resource->url);

    if (cookie.len == 0) {
        (void)json_object_del(of_url, resource->id);
        if (json_object_size(of_url) == 0)
            (void)json_object_del(doc, resource->url);
        return HFD_OK;
    }
    if (!json_is_object(of_url)) {
        of_url = json_object();
        if (json_object_set_new(doc, resource->url, of_url) != 0)
            return hfd_fail_nomem(err, "keep a cookie");
    }
    return json_object_set_new(of_url, resource->id, json_stringn(cookie.p, cookie.len)) == 0
               ? HFD_OK
               : hfd_fail_nomem(err, "keep a cookie");
}

hfd_rc hfd_client_state_write(const struct hfd_client_state *state,
                              const struct hfd_client_resource *resource, hfd_slice cookie,
                              struct hfd_err *err)
{
    char lock[HFD_CLIENT_PATH_MAX + SUFFIX_MAX];
    json_t *doc = NULL;
    hfd_rc rc = make_folders(state->path, err);
    int fd;

    if (rc != HFD_OK)
        return rc;
    (void)snprintf(lock, sizeof(lock), "%s.lock", state->path);
    fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) != 0)
        rc = fail_errno(err, "lock", lock);
    if (rc == HFD_OK)
        rc = load(state, &doc, err);
    if (rc == HFD_OK)
        rc = change(doc, resource, cookie, err);
    if (rc == HFD_OK)
        rc = replace(state, doc, err);
    json_decref(doc);
    if (fd >= 0)
        (void)close(fd);
    return rc;
}
