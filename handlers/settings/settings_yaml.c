/*
 * The settings file: a small part of YAML, read event by event. Refuses anchors, aliases, tags,
 * several documents, keys given twice, and files over 1 MiB. The table bounds the depth: a map is
 * read only below a known key. Thread: start-up.
 */
#include "handlers/settings/settings_int.h"

#include "driver/base/check.h"
#include "driver/base/file.h"
#include "driver/base/yaml_event.h"

struct reader {
    struct hfd_settings_loader *ld;
    const char *path; /* for messages; the end of a long path */
    yaml_parser_t parser;
    yaml_event_t event; /* the one at hand */
};

/* A section of the map at hand. There are few, because an unknown one ends the reading. */
struct seen {
    hfd_slice key;
    struct seen *next;
};

static hfd_rc read_map(struct reader *r, hfd_slice prefix, struct hfd_err *err);

static hfd_rc fail_here(const struct reader *r, struct hfd_err *err, const char *what)
{
    return hfd_fail(err, HFD_INVALID, "%s: %s", r->ld->place, what);
}

static void set_place(struct reader *r, size_t line)
{
    (void)snprintf(r->ld->place, sizeof(r->ld->place), "%s:%zu", r->path, line + 1);
    for (char *c = r->ld->place; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~')
            *c = '?'; /* it appears in comments and messages */
    }
}

static hfd_rc parser_failed(struct reader *r, struct hfd_err *err)
{
    if (r->parser.error == YAML_MEMORY_ERROR)
        return hfd_fail_nomem(err, "read the settings file");
    set_place(r, r->parser.problem_mark.line);
    if (r->parser.error == YAML_READER_ERROR)
        return hfd_fail(err, HFD_INVALID, "%s: not text in UTF-8 (byte %zu): %s", r->path,
                        r->parser.problem_offset,
                        r->parser.problem != NULL ? r->parser.problem : "unreadable");
    return hfd_fail(err, HFD_INVALID, "%s: not valid YAML: %s", r->ld->place,
                    r->parser.problem != NULL ? r->parser.problem : "unreadable");
}

/* Moves to the next event. Refuses anchors, aliases and tags. */
static hfd_rc next(struct reader *r, struct hfd_err *err)
{
    const char *refusal;

    yaml_event_delete(&r->event);
    if (!yaml_parser_parse(&r->parser, &r->event))
        return parser_failed(r, err);
    set_place(r, r->event.start_mark.line);
    refusal = hfd_yaml_refusal(&r->event);
    return refusal == NULL ? HFD_OK : fail_here(r, err, refusal);
}

static hfd_slice scalar_text(const struct reader *r)
{
    return (hfd_slice){(const char *)r->event.data.scalar.value, r->event.data.scalar.length};
}

static bool is_one_of(hfd_slice s, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (hfd_slice_is(s, *words))
            return true;
    }
    return false;
}

static bool scalar_is_null(const struct reader *r)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL", NULL};

    return r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           is_one_of(scalar_text(r), words);
}

/* Returns true for a plain scalar that YAML reads as a boolean, a number or null. */
static bool scalar_is_no_string(const struct reader *r)
{
    static const char *const words[] = {"true", "True", "TRUE", "false", "False", "FALSE", "yes",
                                        "Yes",  "YES",  "no",   "No",    "NO",    "on",    "On",
                                        "ON",   "off",  "Off",  "OFF",   NULL};
    hfd_slice s = scalar_text(r);
    char *end = NULL;

    if (r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    if (scalar_is_null(r) || is_one_of(s, words))
        return true;
    if (memchr("+-.0123456789", s.p[0], 13) == NULL)
        return false;
    (void)strtod(s.p, &end); /* libyaml ends its scalars with a NUL */
    return end == s.p + s.len;
}

static hfd_rc put_scalar(struct reader *r, struct hfd_setting_value *v, struct hfd_err *err)
{
    v->text = scalar_text(r);
    HFD_ASSERT(v->row != NULL); /* only a section has none, and it is a map */
    if (scalar_is_null(r))
        return hfd_setting_fail(
            r->ld, v->row->key, err, "expected %s, got nothing",
            v->row->type == HFD_SETTING_TYPE_LIST ? "a list ([] for an empty one)" : "a value");
    if (v->row->type == HFD_SETTING_TYPE_LIST && scalar_is_no_string(r)) {
        char quoted[HFD_QUOTE_MAX];

        return hfd_setting_fail(r->ld, v->row->key, err, "expected a list, got %s",
                                hfd_setting_quote(v->text, quoted));
    }
    return hfd_setting_put(r->ld, v, err);
}

static hfd_rc put_sequence(struct reader *r, struct hfd_setting_value *v, struct hfd_err *err)
{
    struct hfd_arena *mem = &r->ld->s->mem;
    hfd_slice *items = hfd_arena_array(mem, HFD_SETTING_ITEMS_MAX, sizeof(*items));
    char quoted[HFD_QUOTE_MAX];
    hfd_rc rc;

    v->is_list = true;
    HFD_ASSERT(v->row != NULL);
    if (items == NULL)
        return hfd_fail_nomem(err, "read the settings file");
    for (;;) {
        rc = next(r, err);
        if (rc != HFD_OK)
            return rc;
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            break;
        if (r->event.type != YAML_SCALAR_EVENT)
            return hfd_setting_fail(r->ld, v->row->key, err,
                                    "expected strings in the list, got a list or a map");
        if (scalar_is_no_string(r))
            return hfd_setting_fail(r->ld, v->row->key, err,
                                    "expected strings in the list, got %s without quotes",
                                    hfd_setting_quote(scalar_text(r), quoted));
        if (v->count == HFD_SETTING_ITEMS_MAX)
            return hfd_setting_fail(r->ld, v->row->key, err, "expected at most %d items",
                                    HFD_SETTING_ITEMS_MAX);
        items[v->count] = hfd_arena_dup(mem, scalar_text(r));
        if (items[v->count++].p == NULL)
            return hfd_fail_nomem(err, "read the settings file");
    }
    v->items = items;
    return hfd_setting_put(r->ld, v, err);
}

/* Reads the value of a key. The event at hand is still the key. */
static hfd_rc read_value(struct reader *r, hfd_slice path, struct hfd_setting_value *v,
                         struct hfd_err *err)
{
    bool is_map_only = v->goes_on && (v->kind == HFD_REF_SECTION || hfd_setting_is_map(v->row));
    const char *key = v->row != NULL ? v->row->key : path.p;
    hfd_rc rc = next(r, err);

    if (rc != HFD_OK)
        return rc;
    if (v->goes_on && r->event.type == YAML_MAPPING_START_EVENT)
        return read_map(r, path, err);
    if (v->goes_on && r->event.type == YAML_SCALAR_EVENT && scalar_is_null(r))
        return HFD_OK; /* a section whose keys are all commented out */
    if (is_map_only)
        return hfd_setting_fail(r->ld, key, err, "expected a map");
    HFD_ASSERT(v->row != NULL); /* only a section has none, and it is a map */
    if (r->event.type == YAML_SCALAR_EVENT)
        return put_scalar(r, v, err);
    if (r->event.type == YAML_SEQUENCE_START_EVENT && v->kind == HFD_REF_SETTING)
        return put_sequence(r, v, err);
    return hfd_setting_fail(r->ld, key, err, "expected %s, got a %s", hfd_setting_form_text(v->row),
                            r->event.type == YAML_SEQUENCE_START_EVENT ? "list" : "map");
}

/* Remembers a section of the map at hand. Refuses one that was there before. */
static hfd_rc see(struct reader *r, hfd_slice path, struct seen **seen, struct hfd_err *err)
{
    struct seen *s;

    for (s = *seen; s != NULL; s = s->next) {
        if (hfd_slice_eq(s->key, path))
            return hfd_setting_fail(r->ld, path.p, err, "the key is given twice");
    }
    s = hfd_arena_alloc(&r->ld->s->mem, sizeof(*s));
    if (s == NULL)
        return hfd_fail_nomem(err, "read the settings file");
    *s = (struct seen){path, *seen};
    *seen = s;
    return HFD_OK;
}

/* Returns "PREFIX.KEY", or the key alone; p is NULL if memory is short. The key may hold NUL. */
static hfd_slice join(struct hfd_arena *mem, hfd_slice prefix, hfd_slice key)
{
    size_t dot = prefix.len > 0;
    char *p = hfd_arena_alloc(mem, prefix.len + dot + key.len + 1);

    if (p == NULL)
        return HFD_SLICE_NONE;
    if (dot) {
        memcpy(p, prefix.p, prefix.len);
        p[prefix.len] = '.';
    }
    if (key.len > 0)
        memcpy(p + prefix.len + dot, key.p, key.len);
    return (hfd_slice){p, prefix.len + dot + key.len};
}

/* Reads a map to its end. prefix is the key of the map itself, empty at the top. */
static hfd_rc read_map(struct reader *r, hfd_slice prefix, struct hfd_err *err)
{
    struct seen *seen = NULL;
    hfd_rc rc;

    for (;;) {
        struct hfd_setting_value v;
        hfd_slice path;

        rc = next(r, err);
        if (rc != HFD_OK || r->event.type == YAML_MAPPING_END_EVENT)
            return rc;
        if (r->event.type != YAML_SCALAR_EVENT)
            return fail_here(r, err, "expected a key, got a list or a map");
        path = join(&r->ld->s->mem, prefix, scalar_text(r));
        if (path.p == NULL)
            return hfd_fail_nomem(err, "read the settings file");
        v = hfd_setting_find_key(path);
        if (v.kind == HFD_REF_UNKNOWN)
            return hfd_setting_unknown_key(r->ld->place, path, err);
        if (v.goes_on && (rc = see(r, path, &seen, err)) != HFD_OK)
            return rc;
        rc = read_value(r, path, &v, err);
        if (rc != HFD_OK)
            return rc;
    }
}

/* Reads the whole stream: nothing, or one document that is a map. */
static hfd_rc read_stream(struct reader *r, struct hfd_err *err)
{
    hfd_rc rc = next(r, err); /* the start of the stream */

    if (rc == HFD_OK)
        rc = next(r, err);
    if (rc != HFD_OK || r->event.type == YAML_STREAM_END_EVENT)
        return rc;
    rc = next(r, err); /* the content of the document */
    if (rc != HFD_OK)
        return rc;
    if (r->event.type == YAML_MAPPING_START_EVENT)
        rc = read_map(r, HFD_SLICE_NONE, err);
    else if (r->event.type != YAML_SCALAR_EVENT || !scalar_is_null(r))
        return fail_here(r, err, "expected a map of settings (key: value)");
    if (rc == HFD_OK)
        rc = next(r, err); /* the end of the document */
    if (rc == HFD_OK)
        rc = next(r, err);
    if (rc == HFD_OK && r->event.type != YAML_STREAM_END_EVENT)
        return fail_here(r, err, "expected one document, got a second one");
    return rc;
}

hfd_rc hfd_settings_read_file(struct hfd_settings_loader *ld, const char *path, struct hfd_err *err)
{
    size_t len = strlen(path);
    struct reader r = {.ld = ld, .path = len > 100 ? path + len - 100 : path};
    struct hfd_buf b;
    hfd_slice text;
    hfd_rc rc;

    hfd_buf_init(&b, HFD_SETTINGS_FILE_MAX);
    rc = hfd_file_read(path, "settings file", &b, err);
    if (rc == HFD_OK && !yaml_parser_initialize(&r.parser))
        rc = hfd_fail_nomem(err, "read the settings file");
    if (rc != HFD_OK)
        goto out;
    text = hfd_buf_slice(&b);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.p != NULL ? text.p : ""),
                                 text.len);
    rc = read_stream(&r, err);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
out:
    hfd_buf_fini(&b);
    return rc;
}
