/*
 * hyperfleet-driver keygen: creates the key ring, or brings a new key into it. One server takes it
 * in one step (--rotate), replicas in two (--prepare, --activate). Never overwrites a key ring.
 * Prints no key. Thread: main.
 */
#include "driver/base/base.h"
#include "driver/core/keyring_file.h"
#include "handlers/cli/cli.h"
#include "handlers/cli/keygen_replicas.h"

#include <sys/stat.h>

/* The steps of a key; without a flag the command makes a ring. */
enum step {
    STEP_MAKE,
    STEP_ROTATE,
    STEP_PREPARE,
    STEP_ACTIVATE
};

static const char *const flags[] = {
    [STEP_ROTATE] = "--rotate", [STEP_PREPARE] = "--prepare", [STEP_ACTIVATE] = "--activate"};
#define STEP_COUNT (sizeof(flags) / sizeof(flags[0]))

struct request {
    enum step step;
    const char **rest; /* settings */
    int rest_count;
    struct hfd_settings *settings;
    const char *path; /* of the ring */
};

static enum hfd_exit failed(hfd_rc rc, const struct hfd_err *err, const char *hint)
{
    enum hfd_exit status = HFD_EXIT_DATA;

    if (rc == HFD_INVALID)
        status = HFD_EXIT_KEYS;
    else if (rc == HFD_NOMEM)
        status = HFD_EXIT_INTERNAL;
    return hfd_cli_fail(status, "keygen", "%s%s", err->msg, hint);
}

static enum hfd_exit make(const struct request *r, struct hfd_buf *b)
{
    const struct hfd_settings *s = r->settings;
    struct hfd_err err = {0};
    hfd_rc rc = s->keys.len > 0 ? HFD_OK : hfd_cli_make_data(s, &err);

    if (rc == HFD_OK)
        rc = hfd_keyring_create(r->path, &hfd_rng_system, &err);
    if (rc != HFD_OK)
        return failed(rc, &err,
                      rc != HFD_CONFLICT             ? ""
                      : hfd_settings_has_postgres(s) ? "; keygen --prepare adds a new key to it"
                                                     : "; keygen --rotate adds a new key to it");
    hfd_buf_addf(
        b,
        "made the key ring %s\n"
        "Back it up: without it neither driver cookies nor stored secrets can be opened.\n",
        r->path);
    return HFD_EXIT_OK;
}

static const char *hint_of(hfd_rc rc)
{
    return rc == HFD_NOT_FOUND ? "; keygen without a flag makes one" : "";
}

static enum hfd_exit rotate(const struct request *r, struct hfd_buf *b)
{
    struct hfd_err err = {0};
    char id[9];
    hfd_rc rc;

    if (hfd_settings_has_postgres(r->settings))
        return hfd_cli_fail(HFD_EXIT_USAGE, "keygen",
                            "--rotate: with a PostgreSQL store other replicas could not open what "
                            "the new key seals. Expected two steps: keygen --prepare, the changed "
                            "key ring on all replicas, then keygen --activate");
    rc = hfd_keyring_rotate(r->path, &hfd_rng_system, id, &err);
    if (rc != HFD_OK)
        return failed(rc, &err, rc == HFD_NOT_FOUND ? "; keygen without --rotate makes one" : "");
    hfd_buf_addf(b,
                 "added the active key %s to the key ring %s\n"
                 "A running server takes it up at SIGHUP or restart. Back the key ring up.\n",
                 id, r->path);
    return HFD_EXIT_OK;
}

static enum hfd_exit prepare(const struct request *r, struct hfd_buf *b)
{
    struct hfd_err err = {0};
    char id[9];
    hfd_rc rc = hfd_keyring_prepare(r->path, &hfd_rng_system, id, &err);

    if (rc != HFD_OK)
        return failed(rc, &err, hint_of(rc));
    hfd_buf_addf(b,
                 "added the prepared key %s to the key ring %s\n"
                 "It opens, and seals nothing yet. Give the key ring to all replicas and back it "
                 "up; then run keygen --activate.\n",
                 id, r->path);
    return HFD_EXIT_OK;
}

/* Finds the newest prepared key. @return false if there is none */
static bool find_prepared(const struct hfd_keyring *ring, struct hfd_key_view *out)
{
    for (size_t i = hfd_keyring_count(ring); i > 0; i--) {
        hfd_keyring_view(ring, i - 1, out);
        if (out->state == HFD_KEY_PREPARED)
            return true;
    }
    return false;
}

static enum hfd_exit activate(const struct request *r, struct hfd_buf *b)
{
    struct hfd_keyring *ring = NULL;
    struct hfd_err err = {0};
    struct hfd_key_view key;
    enum hfd_exit status = HFD_EXIT_OK;
    hfd_rc rc = hfd_keyring_load(r->path, &ring, &err);

    if (rc != HFD_OK)
        return failed(rc, &err, hint_of(rc));
    if (!find_prepared(ring, &key))
        status =
            hfd_cli_fail(HFD_EXIT_DATA, "keygen",
                         "key ring %s: no key is prepared; keygen --prepare adds one", r->path);
    hfd_keyring_free(ring);
    if (status == HFD_EXIT_OK && hfd_settings_has_postgres(r->settings))
        status = hfd_keygen_ask_replicas(r->settings, key.name);
    if (status != HFD_EXIT_OK)
        return status;
    rc = hfd_keyring_activate(r->path, key.name, &err);
    if (rc != HFD_OK)
        return failed(rc, &err, "");
    hfd_buf_addf(b,
                 "made %s the active key of the key ring %s\n"
                 "The others still open what they sealed. Give the key ring to all replicas and "
                 "back it up.\n",
                 key.name, r->path);
    return HFD_EXIT_OK;
}

static enum hfd_exit run(struct request *r, struct hfd_buf *b)
{
    static enum hfd_exit (*const steps[])(const struct request *r,
                                          struct hfd_buf *b) = {[STEP_MAKE] = make,
                                                                [STEP_ROTATE] = rotate,
                                                                [STEP_PREPARE] = prepare,
                                                                [STEP_ACTIVATE] = activate};
    struct hfd_err err = {0};

    r->path = hfd_cli_keys_path(r->settings);
    if (r->path == NULL)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "keygen", "out of memory");
    if (hfd_cli_need(r->settings, HFD_SETTING_keys, &err) != HFD_OK)
        return hfd_cli_fail(HFD_EXIT_USAGE, "keygen", "%s", err.msg);
    if (hfd_base_init(&err) != HFD_OK)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "keygen", "%s", err.msg);
    return steps[r->step](r, b);
}

/* Takes the flags of the command out. The others are settings. */
static enum hfd_exit read_flags(struct request *r, int argc, const char *const *argv)
{
    for (int i = 0; i < argc; i++) {
        size_t step = STEP_ROTATE;

        while (step < STEP_COUNT && strcmp(argv[i], flags[step]) != 0)
            step++;
        if (step == STEP_COUNT)
            r->rest[r->rest_count++] = argv[i];
        else if (r->step != STEP_MAKE && r->step != (enum step)step)
            return hfd_cli_fail(HFD_EXIT_USAGE, "keygen",
                                "expected one of --rotate, --prepare and --activate");
        else
            r->step = (enum step)step;
    }
    return HFD_EXIT_OK;
}

enum hfd_exit hfd_cmd_keygen(int argc, const char *const *argv)
{
    struct request r = {.rest = calloc((size_t)argc + 1, sizeof(char *))};
    struct hfd_cli_args args;
    struct hfd_buf b;
    enum hfd_exit status;

    if (r.rest == NULL)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "keygen", "out of memory");
    (void)umask(077);
    hfd_buf_init(&b, 16384);
    status = read_flags(&r, argc, argv);
    args = (struct hfd_cli_args){.argc = r.rest_count, .argv = r.rest};
    if (status == HFD_EXIT_OK)
        status = hfd_cli_settings("keygen", &args, &r.settings);
    if (status == HFD_EXIT_OK)
        status = run(&r, &b);
    hfd_settings_free(r.settings);
    free(r.rest);
    if (status == HFD_EXIT_OK)
        return hfd_cli_print("keygen", &b);
    hfd_buf_fini(&b);
    return status;
}
