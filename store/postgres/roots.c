#include "store/postgres/roots.h"

#include "store/postgres/array.h"

#define BYTES_MAX ((size_t)1 << 20)

/*
 * The cluster of a part, or of a HyperFleet resource, is the root of the driver resource that has
 * it, else its own. The number of a root has the schema in it: programs in one database do not
 * meet.
 *
 * It notes its snapshot for the transaction. A second run does nothing if no transaction has ended
 * since: each lookup would find the same.
 */
/* clang-format off */
const char hfd_roots_sql[] =
    "WITH named AS MATERIALIZED (SELECT DISTINCT left(n, 1) AS kind, substr(n, 2) AS id FROM unnest(?1) AS n"
    "   WHERE COALESCE(current_setting('hfd.roots', true), '') <> CAST(pg_current_snapshot() AS TEXT)),"
    " fleet_ids AS (SELECT n.id FROM named n WHERE n.kind = 'f'"
    "   UNION SELECT f.owner_id FROM named n JOIN fleet f ON f.id = n.id WHERE n.kind = 'f' AND f.owner_id <> ''"
    "   UNION SELECT f.owner_id FROM named n JOIN part p ON p.guresid = n.id JOIN fleet f ON f.id = p.fleet_id"
    "     WHERE n.kind = 'r' AND f.owner_id <> ''),"
    " roots AS (SELECT 'r' || n.id AS root FROM named n WHERE n.kind = 'r'"
    "   UNION SELECT COALESCE('r' || p.guresid, 'f' || i.id) FROM fleet_ids i LEFT JOIN part p ON p.fleet_id = i.id)"
    " SELECT count(*), set_config('hfd.roots', CAST(pg_current_snapshot() AS TEXT), true) FROM (SELECT pg_advisory_xact_lock(s.h) FROM"
    " (SELECT DISTINCT hashtextextended(root, hashtext(current_schema())) AS h FROM roots ORDER BY 1) AS s OFFSET 0) AS taken";
/* clang-format on */

void hfd_roots_clear(struct hfd_roots *roots)
{
    hfd_arena_fini(&roots->mem);
    hfd_arena_init(&roots->mem, BYTES_MAX);
    roots->count = 0;
    roots->alone = false;
}

hfd_rc hfd_roots_add(struct hfd_roots *roots, enum hfd_db_root kind, hfd_slice id,
                     struct hfd_err *err)
{
    const char *prefix = kind == HFD_DB_ROOT_RESOURCE ? "r" : "f";
    hfd_slice name;

    if (roots->count == HFD_ROOTS_MAX)
        roots->alone = true;
    if (roots->alone)
        return HFD_OK;
    name = hfd_arena_printf(&roots->mem, "%s%.*s", prefix, HFD_SLICE_FMT(id));
    if (name.p == NULL)
        return hfd_fail_nomem(err, "a lock of the store");
    roots->names[roots->count++] = name;
    return HFD_OK;
}

hfd_slice hfd_roots_array(const struct hfd_roots *roots, struct hfd_arena *mem)
{
    struct hfd_buf b;
    hfd_slice out;

    hfd_buf_init(&b, BYTES_MAX);
    hfd_pg_array_begin(&b, HFD_VALUE_TEXT, roots->count);
    for (size_t i = 0; i < roots->count; i++)
        hfd_pg_array_add(&b,
                         &(struct hfd_value){HFD_VALUE_TEXT, false, {.bytes = roots->names[i]}});
    out = b.rc == HFD_OK ? hfd_arena_dup(mem, hfd_buf_slice(&b)) : HFD_SLICE_NONE;
    hfd_buf_fini(&b);
    return out;
}
