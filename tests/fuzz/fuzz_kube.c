/*
 * Texts from Kubernetes: a kubeconfig, an answer of an API server, a line of a watch, an object. A
 * kubeconfig that is accepted names a server; an answer that is no success has a message.
 */
#include "tests/fuzz/fuzz.h"

#include "driver/adapters/hypershift/order.h"
#include "driver/adapters/hypershift/state.h"
#include "driver/adapters/hypershift/work.h"
#include "driver/base/check.h"
#include "driver/kube/client.h"
#include "driver/kube/refusal.h"

static void read_config(hfd_slice text)
{
    struct hfd_kube_access access;
    struct hfd_arena mem;
    struct hfd_err err;
    json_t *data, *credentials;

    hfd_arena_init(&mem, FUZZ_ARENA_BYTES);
    if (hfd_kubeconfig_parse(&(struct hfd_kubeconfig){text, "/k/config"}, &mem, &access, &err) ==
        HFD_OK)
        HFD_ASSERT(access.server.len > 7);
    hfd_arena_fini(&mem);
    hfd_hs_kubeconfig_split(text, &data, &credentials);
    json_decref(data);
    json_decref(credentials);
}

static void read_answer(json_t *doc)
{
    static const int statuses[] = {200, 400, 403, 404, 409, 410, 422, 429, 500};
    struct hfd_kube_refusal why;

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        hfd_kube_judge(&(struct hfd_kube_answer){.status = statuses[i], .doc = doc}, &why);
        HFD_ASSERT(why.class != HFD_KUBE_DONE || statuses[i] == 200);
        HFD_ASSERT(why.class == HFD_KUBE_DONE || why.message[0] != '\0' || doc != NULL);
    }
}

static void read_object(const json_t *doc)
{
    const struct hfd_hs_facts facts = {
        .object = doc, .generation = 1, .wants_nodes = true, .serves = true};
    struct hfd_hs_judgement out;
    const json_t *object;
    char field[64], what[160];

    (void)hfd_kube_event_of(doc, &object);
    hfd_hs_judge_cluster(&facts, &out);
    HFD_ASSERT(out.stage != HFD_HS_WAITS || out.gate != NULL);
    hfd_hs_judge_pool(&facts, &out);
    HFD_ASSERT(out.stage != HFD_HS_WAITS || out.gate != NULL);
    (void)hfd_hs_networks_check(doc, field, what);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const hfd_slice text = {(const char *)data, size};
    json_t *doc;

    read_config(text);
    if (hfd_json_parse(text, &doc, NULL) != HFD_OK)
        return 0;
    read_answer(doc);
    read_object(doc);
    json_decref(doc);
    return 0;
}
