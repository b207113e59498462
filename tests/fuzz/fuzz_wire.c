/*
 * Documents of a remote HyperFleet: whatever is read is within its bounds, and what is kept of it
 * can be read again.
 */
#include "tests/fuzz/fuzz.h"

#include "driver/backend/remote/wire.h"
#include "driver/base/check.h"
#include "driver/fleet/condition.h"
#include "store/rows_report.h"

static void read_resource(const json_t *doc, enum hfd_kind kind, struct hfd_arena *mem)
{
    struct hfd_wire_resource r;
    struct hfd_conditions cs;
    hfd_rc rc = hfd_wire_resource_read(doc, kind, mem, &r, NULL);

    HFD_ASSERT(rc == HFD_OK || rc == HFD_MALFORMED || rc == HFD_NOMEM);
    if (rc != HFD_OK)
        return;
    HFD_ASSERT(hfd_wire_id_ok(r.id) && r.generation >= 1);
    HFD_ASSERT(r.deleting == (r.deleted_us != 0));
    rc = hfd_conditions_parse(r.conditions, mem, &cs, NULL);
    HFD_ASSERT(rc == HFD_OK || rc == HFD_NOMEM);
}

static void read_report(json_t *doc, struct hfd_arena *mem)
{
    struct hfd_report_row row;
    struct hfd_conditions cs;
    hfd_slice secrets;
    hfd_rc rc = hfd_wire_report_read(doc, mem, &row, &secrets, NULL);

    HFD_ASSERT(rc == HFD_OK || rc == HFD_MALFORMED || rc == HFD_NOMEM);
    if (rc != HFD_OK)
        return;
    HFD_ASSERT(row.adapter.len > 0);
    rc = hfd_conditions_parse(row.conditions, mem, &cs, NULL);
    HFD_ASSERT(rc == HFD_OK || rc == HFD_NOMEM);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const hfd_slice in = {(const char *)data, size};
    struct hfd_wire_problem problem;
    struct hfd_wire_page page;
    struct hfd_arena mem;
    json_t *doc;
    hfd_rc rc;

    hfd_arena_init(&mem, (size_t)64 * 1024 * 1024);
    rc = hfd_wire_problem_read(in, &mem, &problem, NULL);
    HFD_ASSERT((rc == HFD_OK || rc == HFD_NOMEM) && problem.words.len <= 240);
    if (hfd_json_parse(in, &doc, NULL) == HFD_OK) {
        read_resource(doc, HFD_KIND_CLUSTER, &mem);
        read_resource(doc, HFD_KIND_NODEPOOL, &mem);
        if (hfd_wire_page_read(doc, &page, NULL) == HFD_OK)
            for (size_t i = 0; i < page.count; i++)
                read_resource(json_array_get(page.items, i), HFD_KIND_NODEPOOL, &mem);
        read_report(doc, &mem);
        json_decref(doc);
    }
    hfd_arena_fini(&mem);
    return 0;
}
