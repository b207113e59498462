/*
 * Files that the program reads, such as tokens, keys, SQLite's log and the client's state. Also
 * documents that it makes others of: a driver's hints, orders for HyperShift. The first byte
 * chooses the parser.
 */
#include "tests/fuzz/fuzz.h"

#include "driver/adapters/hypershift/manifest.h"
#include "driver/base/check.h"
#include "driver/base/log.h"
#include "driver/base/steady.h"
#include "driver/core/backup_note.h"
#include "driver/core/input.h"
#include "driver/core/keyring.h"
#include "handlers/auth/token.h"
#include "handlers/client/form.h"
#include "handlers/client/http.h"
#include "handlers/client/order.h"
#include "schemas/validate.h"
#include "schemas/documents.h"
#include "store/sqlite/folder.h"

#include <sys/mman.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Gives the name of a file of this content. @return its descriptor */
static int make_file(hfd_slice content, char path[64])
{
    const int fd = memfd_create("file", MFD_CLOEXEC);

    HFD_ASSERT(fd >= 0 && write(fd, content.p, content.len) == (ssize_t)content.len);
    (void)snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

/* An accepted file is written as one that has the same tokens. */
static void tokens(hfd_slice in, struct hfd_arena *mem)
{
    struct hfd_token_list first, second;
    struct hfd_buf b;
    hfd_slice text;

    if (hfd_token_list_parse(in, mem, &first, NULL) != HFD_OK)
        return;
    HFD_ASSERT(first.count <= HFD_TOKENS_MAX);
    hfd_buf_init(&b, 2 * HFD_TOKEN_FILE_MAX_BYTES);
    hfd_token_list_format(&first, &b);
    HFD_ASSERT(hfd_buf_finish(&b, &text, NULL) == HFD_OK);
    HFD_ASSERT(hfd_token_list_parse(text, mem, &second, NULL) == HFD_OK);
    HFD_ASSERT(first.count == second.count);
    for (size_t i = 0; i < first.count; i++)
        HFD_ASSERT(hfd_slice_eq(first.items[i].name, second.items[i].name) &&
                   first.items[i].grant.scopes == second.items[i].grant.scopes &&
                   hfd_slice_eq(first.items[i].grant.adapters, second.items[i].grant.adapters) &&
                   memcmp(first.items[i].hash, second.items[i].hash, HFD_TOKEN_HASH_BYTES) == 0);
    hfd_buf_fini(&b);
}

/* An accepted ring has one active key, and each change of it is accepted too. */
static void keys(hfd_slice in, struct hfd_arena *mem)
{
    struct hfd_key_edit edit = {.rng = &hfd_rng_system, .old = in};
    struct hfd_key_list list;
    struct hfd_key_text text;
    hfd_rc rc;

    (void)mem;
    if (hfd_key_list_parse(in, &list, NULL) != HFD_OK)
        return;
    HFD_ASSERT(list.count > 0 && list.count <= HFD_KEYS_MAX && list.active < list.count);
    hfd_secret_fini(&list.masters);
    for (int change = HFD_KEY_ROTATE; change <= HFD_KEY_ACTIVATE; change++) {
        edit.change = (enum hfd_key_change)change;
        edit.id[0] = '\0';
        HFD_ASSERT(hfd_key_text_init(&text, NULL) == HFD_OK);
        rc = hfd_key_text_change(&text, &edit, NULL);
        if (rc == HFD_OK) {
            HFD_ASSERT(hfd_key_list_parse(hfd_key_text_slice(&text), &list, NULL) == HFD_OK);
            hfd_secret_fini(&list.masters);
        } else {
            HFD_ASSERT(rc == HFD_LIMIT || rc == HFD_CONFLICT);
        }
        hfd_key_text_fini(&text);
    }
}

static void backup_note(hfd_slice in, struct hfd_arena *mem)
{
    char text[HFD_BACKUP_NOTE_BYTES], again[HFD_BACKUP_NOTE_BYTES];
    struct hfd_backup_note note, second;
    struct hfd_backup_sum sum;

    memset(text, ' ', sizeof(text));
    text[sizeof(text) - 1] = '\n';
    memcpy(text, in.p, in.len < sizeof(text) - 1 ? in.len : sizeof(text) - 1);
    hfd_backup_sum_init(&sum);
    (void)hfd_backup_note_matches(text, &sum);
    if (hfd_backup_note_parse(text, mem, &note, NULL) != HFD_OK ||
        hfd_backup_note_format(&note, &sum, again, NULL) != HFD_OK)
        return;
    HFD_ASSERT(hfd_backup_note_parse(again, mem, &second, NULL) == HFD_OK);
    HFD_ASSERT(note.bytes == second.bytes && note.key_count == second.key_count);
}

/* {"schema": ..., "document": ...} */
static void schemas(hfd_slice in, struct hfd_arena *mem)
{
    struct hfd_schema *schema;
    struct hfd_violations found;
    json_t *doc;

    if (hfd_json_parse(in, &doc, NULL) != HFD_OK)
        return;
    if (hfd_schema_compile(json_object_get(doc, "schema"), HFD_SLICE(""), &schema, NULL) ==
        HFD_OK) {
        const struct hfd_schema_use use = {.schema = schema, .root = "spec"};
        json_t *document = json_object_get(doc, "document");
        hfd_rc rc;

        if (document != NULL) {
            rc = hfd_schema_validate(&use, document, mem, &found, NULL);
            HFD_ASSERT((rc == HFD_INVALID) == (found.count > 0));
            rc = hfd_schema_validate_numbers(&use, document, mem, &found, NULL);
            HFD_ASSERT((rc == HFD_INVALID) == (found.count > 0));
        }
    }
    hfd_schema_free(schema);
    json_decref(doc);
}

/* Pages of 512 bytes, the smallest that there are. */
static void write_ahead_log(hfd_slice in, struct hfd_arena *mem)
{
    unsigned char header[HFD_WAL_HEADER_BYTES] = {0};
    struct hfd_wal_scan scan;
    size_t at = sizeof(header);

    (void)mem;
    memcpy(header, in.p, in.len < sizeof(header) ? in.len : sizeof(header));
    hfd_wal_scan_begin(&scan, header, 512);
    HFD_ASSERT(scan.page_bytes >= 512 && scan.page_bytes <= 65536);
    for (size_t step = HFD_WAL_FRAME_HEADER_BYTES + scan.page_bytes; at + step <= in.len;
         at += step)
        hfd_wal_scan_frame(&scan, (const unsigned char *)in.p + at);
    HFD_ASSERT(hfd_wal_scan_verdict(&scan) <= HFD_WAL_DAMAGED);
    HFD_ASSERT(scan.broken || scan.commits_behind == 0);
}

/* The time stays within ten years of the wall clock. */
static void clock_file(hfd_slice in, struct hfd_arena *mem)
{
    const int64_t ten_years_us = INT64_C(3660) * 86400 * HFD_US_PER_S;
    struct hfd_steady steady;
    char path[64];
    int64_t apart_us;
    const int fd = make_file(in, path);

    (void)mem;
    hfd_steady_init(&steady, &hfd_clock_boot);
    HFD_ASSERT(hfd_steady_resume(&steady, path, NULL) == HFD_IO); /* it cannot save there */
    apart_us = hfd_clock_wall_us(&steady.clock) - hfd_clock_wall_us(&hfd_clock_boot);
    HFD_ASSERT(apart_us < ten_years_us && apart_us > -ten_years_us);
    close(fd);
}

static void state_file(hfd_slice in, struct hfd_arena *mem)
{
    struct hfd_client_state state;
    struct hfd_buf b;
    const int fd = make_file(in, state.path);
    hfd_rc rc;

    (void)mem;
    hfd_buf_init(&b, FUZZ_ARENA_BYTES);
    rc = hfd_client_state_read(&state, &(struct hfd_client_resource){"http://127.0.0.1:1/", "id"},
                               &b, NULL);
    HFD_ASSERT(rc == HFD_OK || hfd_buf_slice(&b).len == 0);
    hfd_buf_fini(&b);
    close(fd);
}

/* The client reads a driver's answer: the lines of its head, or its document. */
static void answers(hfd_slice in, struct hfd_arena *mem)
{
    static const struct hfd_progress_times times = {5 * HFD_US_PER_S, 60 * HFD_US_PER_S};
    struct hfd_http_answer answer = {.status = 202};
    struct hfd_buf b;
    json_t *doc;

    (void)mem;
    hfd_buf_init(&answer.head, FUZZ_ARENA_BYTES);
    hfd_buf_add(&answer.head, in);
    HFD_ASSERT(hfd_http_header(&answer, "Retry-After").len <= in.len);
    hfd_buf_fini(&answer.head);
    if (hfd_json_parse(in, &doc, NULL) != HFD_OK)
        return;
    hfd_buf_init(&b, FUZZ_ARENA_BYTES);
    hfd_progress_line(&b, doc, &times, 80);
    hfd_form_write(&b, HFD_FORM_YAML, doc, "id");
    hfd_form_write(&b, HFD_FORM_JSON, doc, "id");
    hfd_buf_fini(&b);
    json_decref(doc);
}

static void is_json(hfd_rc rc, hfd_slice text)
{
    json_t *doc;

    HFD_ASSERT(rc == HFD_OK || rc == HFD_NOMEM);
    if (rc != HFD_OK || text.len == 0)
        return;
    HFD_ASSERT(hfd_json_parse(text, &doc, NULL) == HFD_OK && json_is_object(doc));
    json_decref(doc);
}

/* driver.values of an order: whether or not it is refused, it makes objects that are JSON. */
static void hypershift_order(hfd_slice in, struct hfd_arena *mem)
{
    static struct hfd_hs_checker checker = {.defaults = {.namespace = {"clusters", 8}}};
    struct hfd_violations *found = hfd_arena_alloc(mem, sizeof(*found));
    struct hfd_input_errors errors = {.found = found, .mem = mem};
    struct hfd_hs_source source = {.defaults = &checker.defaults,
                                   .guresid = HFD_SLICE("g"),
                                   .cluster_id = HFD_SLICE("c"),
                                   .cluster_name = HFD_SLICE("c-one"),
                                   .generation = 1};
    struct hfd_err err;
    hfd_slice out;
    json_t *values, *pool;
    size_t i;

    if (checker.schemas.cluster == NULL)
        HFD_ASSERT(hfd_schema_hypershift(&checker.schemas, &err) == HFD_OK);
    if (found == NULL || hfd_json_parse(in, &values, NULL) != HFD_OK)
        return;
    found->count = 0;
    if (json_is_object(values)) {
        const struct hfd_ordered order = {.kind = HFD_KIND_CLUSTER,
                                          .cluster_name = source.cluster_name,
                                          .values = values,
                                          .secrets = json_object_get(values, "secrets")};

        const hfd_rc rc = hfd_hs_order_check(&checker, &order, &errors, &err);

        HFD_ASSERT(rc == HFD_OK || rc == HFD_LIMIT || rc == HFD_NOMEM);
        source.secrets = order.secrets;
        source.cluster_spec = json_object_get(json_object_get(values, "cluster"), "spec");
        is_json(hfd_hs_hosted_cluster_manifest(&source, mem, &out, &err), out);
        is_json(hfd_hs_pull_secret_manifest(&source, mem, &out, &err), out);
        is_json(hfd_hs_ssh_key_manifest(&source, mem, &out, &err), out);
        source.nodepool_id = source.nodepool_name = HFD_SLICE("np");
        json_array_foreach (json_object_get(values, "nodepools"), i, pool) {
            source.nodepool_spec = json_object_get(pool, "spec");
            is_json(hfd_hs_node_pool_manifest(&source, mem, &out, &err), out);
        }
    }
    json_decref(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        char chosen_by;
        void (*parse)(hfd_slice in, struct hfd_arena *mem);
    } parsers[] = {{'t', tokens},          {'k', keys},       {'n', backup_note}, {'s', schemas},
                   {'w', write_ahead_log}, {'c', clock_file}, {'f', state_file},  {'a', answers},
                   {'h', hypershift_order}};
    struct hfd_arena mem;

    hfd_log_set_level(HFD_LOG_ERROR);
    for (size_t i = 0; size > 0 && i < COUNT(parsers); i++) {
        if (data[0] != (uint8_t)parsers[i].chosen_by)
            continue;
        hfd_arena_init(&mem, FUZZ_ARENA_BYTES);
        parsers[i].parse((hfd_slice){(const char *)data + 1, size - 1}, &mem);
        hfd_arena_fini(&mem);
    }
    return 0;
}
