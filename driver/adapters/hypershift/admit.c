/* See admit.h. */
#include "driver/adapters/hypershift/admit.h"

#include "store/rows_part.h"

#define SPEC "driver.values.cluster.spec"
#define SCRATCH_BYTES ((size_t)16 << 20)

/* ---- a cluster that is there ---- */

static hfd_rc fail_fixed(const struct hfd_ctx *c, const char *field, const char *is,
                         const char *want)
{
    return hfd_fail_field(c->err, HFD_IMMUTABLE, field,
                          "it cannot change from '%.80s' to '%.80s': expected the same value, or a "
                          "resource of another id",
                          is, want);
}

static hfd_rc compare(const struct hfd_hs_defaults *defaults, const struct hfd_ctx *c,
                      const json_t *is, const json_t *want)
{
    const char *type = hfd_hs_platform_type(is), *other = hfd_hs_platform_type(want);
    const hfd_slice namespace = hfd_hs_namespace_of(is, defaults),
                    wanted = hfd_hs_namespace_of(want, defaults);
    const hfd_slice manager = hfd_hs_management_of(is), other_manager = hfd_hs_management_of(want);

    if (strcmp(type, other) != 0)
        return fail_fixed(c, SPEC ".platform.type", type, other);
    if (!hfd_slice_eq(namespace, wanted))
        return fail_fixed(c, SPEC ".namespace", namespace.p, wanted.p);
    return hfd_slice_eq(manager, other_manager)
               ? HFD_OK
               : fail_fixed(c, SPEC ".management", manager.p, other_manager.p);
}

/* Type, namespace and management cluster of a HostedCluster cannot change. One that is gone is made
 * anew. */
static hfd_rc check_change(const struct hfd_hs_defaults *defaults, const struct hfd_ctx *c,
                           const struct hfd_call *call, const struct hfd_resource_row *was)
{
    json_t *is = NULL, *want = NULL;
    struct hfd_fleet_row row;
    hfd_rc rc = hfd_fleet_row_get(c->tx, was->cluster_id, c->mem, &row, c->err);

    if (rc == HFD_NOT_FOUND || (rc == HFD_OK && row.deleted_us != 0))
        return HFD_OK;
    if (rc == HFD_OK)
        rc = hfd_json_parse(row.spec, &is, c->err);
    if (rc == HFD_OK)
        rc = hfd_json_parse(call->input->cluster.spec, &want, c->err);
    if (rc == HFD_OK)
        rc = compare(defaults, c, is, want);
    json_decref(is);
    json_decref(want);
    return rc;
}

/* A paused cluster would never be made. */
static hfd_rc check_pause(const struct hfd_ctx *c, const struct hfd_call *call)
{
    const json_t *until;
    json_t *spec;
    bool pauses;
    hfd_rc rc = hfd_json_parse(call->input->cluster.spec, &spec, c->err);

    if (rc != HFD_OK)
        return rc;
    until = json_object_get(spec, "paused_until");
    pauses = until != NULL && !json_is_null(until) && !json_is_false(until) &&
             !(json_is_string(until) && strcasecmp(json_string_value(until), "false") == 0);
    json_decref(spec);
    return pauses ? hfd_fail_field(c->err, HFD_INVALID, SPEC ".paused_until",
                                   "expected no pause in the order that makes the cluster: "
                                   "HyperShift would not make it")
                  : HFD_OK;
}

/* ---- names ---- */

/* A NodePool's name, and the cluster and nodepool that it is for. */
struct claim {
    hfd_slice whole, cluster, pool;
    const char *field;
};

static hfd_rc fail_claimed(const struct hfd_ctx *c, const struct claim *claim,
                           const struct hfd_fleet_row *pool)
{
    struct hfd_part_row part = {.guresid = HFD_SLICE("")};
    const hfd_rc rc = hfd_part_row_by_fleet(c->tx, pool->id, c->mem, &part, c->err);

    if (rc != HFD_OK && rc != HFD_NOT_FOUND)
        return rc;
    return hfd_fail_field(c->err, HFD_INVALID, claim->field,
                          "the NodePool '%.*s' is that of nodepool '%.*s', which is %s%.*s: choose "
                          "another name",
                          HFD_SLICE_FMT(claim->whole), HFD_SLICE_FMT(pool->name),
                          rc == HFD_OK ? "of resource " : "of no resource",
                          HFD_SLICE_FMT(part.guresid));
}

/* Looks for another cluster and nodepool whose names make the same NodePool, split at `at`. */
static hfd_rc check_split(const struct hfd_ctx *c, const struct claim *claim, size_t at)
{
    const struct hfd_fleet_name cluster = {HFD_KIND_CLUSTER, HFD_SLICE(""), {claim->whole.p, at}};
    struct hfd_fleet_name pool = {.kind = HFD_KIND_NODEPOOL,
                                  .name = {claim->whole.p + at + 1, claim->whole.len - at - 1}};
    struct hfd_fleet_row row;
    hfd_rc rc;

    if (at == claim->cluster.len)
        return HFD_OK; /* this one */
    rc = hfd_fleet_row_by_name(c->tx, &cluster, c->mem, &row, c->err);
    if (rc == HFD_OK) {
        pool.owner_id = row.id;
        rc = hfd_fleet_row_by_name(c->tx, &pool, c->mem, &row, c->err);
    }
    if (rc == HFD_NOT_FOUND)
        return HFD_OK;
    return rc == HFD_OK ? fail_claimed(c, claim, &row) : rc;
}

/* "a-b" and "c", "a" and "b-c": both make the NodePool "a-b-c". */
static hfd_rc check_name(const struct hfd_ctx *c, struct claim *claim)
{
    hfd_rc rc = HFD_OK;

    claim->whole = hfd_arena_printf(c->mem, "%.*s-%.*s", HFD_SLICE_FMT(claim->cluster),
                                    HFD_SLICE_FMT(claim->pool));
    if (claim->whole.p == NULL)
        return hfd_fail_nomem(c->err, "check names");
    for (size_t i = 1; rc == HFD_OK && i + 1 < claim->whole.len; i++)
        if (claim->whole.p[i] == '-')
            rc = check_split(c, claim, i);
    return rc;
}

/* The name of the cluster that a nodepool resource asks for. Empty = it is not known. */
static hfd_rc cluster_of_pool(const struct hfd_ctx *c, const struct hfd_input *in, hfd_slice *name)
{
    struct hfd_resource_row owner;
    struct hfd_fleet_row row;
    hfd_slice id = in->cluster_id;
    hfd_rc rc = HFD_OK;

    *name = HFD_SLICE("");
    if (in->cluster_guresid.len > 0) {
        rc = hfd_resource_row_get(c->tx, in->cluster_guresid, c->mem, &owner, c->err);
        if (rc == HFD_OK)
            id = owner.cluster_id;
    }
    if (rc == HFD_OK)
        rc = hfd_fleet_row_get(c->tx, id, c->mem, &row, c->err);
    if (rc == HFD_OK)
        *name = row.name;
    return rc == HFD_NOT_FOUND ? HFD_OK : rc; /* the order is refused for that elsewhere */
}

static hfd_rc check_names(const struct hfd_ctx *c, const struct hfd_call *call)
{
    const struct hfd_input *in = call->input;
    const bool alone = in->kind == HFD_KIND_NODEPOOL;
    hfd_slice cluster = in->cluster.name;
    hfd_rc rc = alone ? cluster_of_pool(c, in, &cluster) : HFD_OK;
    char field[64];

    for (size_t i = 0; rc == HFD_OK && cluster.len > 0 && i < in->nodepool_count; i++) {
        struct claim claim = {.cluster = cluster, .pool = in->nodepools[i].name, .field = field};

        if (alone)
            (void)snprintf(field, sizeof(field), "driver.values.nodepool.name");
        else
            (void)snprintf(field, sizeof(field), "driver.values.nodepools[%zu].name", i);
        rc = check_name(c, &claim);
    }
    return rc;
}

hfd_rc hfd_hs_admit(const struct hfd_hs_defaults *defaults, const struct hfd_ctx *c,
                    const struct hfd_call *call, const struct hfd_resource_row *was)
{
    hfd_rc rc = HFD_OK;

    if (call->input->kind == HFD_KIND_CLUSTER)
        rc = was != NULL ? check_change(defaults, c, call, was) : check_pause(c, call);
    return rc == HFD_OK ? check_names(c, call) : rc;
}
