/*
 * Request bytes. The library's own parser reads everything that the door lets through in the same
 * way: method, target, end of head, body and its end. The verdict is the same for any division of
 * the bytes into pieces. So no bytes can mean one thing to the door and another behind it.
 */
#include "tests/fuzz/fuzz.h"

#include "driver/base/check.h"
#include "handlers/http/head.h"
#include "handlers/http/route.h"

#define BODY_MAX_BYTES 4096
#define LIBRARY_HEADERS_MAX 100

/* picohttpparser inside libh2o 2.2.5: exported, without a public header. */
struct phr_header {
    const char *name;
    size_t name_len;
    const char *value;
    size_t value_len;
};

struct phr_chunked_decoder {
    size_t bytes_left_in_chunk;
    char consume_trailer;
    char hex_count;
    char state;
};

int phr_parse_request(const char *buf, size_t len, const char **method, size_t *method_len,
                      const char **path, size_t *path_len, int *minor_version,
                      struct phr_header *headers, size_t *num_headers, size_t last_len);
ssize_t phr_decode_chunked(struct phr_chunked_decoder *decoder, char *buf, size_t *bufsz);

struct reading {
    enum hfd_head_verdict verdict;
    struct hfd_head_fault fault;
    struct hfd_head head;
    size_t body_raw_bytes;
    uint64_t body_bytes;
};

static enum hfd_head_verdict walk(const char *bytes, size_t len, size_t step, struct reading *r)
{
    enum hfd_head_verdict verdict = HFD_HEAD_MORE;
    struct hfd_chunks chunks = {0};
    size_t at = 0;

    while (at < len && verdict == HFD_HEAD_MORE) {
        size_t used, give = len - at < step ? len - at : step;

        verdict = hfd_chunks_walk(&chunks, (hfd_slice){bytes + at, give}, BODY_MAX_BYTES, &used,
                                  &r->fault);
        at += used;
    }
    r->body_raw_bytes = at;
    r->body_bytes = chunks.body_bytes;
    return verdict;
}

static struct reading read_in_steps(const char *bytes, size_t len, size_t step)
{
    struct reading r = {.verdict = HFD_HEAD_MORE};
    struct hfd_head_scan scan = {0};

    for (size_t have = 0; have < len && r.verdict == HFD_HEAD_MORE;) {
        have = len - have < step ? len : have + step;
        r.verdict = hfd_head_scan(&scan, bytes, have, &r.fault);
    }
    if (r.verdict == HFD_HEAD_OK)
        r.verdict = hfd_head_parse(&scan, bytes, &r.head, &r.fault);
    if (r.verdict == HFD_HEAD_OK && r.head.framing == HFD_FRAMING_CHUNKED)
        r.verdict = walk(bytes + r.head.bytes, len - r.head.bytes, step, &r);
    return r;
}

static void compare_head(const char *bytes, const struct reading *r)
{
    struct phr_header headers[LIBRARY_HEADERS_MAX];
    size_t count = LIBRARY_HEADERS_MAX, method_len, path_len;
    const char *method, *path;
    int minor;

    HFD_ASSERT(phr_parse_request(bytes, r->head.bytes, &method, &method_len, &path, &path_len,
                                 &minor, headers, &count, 0) == (int)r->head.bytes);
    HFD_ASSERT(hfd_slice_eq((hfd_slice){method, method_len}, r->head.method));
    HFD_ASSERT(hfd_slice_eq((hfd_slice){path, path_len}, r->head.target));
    HFD_ASSERT(minor == r->head.minor);
}

static void compare_chunks(const char *bytes, size_t len, const struct reading *r)
{
    struct phr_chunked_decoder decoder = {.consume_trailer = 1};
    char *copy = malloc(len + 1);
    size_t decoded = len;
    ssize_t left;

    HFD_ASSERT(copy != NULL);
    memcpy(copy, bytes, len);
    left = phr_decode_chunked(&decoder, copy, &decoded);
    HFD_ASSERT(left >= 0 && (size_t)left == len - r->body_raw_bytes);
    HFD_ASSERT(decoded == r->body_bytes);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    struct reading whole = read_in_steps(bytes, size, size),
                   pieces = read_in_steps(bytes, size, 1 + size % 7);
    struct hfd_head_scan start = {0};
    hfd_slice method, path;

    HFD_ASSERT(whole.verdict == pieces.verdict && whole.fault.status == pieces.fault.status);
    HFD_ASSERT(whole.verdict != HFD_HEAD_OK || (whole.head.bytes == pieces.head.bytes &&
                                                whole.body_raw_bytes == pieces.body_raw_bytes));
    HFD_ASSERT(whole.verdict != HFD_HEAD_BAD || whole.fault.reason != NULL);
    hfd_head_peek(&start, bytes, size, &method, &path);
    if (whole.verdict == HFD_HEAD_OK) {
        struct hfd_arena mem;
        struct hfd_path split;
        hfd_rc rc;

        compare_head(bytes, &whole);
        if (whole.head.framing == HFD_FRAMING_CHUNKED)
            compare_chunks(bytes + whole.head.bytes, size - whole.head.bytes, &whole);
        hfd_arena_init(&mem, FUZZ_ARENA_BYTES);
        rc = hfd_path_split(whole.head.path, &mem, &split, NULL);
        HFD_ASSERT(rc == HFD_OK || rc == HFD_BAD_REQUEST);
        hfd_arena_fini(&mem);
    }
    return 0;
}
