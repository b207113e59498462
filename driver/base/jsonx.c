/* JSON over jansson. See jsonx.h. */
#include "driver/base/jsonx.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver/base/foreign.h"

/* Documents that the program builds may be deeper than documents that it accepts. */
#define DUMP_DEPTH_MAX (4 * HFD_JSON_DEPTH_MAX)

/*
 * jansson's parser does not check whether its text buffer could grow. Without memory it goes on,
 * writes beyond the buffer, or aborts the process. Therefore each parse has a reserve. When memory
 * is out, the buffer gets its next size from there; it doubles, beginning with 32 bytes. Any other
 * request then fails, and the parse ends in an orderly way. Its result is thrown away.
 */
#define GROWN_MIN_BYTES 32u
#define RESERVE_FACTOR 4u /* all sizes of the buffer together are less than four times its text */
#define RESERVE_EXTRA_BYTES 1024u

static json_malloc_t inner_malloc;
static json_free_t inner_free;
static _Thread_local bool memory_failed;
static _Thread_local struct {
    char *bytes; /* NULL = no parse is running */
    size_t size, used;
} spare;

static hfd_rc open_reserve(size_t text_len)
{
    if (__builtin_mul_overflow(text_len, (size_t)RESERVE_FACTOR, &spare.size) ||
        __builtin_add_overflow(spare.size, (size_t)RESERVE_EXTRA_BYTES, &spare.size))
        return HFD_NOMEM;
    spare.used = 0;
    spare.bytes = malloc(spare.size);
    return spare.bytes != NULL ? HFD_OK : HFD_NOMEM;
}

static void close_reserve(void)
{
    free(spare.bytes);
    spare.bytes = NULL;
    spare.size = 0;
}

static void *from_reserve(size_t n)
{
    void *p;

    if (n < GROWN_MIN_BYTES || (n & (n - 1)) != 0 || n > spare.size - spare.used)
        return NULL;
    p = spare.bytes + spare.used;
    spare.used += n;
    return p;
}

static void *watched_malloc(size_t n)
{
    void *p = inner_malloc(n);

    if (p != NULL)
        return p;
    memory_failed = true;
    return spare.bytes != NULL ? from_reserve(n) : NULL;
}

static void watched_free(void *p)
{
    if ((uintptr_t)p - (uintptr_t)spare.bytes >= spare.size)
        inner_free(p);
}

void hfd_json_watch_memory(void)
{
    json_get_alloc_funcs(&inner_malloc, &inner_free);
    json_set_alloc_funcs(watched_malloc, watched_free);
}

/*
 * Depth and number of values, counted on the bytes before parsing. Both are exact for a valid text;
 * an invalid text fails in the parser.
 */
struct scan {
    int depth, line, column;
    size_t nodes;
    bool in_string, escaped, just_opened;
};

static void scan_structure(struct scan *s, char c)
{
    bool closes = c == ']' || c == '}';

    if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
        return;
    if (s->just_opened && !closes)
        s->nodes++; /* the first member; each further one has a comma before it */
    s->just_opened = c == '[' || c == '{';
    if (s->just_opened)
        s->depth++;
    else if (closes && s->depth > 0)
        s->depth--;
    else if (c == ',' || c == ':')
        s->nodes++;
    s->in_string = c == '"';
}

static void scan_string(struct scan *s, char c)
{
    s->in_string = s->escaped || c != '"';
    s->escaped = !s->escaped && c == '\\';
}

static hfd_rc check_bounds(hfd_slice text, struct hfd_err *err)
{
    struct scan s = {.line = 1, .nodes = 1};

    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];

        s.column++;
        if (c == '\n') {
            s.line++;
            s.column = 0;
        }
        if (!s.in_string)
            scan_structure(&s, c);
        else
            scan_string(&s, c);
        if (c == '\0') /* jansson takes a NUL behind a number for the end of the text */
            return hfd_fail(err, HFD_MALFORMED, "line %d, column %d: a NUL byte", s.line, s.column);
        if (s.depth > HFD_JSON_DEPTH_MAX)
            return hfd_fail(err, HFD_MALFORMED, "line %d, column %d: nested deeper than %d levels",
                            s.line, s.column, HFD_JSON_DEPTH_MAX);
        if (s.nodes > HFD_JSON_NODES_MAX)
            return hfd_fail(err, HFD_MALFORMED, "line %d, column %d: more than %d values and keys",
                            s.line, s.column, HFD_JSON_NODES_MAX);
    }
    return HFD_OK;
}

#define PATH_MAX_CHARS 128 /* of a path in a message; a longer one is cut */

/* Adds to a path in front of what stands there already; `rest` is its length. */
static size_t put_before(char path[PATH_MAX_CHARS], size_t rest, const char *step)
{
    const size_t len = strlen(step), dot = rest > 0 && path[0] != '[';

    if (len + dot + rest >= PATH_MAX_CHARS)
        return rest;
    memmove(path + len + dot, path, rest);
    memcpy(path, step, len);
    if (dot)
        path[len] = '.';
    return len + dot + rest;
}

/* Finds a text with a NUL. @return the length of its path, from `v` on; -1 = there is none */
static ptrdiff_t find_nul(const json_t *v, char path[PATH_MAX_CHARS])
{
    const json_t *item;
    const char *key;
    char index[24];
    size_t i;

    if (json_is_string(v))
        return memchr(json_string_value(v), '\0', json_string_length(v)) != NULL ? 0 : -1;
    json_object_foreach ((json_t *)(uintptr_t)v, key, item) {
        const ptrdiff_t rest = find_nul(item, path);

        if (rest >= 0)
            return (ptrdiff_t)put_before(path, (size_t)rest, key);
    }
    json_array_foreach (v, i, item) {
        const ptrdiff_t rest = find_nul(item, path);

        (void)snprintf(index, sizeof(index), "[%zu]", i);
        if (rest >= 0)
            return (ptrdiff_t)put_before(path, (size_t)rest, index);
    }
    return -1;
}

/* Names the member whose text has a NUL: PostgreSQL cannot search a document with one. */
static hfd_rc fail_nul(hfd_slice text, const json_error_t *je, struct hfd_err *err)
{
    json_t *doc = json_loadb(text.p, text.len,
                             JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    char path[PATH_MAX_CHARS] = "";
    const ptrdiff_t len = doc != NULL ? find_nul(doc, path) : -1;

    json_decref(doc);
    return hfd_fail(err, HFD_MALFORMED,
                    "line %d, column %d: %.*s%s\\u0000 is not allowed in a text", je->line,
                    je->column, len > 0 ? (int)len : 0, path, len > 0 ? ": " : "");
}

hfd_rc hfd_json_parse(hfd_slice text, json_t **out, struct hfd_err *err)
{
    json_error_t je;
    const char *quote;
    hfd_rc rc;

    *out = NULL;
    rc = check_bounds(text, err);
    if (rc != HFD_OK)
        return rc;
    if (text.len == 0)
        return hfd_fail(err, HFD_MALFORMED, "it is empty");
    if (open_reserve(text.len) != HFD_OK)
        return hfd_fail_nomem(err, "parse a JSON document");
    memory_failed = false;
    *out = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je);
    if (memory_failed) {
        json_decref(*out);
        *out = NULL;
    }
    close_reserve();
    if (*out != NULL)
        return HFD_OK;
    if (memory_failed || je.text[0] == '\0' || json_error_code(&je) == json_error_out_of_memory)
        return hfd_fail_nomem(err, "parse a JSON document");
    /* The parser's own text would name a flag of its interface. */
    if (json_error_code(&je) == json_error_null_character ||
        json_error_code(&je) == json_error_null_byte_in_key)
        return fail_nul(text, &je, err);
    /* The parser may quote the text ("near '...'"), which can hold a secret. */
    quote = strstr(je.text, " near '");
    return hfd_fail(err, HFD_MALFORMED, "line %d, column %d: %.*s", je.line, je.column,
                    (int)(quote != NULL ? quote - je.text : (ptrdiff_t)strlen(je.text)), je.text);
}

/*
 * Writes a real with the fewest digits, 15 to 17, that read back as the same number. The text
 * always has a point or an exponent.
 */
static void dump_real(struct hfd_buf *b, double v)
{
    char text[40];
    int n = 0;

    for (int precision = 15; precision <= 17; precision++) {
        n = snprintf(text, sizeof(text) - 2, "%.*g", precision, v);
        if (strtod(text, NULL) == v)
            break;
    }
    hfd_buf_add(b, (hfd_slice){text, (size_t)n});
    if (strpbrk(text, ".e") == NULL)
        hfd_buf_lit(b, ".0");
}

enum dump_use {
    FOR_READING, /* keys in their order */
    FOR_STORE,   /* keys sorted */
    FOR_COMPARE  /* keys sorted, and equal numbers written alike */
};

/* True if a real number has an equal int64_t. */
static bool is_int64(double v)
{
    return v >= -0x1p63 && v < 0x1p63 && (double)(int64_t)v == v;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void dump(struct hfd_buf *b, const json_t *v, enum dump_use use, int depth);

static void dump_member(struct hfd_buf *b, const char *key, const json_t *value, enum dump_use use,
                        int depth)
{
    hfd_buf_json_str(b, hfd_slice_of(key));
    hfd_buf_addc(b, ':');
    dump(b, value, use, depth + 1);
}

static void dump_sorted(struct hfd_buf *b, const json_t *obj, enum dump_use use, int depth)
{
    size_t count = json_object_size(obj);
    const char **keys = calloc(count + 1, sizeof(*keys));
    const char *key;
    json_t *value;
    size_t n = 0;

    if (keys == NULL) {
        b->rc = HFD_NOMEM;
        return;
    }
    json_object_foreach ((json_t *)(uintptr_t)obj, key, value)
        keys[n++] = key;
    qsort(keys, n, sizeof(*keys), by_key);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            hfd_buf_addc(b, ',');
        dump_member(b, keys[i], json_object_get(obj, keys[i]), use, depth);
    }
    free(keys);
}

static void dump_object(struct hfd_buf *b, const json_t *obj, enum dump_use use, int depth)
{
    const char *key;
    json_t *value;
    bool first = true;

    hfd_buf_addc(b, '{');
    if (use != FOR_READING) {
        dump_sorted(b, obj, use, depth);
    } else {
        json_object_foreach ((json_t *)(uintptr_t)obj, key, value) {
            if (!first)
                hfd_buf_addc(b, ',');
            first = false;
            dump_member(b, key, value, use, depth);
        }
    }
    hfd_buf_addc(b, '}');
}

static void dump_array(struct hfd_buf *b, const json_t *arr, enum dump_use use, int depth)
{
    hfd_buf_addc(b, '[');
    for (size_t i = 0; i < json_array_size(arr); i++) {
        if (i > 0)
            hfd_buf_addc(b, ',');
        dump(b, json_array_get(arr, i), use, depth + 1);
    }
    hfd_buf_addc(b, ']');
}

static void dump(struct hfd_buf *b, const json_t *v, enum dump_use use, int depth)
{
    if (b->rc != HFD_OK)
        return;
    if (v == NULL || depth > DUMP_DEPTH_MAX) {
        b->rc =
            /* NULL: the tree could not be built; deep: not a tree of ours */
            v == NULL ? HFD_NOMEM : HFD_LIMIT;
        return;
    }
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        dump_object(b, v, use, depth);
        break;
    case JSON_ARRAY:
        dump_array(b, v, use, depth);
        break;
    case JSON_STRING:
        hfd_buf_json_str(b, (hfd_slice){json_string_value(v), json_string_length(v)});
        break;
    case JSON_INTEGER:
        hfd_buf_i64(b, json_integer_value(v));
        break;
    case JSON_REAL:
        if (use == FOR_COMPARE && is_int64(json_real_value(v)))
            hfd_buf_i64(b, (int64_t)json_real_value(v));
        else
            dump_real(b, json_real_value(v));
        break;
    case JSON_TRUE:
        hfd_buf_lit(b, "true");
        break;
    case JSON_FALSE:
        hfd_buf_lit(b, "false");
        break;
    case JSON_NULL:
        hfd_buf_lit(b, "null");
        break;
    }
}

void hfd_json_dump_for_store(struct hfd_buf *b, const json_t *v)
{
    dump(b, v, FOR_STORE, 0);
}

void hfd_json_dump_for_compare(struct hfd_buf *b, const json_t *v)
{
    dump(b, v, FOR_COMPARE, 0);
}

void hfd_json_dump(struct hfd_buf *b, const json_t *v)
{
    dump(b, v, FOR_READING, 0);
}

hfd_slice hfd_json_dump_arena(struct hfd_arena *a, const json_t *v)
{
    struct hfd_buf b;
    hfd_slice out;

    hfd_buf_init(&b, a->max_bytes > a->used_bytes ? a->max_bytes - a->used_bytes : 0);
    hfd_json_dump(&b, v);
    return hfd_buf_to_arena(&b, a, &out, NULL) == HFD_OK ? out : HFD_SLICE_NONE;
}

json_t *hfd_json_copy(const json_t *v)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)v);

    if (json_object_size(copy) == json_object_size(v) &&
        json_array_size(copy) == json_array_size(v))
        return copy;
    json_decref(copy);
    return NULL;
}

json_t *hfd_json_deep_copy(const json_t *v)
{
    json_t *copy = json_deep_copy(v);

    if (json_equal(copy, v))
        return copy;
    json_decref(copy);
    return NULL;
}

const char *hfd_json_type_name(const json_t *v)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a number",  [JSON_TRUE] = "a boolean",
        [JSON_FALSE] = "a boolean",    [JSON_NULL] = "null",
    };

    return v != NULL ? names[json_typeof(v)] : "nothing";
}

static hfd_rc fail_member(const struct hfd_json_member *m, hfd_rc rc, const char *expected,
                          struct hfd_err *err)
{
    char field[sizeof(err->field) + 64];

    snprintf(field, sizeof(field), "%s%s%s", m->path, m->path[0] != '\0' ? "." : "", m->key);
    hfd_foreign_drop_halves(field);
    return hfd_fail_field(err, rc, field, "%s: expected %s, got %s", field, expected,
                          hfd_json_type_name(json_object_get(m->obj, m->key)));
}

/* The member's value; NULL when it is absent or null. */
static json_t *member_value(const struct hfd_json_member *m)
{
    json_t *v = json_object_get(m->obj, m->key);

    return json_is_null(v) ? NULL : v;
}

static hfd_rc get_typed(const struct hfd_json_member *m, json_type type, const char *expected,
                        json_t **out, struct hfd_err *err)
{
    json_t *v = member_value(m);

    *out = NULL;
    if (v == NULL && !m->required)
        return HFD_OK;
    if (v == NULL || json_typeof(v) != type)
        return fail_member(m, HFD_MALFORMED, expected, err);
    *out = v;
    return HFD_OK;
}

hfd_rc hfd_json_get_object(const struct hfd_json_member *m, json_t **out, struct hfd_err *err)
{
    return get_typed(m, JSON_OBJECT, "an object", out, err);
}

hfd_rc hfd_json_get_array(const struct hfd_json_member *m, json_t **out, struct hfd_err *err)
{
    return get_typed(m, JSON_ARRAY, "an array", out, err);
}

hfd_rc hfd_json_get_string(const struct hfd_json_member *m, hfd_slice *out, struct hfd_err *err)
{
    json_t *v;
    hfd_rc rc = get_typed(m, JSON_STRING, "a string", &v, err);

    *out = v != NULL ? (hfd_slice){json_string_value(v), json_string_length(v)} : HFD_SLICE_NONE;
    return rc;
}

/* @return false: not an integral number within int64_t */
static bool read_integral(const json_t *v, int64_t *out)
{
    double d;

    if (json_is_integer(v)) {
        *out = json_integer_value(v);
        return true;
    }
    if (!json_is_real(v))
        return false;
    d = json_real_value(v);
    /* 2^63 is a double, 2^63 - 1 is not. */
    if (d != floor(d) || d < -0x1p63 || d >= 0x1p63)
        return false;
    *out = (int64_t)d;
    return true;
}

hfd_rc hfd_json_get_i64(const struct hfd_json_member *m, struct hfd_json_range range, bool *present,
                        int64_t *out, struct hfd_err *err)
{
    json_t *v = member_value(m);
    char expected[80];
    int64_t n = 0;

    *present = false;
    *out = 0;
    if (v == NULL && !m->required)
        return HFD_OK;
    if (v == NULL || !read_integral(v, &n))
        return fail_member(m, HFD_MALFORMED, "an integer", err);
    if (n < range.min || n > range.max) {
        snprintf(expected, sizeof(expected), "an integer from %" PRId64 " to %" PRId64, range.min,
                 range.max);
        return fail_member(m, HFD_INVALID, expected, err);
    }
    *present = true;
    *out = n;
    return HFD_OK;
}

/* True if the pointer's token, with its escapes ~0 and ~1, is this key. */
static bool token_is(hfd_slice token, const char *key)
{
    size_t i = 0;

    for (; i < token.len && *key != '\0'; i++, key++) {
        char c = token.p[i];

        if (c == '~') {
            if (++i == token.len || (token.p[i] != '0' && token.p[i] != '1'))
                return false;
            c = token.p[i] == '0' ? '~' : '/';
        }
        if (c != *key)
            return false;
    }
    return i == token.len && *key == '\0';
}

static json_t *pointer_step(const json_t *at, hfd_slice token)
{
    const char *key;
    json_t *value;
    int64_t index;

    if (json_is_array(at)) {
        if (token.len > 1 && token.p[0] == '0')
            return NULL;
        if (token.len == 0 || token.p[0] == '-' ||
            hfd_parse_i64(token, 0, INT64_MAX, &index, NULL) != HFD_OK)
            return NULL;
        return json_array_get(at, (size_t)index);
    }
    json_object_foreach ((json_t *)(uintptr_t)at, key, value)
        if (token_is(token, key))
            return value;
    return NULL;
}

json_t *hfd_json_pointer(const json_t *doc, hfd_slice pointer)
{
    const json_t *at = doc;
    size_t i = 0;

    if (pointer.len > 0 && pointer.p[0] != '/')
        return NULL;
    while (i < pointer.len && at != NULL) {
        size_t start = ++i;

        while (i < pointer.len && pointer.p[i] != '/')
            i++;
        at = pointer_step(at, (hfd_slice){pointer.p + start, i - start});
    }
    return (json_t *)(uintptr_t)at;
}
