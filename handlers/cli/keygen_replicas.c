/* See keygen_replicas.h. */
#include "handlers/cli/keygen_replicas.h"

#include "store/postgres/facts.h"

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

enum hfd_exit hfd_keygen_ask_replicas(const struct hfd_settings *s, const char *id)
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
