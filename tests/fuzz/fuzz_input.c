/*
 * PUT bodies: what is accepted obeys HyperFleet's rules, and the same body always gives the same
 * canonical input.
 */
#include "tests/fuzz/fuzz.h"

#include "driver/base/check.h"
#include "driver/core/input.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const hfd_slice cluster_types[] = {HFD_SLICE("hyperfleet-cluster"),
                                          HFD_SLICE("k8s-cluster")};
static const hfd_slice nodepool_types[] = {HFD_SLICE("hyperfleet-nodepool")};
static const hfd_slice overrides[] = {HFD_SLICE("cluster.spec.region"), HFD_SLICE("cluster.name")};
static const struct hfd_input_rules rules = {
    .cluster_types = cluster_types,
    .cluster_type_count = COUNT(cluster_types),
    .nodepool_types = nodepool_types,
    .nodepool_type_count = COUNT(nodepool_types),
    .overrides = overrides,
    .override_count = COUNT(overrides),
};

static void check_part(const struct hfd_input_part *part, size_t name_max)
{
    HFD_ASSERT(part->name.len >= 3 && part->name.len <= name_max);
    HFD_ASSERT(part->spec.len >= 2 && part->spec.p[0] == '{');
    HFD_ASSERT(part->labels.len >= 2 && part->labels.p[0] == '{');
}

static void check_input(const struct hfd_input *in)
{
    HFD_ASSERT(in->kind == HFD_KIND_CLUSTER || in->kind == HFD_KIND_NODEPOOL);
    if (in->kind == HFD_KIND_CLUSTER)
        check_part(&in->cluster, 53);
    else
        HFD_ASSERT(in->nodepool_count == 1 &&
                   (in->cluster_id.len > 0) != (in->cluster_guresid.len > 0));
    HFD_ASSERT(in->nodepool_count <= HFD_INPUT_NODEPOOLS_MAX);
    for (size_t i = 0; i < in->nodepool_count; i++)
        check_part(&in->nodepools[i], 15);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hfd_slice body = {(const char *)data, size};
    struct hfd_arena mem;
    struct hfd_input first, second;
    struct hfd_err err;

    hfd_arena_init(&mem, FUZZ_ARENA_BYTES);
    if (hfd_input_parse(&(struct hfd_input_source){&rules, HFD_SLICE("guresid-1"), 0, body}, &mem,
                        &first, &err) == HFD_OK) {
        check_input(&first);
        HFD_ASSERT(hfd_input_parse(&(struct hfd_input_source){&rules, HFD_SLICE("guresid-1"),
                                                              (int)first.kind, body},
                                   &mem, &second, &err) == HFD_OK);
        HFD_ASSERT(hfd_slice_eq(first.canonical, second.canonical));
    }
    hfd_arena_fini(&mem);
    return 0;
}
