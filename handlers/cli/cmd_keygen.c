/*
 * hyperfleet-driver keygen: creates the key ring, or brings a new key into it. One server takes it
 * in one step (--rotate), replicas in two (--prepare, --activate). Never overwrites a key ring.
 * Prints no key. Thread: main.
 */
#include "driver/base/base.h"
#include "driver/core/keyring.h"
#include "handlers/cli/cli.h"
#include "store/postgres/facts.h"

#include <sys/stat.h>

/* ---- replicas ---- */

/* The second step of a rotation with replicas: which of them lack the new key. Thread: main. */

#define MEM_MAX ((size_t)1 << 20)
#define NAMES_MAX 4096

/* Prints which replicas lack the key. */
static enum hfd_exit compare(const struct hfd_pg_replicas *list, const char *id)
{
    const hfd_slice key = hfd_slice_of(id);
    enum hfd_exit status = HFD_EXIT_OK;
    struct hfd_buf names;
    size_t lacking = 0;

    hfd_buf_init(&names, NAMES_MAX);
    for (size_t i = 0; i < list->count; i++) {
        const struct hfd_pg_replica *r = &list->items[i];

        if (hfd_pg_replica_has_key(r, key))
            continue;
        hfd_buf_addf(&names, "%s%.*s (%.*s)", lacking > 0 ? ", " : "", HFD_SLICE_FMT(r->name),
                     HFD_SLICE_FMT(r->id));
        lacking++;
    }
    if (lacking > 0)
        status = hfd_cli_fail(HFD_EXIT_FOUND, "keygen",
                              "%zu of %zu live replicas lack the key %s and could not open what it "
                              "seals: %.*s. Give them the key ring, and try again",
                              lacking, list->count, id, HFD_SLICE_FMT(hfd_buf_slice(&names)));
    hfd_buf_fini(&names);
    return status;
}

/*
 * Checks that the key ring of each live replica has a key. Prints the names of those that lack it.
 * @param id  of the key, in hex
 * @return OK, FOUND (some lack it), DATA (the database cannot be read), INTERNAL
 */
static enum hfd_exit keygen_ask_replicas(const struct hfd_settings *s, const char *id)
{
    const struct hfd_store_place place = hfd_cli_place(s);
    struct hfd_pg_replicas list;
    struct hfd_err err = {0};
    struct hfd_arena mem;
    enum hfd_exit status;
    hfd_rc rc;

    hfd_arena_init(&mem, MEM_MAX);
    rc = hfd_pg_replicas_read(&place, &mem, &list, &err);
    if (rc == HFD_OK)
        status = compare(&list, id);
    else
        status = hfd_cli_fail(rc == HFD_NOMEM ? HFD_EXIT_INTERNAL : HFD_EXIT_DATA, "keygen",
                              "the replicas cannot be listed, and one may lack the key %s: %s", id,
                              err.msg);
    hfd_arena_fini(&mem);
    return status;
}

/* ---- steps ---- */

/* The steps of a key; without a flag the command makes a ring. */
enum step {
    STEP_MAKE,
    STEP_ROTATE,
    STEP_PREPARE,
    STEP_ACTIVATE
};

struct request {
    enum step step;
    struct hfd_settings *settings;
    const char *path; /* of the ring */
    bool is_new;      /* of a server that has not started yet */
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
    hfd_rc rc = HFD_OK;

    if (s->keys.len == 0) {
        if (!r->is_new && hfd_cli_need_store(s, true, &err) != HFD_OK)
            return hfd_cli_fail(HFD_EXIT_USAGE, "keygen", "%s", err.msg);
        rc = hfd_cli_make_data(s, &err);
    }
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
    rc = hfd_keyring_change(r->path, HFD_KEY_ROTATE, &hfd_rng_system, id, &err);
    if (rc != HFD_OK)
        return failed(rc, &err, rc == HFD_NOT_FOUND ? "; keygen without --rotate makes one" : "");
    hfd_buf_addf(b,
                 "added the active key %s to the key ring %s\n"
                 "A running server takes it up at SIGHUP or restart. Back the key ring up.\n"
                 "Several servers of one database need --prepare and --activate instead.\n",
                 id, r->path);
    return HFD_EXIT_OK;
}

static enum hfd_exit prepare(const struct request *r, struct hfd_buf *b)
{
    struct hfd_err err = {0};
    char id[9];
    hfd_rc rc = hfd_keyring_change(r->path, HFD_KEY_PREPARE, &hfd_rng_system, id, &err);

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
        status = keygen_ask_replicas(r->settings, key.name);
    if (status != HFD_EXIT_OK)
        return status;
    rc = hfd_keyring_change(r->path, HFD_KEY_ACTIVATE, NULL, key.name, &err);
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

enum hfd_exit hfd_cmd_keygen(int argc, const char **argv)
{
    struct request r = {.step = STEP_MAKE};
    bool steps[STEP_ACTIVATE + 1] = {false};
    const struct hfd_flag table[] = {
        {"--new", NULL, HFD_FLAG_SWITCH, &r.is_new, NULL,
         "make a key ring in DATA before the first start of its server"},
        {"--rotate", NULL, HFD_FLAG_SWITCH, &steps[STEP_ROTATE], NULL,
         "add a new active key; the others still open what they sealed"},
        {"--prepare", NULL, HFD_FLAG_SWITCH, &steps[STEP_PREPARE], NULL,
         "add a key that only opens yet: the first step with replicas"},
        {"--activate", NULL, HFD_FLAG_SWITCH, &steps[STEP_ACTIVATE], NULL,
         "make the prepared key the active one, when all live replicas have it"},
    };
    struct hfd_flags flags = {.command = "keygen", HFD_FLAG_TABLE(table), .others = HFD_FLAG_ALL};
    struct hfd_buf b;
    enum hfd_exit status;

    (void)umask(077);
    if (!hfd_cli_read(&flags, argc, argv, &status))
        return status;
    if (steps[STEP_ROTATE] + steps[STEP_PREPARE] + steps[STEP_ACTIVATE] > 1)
        return hfd_cli_fail(HFD_EXIT_USAGE, "keygen",
                            "expected one of --rotate, --prepare and --activate");
    for (size_t i = STEP_ROTATE; i <= STEP_ACTIVATE; i++)
        r.step = steps[i] ? (enum step)i : r.step;
    hfd_buf_init(&b, 16384);
    status = hfd_cli_settings(&flags, &r.settings);
    if (status == HFD_EXIT_OK)
        status = run(&r, &b);
    hfd_settings_free(r.settings);
    if (status == HFD_EXIT_OK)
        return hfd_cli_print("keygen", &b);
    hfd_buf_fini(&b);
    return status;
}
