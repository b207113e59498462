/*
 * Loads the settings in order: defaults, file, environment, flags. Refuses names that are not in
 * the table, and values that do not fit together. Thread: start-up.
 */
#include "handlers/settings/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <unistd.h>

#include "driver/base/check.h"
#include "driver/base/file.h"
#include "driver/base/yaml_event.h"
#include "handlers/settings/settings_int.h"

#define ARENA_MAX (size_t)(8 * 1024 * 1024)

/* --- storing one value --- */

/* True for the place of a value that names its setting: a flag or a variable, not a file. */
static bool setting_is_named_by(hfd_slice place)
{
    return hfd_slice_starts(place, HFD_SLICE("--")) || hfd_slice_starts(place, HFD_SLICE("HFD_"));
}

/* Fails with the place, unless it is empty, and the key in front of the message. */
__attribute__((format(printf, 4, 0))) static hfd_rc
fail_at(hfd_slice place, const char *key, struct hfd_err *err, const char *fmt, va_list ap)
{
    char msg[sizeof(err->msg)];

    (void)vsnprintf(msg, sizeof(msg), fmt, ap);
    if (setting_is_named_by(place))
        return hfd_fail_field(err, HFD_INVALID, key, "%.*s: %s", HFD_SLICE_FMT(place), msg);
    return hfd_fail_field(err, HFD_INVALID, key, "%.*s%s%s: %s", HFD_SLICE_FMT(place),
                          place.len > 0 ? ": " : "", key, msg);
}

__attribute__((format(printf, 4, 5))) static hfd_rc fail(const struct hfd_settings_loader *ld,
                                                         const char *key, struct hfd_err *err,
                                                         const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)fail_at(hfd_slice_of(ld->place), key, err, fmt, ap);
    va_end(ap);
    return HFD_INVALID;
}

hfd_slice hfd_settings_origin(const struct hfd_settings *s, const char *key)
{
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++)
        if (strcmp(hfd_setting_rows[i].key, key) == 0)
            return s->origin[i];
    return HFD_SLICE("");
}

hfd_rc hfd_settings_refuse(const struct hfd_settings *s, enum hfd_setting which,
                           struct hfd_err *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)fail_at(s->origin[which], hfd_setting_rows[which].key, err, fmt, ap);
    va_end(ap);
    return HFD_INVALID;
}

static void *member_of(struct hfd_settings *s, const struct hfd_setting_row *row)
{
    return (char *)s + row->offset;
}

/* Finds or adds an entry. Returns NULL if the map is full or memory is short. */
static struct hfd_pair *entry_of(struct hfd_map *map, hfd_slice name, struct hfd_arena *mem)
{
    for (size_t i = 0; i < map->count; i++)
        if (hfd_slice_eq(map->items[i].name, name))
            return &map->items[i];
    if (map->items == NULL)
        map->items = hfd_arena_array(mem, HFD_SETTING_ITEMS_MAX, sizeof(*map->items));
    if (map->items == NULL || map->count == HFD_SETTING_ITEMS_MAX)
        return NULL;
    map->items[map->count] = (struct hfd_pair){.name = hfd_arena_dup(mem, name)};
    return map->items[map->count].name.p != NULL ? &map->items[map->count++] : NULL;
}

static hfd_rc put_entry(struct hfd_settings_loader *ld, const struct hfd_setting_value *v,
                        struct hfd_err *err)
{
    struct hfd_map *map = member_of(ld->s, v->row);
    struct hfd_err why = {0};
    struct hfd_pair *pair;
    hfd_rc rc = hfd_setting_name_check(v->name, &why);

    if (rc != HFD_OK)
        return fail(ld, v->row->key, err, "%s", why.msg);
    rc = hfd_setting_entry_check(v->row, &(struct hfd_pair){.name = v->name, .value = v->text},
                                 &why);
    if (rc != HFD_OK)
        return hfd_fail_field(err, rc, v->row->key, "%s: %s.%.*s%s: %s", ld->place, v->row->key,
                              HFD_SLICE_FMT(v->name), hfd_setting_ending(HFD_FORM_KEY, v->row),
                              why.msg);
    pair = entry_of(map, v->name, &ld->s->mem);
    if (pair == NULL && map->count == HFD_SETTING_ITEMS_MAX)
        return fail(ld, v->row->key, err, "expected at most %d entries", HFD_SETTING_ITEMS_MAX);
    if (pair == NULL)
        return hfd_fail_nomem(err, "load the settings");
    if (ld->in_file && pair->value.p != NULL)
        return fail(ld, v->row->key, err, "%.*s is given twice", HFD_SLICE_FMT(pair->name));
    pair->value = hfd_arena_dup(&ld->s->mem, v->text);
    pair->origin = hfd_arena_dup(&ld->s->mem, hfd_slice_of(ld->place));
    if (pair->value.p == NULL || pair->origin.p == NULL)
        return hfd_fail_nomem(err, "load the settings");
    if (ld->in_file)
        ld->file_entries[v->row->which] = map->count;
    return HFD_OK;
}

/* Stores a value from ld->place: a SETTING or an ENTRY. */
static hfd_rc put(struct hfd_settings_loader *ld, const struct hfd_setting_value *v,
                  struct hfd_err *err)
{
    const struct hfd_setting_row *row = v->row;
    hfd_slice *origin = &ld->s->origin[row->which];
    struct hfd_err why = {0};
    hfd_rc rc;

    if (v->kind == HFD_REF_ENTRY) {
        rc = put_entry(ld, v, err);
    } else {
        if (ld->in_file && origin->len > 0)
            return fail(ld, row->key, err, "given twice, first at %.*s", HFD_SLICE_FMT(*origin));
        rc = hfd_setting_parse(v, &ld->s->mem, member_of(ld->s, row), &why);
        if (rc == HFD_INVALID)
            return fail(ld, row->key, err, "%s", why.msg);
        if (rc != HFD_OK)
            return hfd_fail_field(err, rc, row->key, "%s: %s", ld->place, why.msg);
    }
    if (rc != HFD_OK || ld->place[0] == '\0')
        return rc;
    *origin = hfd_arena_dup(&ld->s->mem, hfd_slice_of(ld->place));
    return origin->p != NULL ? HFD_OK : hfd_fail_nomem(err, "load the settings");
}

/* --- the file: a small part of YAML --- */

/*
 * It is read event by event. Refuses anchors, aliases, tags, several documents, keys given twice,
 * and files over 1 MiB. The table bounds the depth: a map is read only below a known key.
 */
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
        return fail(r->ld, v->row->key, err, "expected %s, got nothing",
                    v->row->type == HFD_SETTING_TYPE_LIST ? "a list ([] for an empty one)"
                                                          : "a value");
    if (v->row->type == HFD_SETTING_TYPE_LIST && scalar_is_no_string(r)) {
        char quoted[HFD_QUOTE_MAX];

        return fail(r->ld, v->row->key, err, "expected a list, got %s",
                    hfd_setting_quote(v->text, quoted));
    }
    return put(r->ld, v, err);
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
            return fail(r->ld, v->row->key, err,
                        "expected strings in the list, got a list or a map");
        if (scalar_is_no_string(r))
            return fail(r->ld, v->row->key, err,
                        "expected strings in the list, got %s without quotes",
                        hfd_setting_quote(scalar_text(r), quoted));
        if (v->count == HFD_SETTING_ITEMS_MAX)
            return fail(r->ld, v->row->key, err, "expected at most %d items",
                        HFD_SETTING_ITEMS_MAX);
        items[v->count] = hfd_arena_dup(mem, scalar_text(r));
        if (v->kind == HFD_REF_ENTRY)
            v->text = hfd_arena_printf(mem, "%.*s%s%.*s", HFD_SLICE_FMT(v->text),
                                       v->count > 0 ? "," : "", HFD_SLICE_FMT(scalar_text(r)));
        if (items[v->count++].p == NULL || (v->kind == HFD_REF_ENTRY && v->text.p == NULL))
            return hfd_fail_nomem(err, "read the settings file");
    }
    v->items = items;
    return put(r->ld, v, err);
}

static bool may_be_list(const struct hfd_setting_value *v)
{
    return v->kind == HFD_REF_SETTING || v->row->type == HFD_SETTING_TYPE_LISTS;
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
        return fail(r->ld, key, err, "expected a map");
    HFD_ASSERT(v->row != NULL); /* only a section has none, and it is a map */
    if (r->event.type == YAML_SCALAR_EVENT)
        return put_scalar(r, v, err);
    if (r->event.type == YAML_SEQUENCE_START_EVENT && may_be_list(v))
        return put_sequence(r, v, err);
    return fail(r->ld, key, err, "expected %s, got a %s", hfd_setting_form_text(v->row),
                r->event.type == YAML_SEQUENCE_START_EVENT ? "list" : "map");
}

/* Remembers a section of the map at hand. Refuses one that was there before. */
static hfd_rc see(struct reader *r, hfd_slice path, struct seen **seen, struct hfd_err *err)
{
    struct seen *s;

    for (s = *seen; s != NULL; s = s->next) {
        if (hfd_slice_eq(s->key, path))
            return fail(r->ld, path.p, err, "the key is given twice");
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
        v = hfd_setting_find(HFD_FORM_KEY, path);
        if (v.kind == HFD_REF_UNKNOWN)
            return hfd_setting_unknown_name(HFD_FORM_KEY, r->ld->place, path, err);
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

/* Reads a file into the settings. @return HFD_OK, HFD_INVALID, HFD_IO, HFD_NOMEM */
static hfd_rc read_file(struct hfd_settings_loader *ld, const char *path, struct hfd_err *err)
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

/* --- sources --- */

static hfd_rc load_defaults(struct hfd_settings_loader *ld, struct hfd_err *err)
{
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
        const struct hfd_setting_value v = {.kind = HFD_REF_SETTING,
                                            .row = &hfd_setting_rows[i],
                                            .text = hfd_slice_of(hfd_setting_rows[i].def)};
        hfd_rc rc;

        if (hfd_setting_is_map(v.row))
            continue;
        rc = put(ld, &v, err);
        HFD_ASSERT(rc == HFD_OK || rc == HFD_NOMEM); /* defaults are valid */
        if (rc != HFD_OK)
            return rc;
    }
    return HFD_OK;
}

/* Stores a value of the environment or of a flag. */
static hfd_rc put_text(struct hfd_settings_loader *ld, enum hfd_setting_form form,
                       const struct hfd_setting_value *v, struct hfd_err *err)
{
    char name[HFD_SETTING_NAME_MAX];

    if (v->kind == HFD_REF_SETTING && hfd_setting_is_map(v->row)) {
        (void)hfd_setting_spell(form, v->row->key, name);
        return fail(ld, v->row->key, err, "expected one entry at a time: %s%s=%s", name,
                    hfd_setting_suffix(form, v->row),
                    v->row->type == HFD_SETTING_TYPE_MAP ? "ADAPTER:/json/pointer"
                                                         : hfd_setting_form_text(v->row));
    }
    return put(ld, v, err);
}

/*
 * True for a variable that Kubernetes makes for a Service whose name begins with "hfd": HFD_PORT,
 * HFD_SERVICE_HOST, HFD_X_SERVICE_PORT, HFD_X_PORT_80_TCP.
 */
static bool is_service_link(hfd_slice name, hfd_slice value)
{
    static const char service[] = "_SERVICE_", port[] = "_PORT", proto[] = "://";

    return hfd_slice_starts(name, HFD_SLICE("HFD_PORT")) ||
           memmem(name.p, name.len, service, sizeof(service) - 1) != NULL ||
           (memmem(name.p, name.len, port, sizeof(port) - 1) != NULL &&
            memmem(value.p, value.len, proto, sizeof(proto) - 1) != NULL);
}

static hfd_rc note_link(struct hfd_settings *s, hfd_slice name, struct hfd_err *err)
{
    s->links = hfd_arena_printf(&s->mem, "%.*s%s%.*s", HFD_SLICE_FMT(s->links),
                                s->links.len > 0 ? ", " : "", HFD_SLICE_FMT(name));
    return s->links.p != NULL ? HFD_OK : hfd_fail_nomem(err, "load the settings");
}

static hfd_rc load_variable(struct hfd_settings_loader *ld, hfd_slice name, hfd_slice value,
                            struct hfd_err *err)
{
    struct hfd_setting_value v = hfd_setting_find(HFD_FORM_ENV, name);
    char lower[HFD_SETTING_NAME_MAX];

    if (v.kind == HFD_REF_UNKNOWN && is_service_link(name, value))
        return note_link(ld->s, name, err);
    if (v.kind == HFD_REF_UNKNOWN)
        return hfd_setting_unknown_name(HFD_FORM_ENV, "environment: unknown variable", name, err);
    (void)snprintf(ld->place, sizeof(ld->place), "%.*s", HFD_SLICE_FMT(name));
    if (v.kind == HFD_REF_ENTRY && v.name.len < sizeof(lower)) {
        for (size_t i = 0; i < v.name.len; i++)
            lower[i] = (char)(v.name.p[i] >= 'A' && v.name.p[i] <= 'Z' ? v.name.p[i] - 'A' + 'a'
                                                                       : v.name.p[i]);
        v.name.p = lower;
    }
    v.text = value;
    return put_text(ld, HFD_FORM_ENV, &v, err);
}

/* Variables that are no settings: the file of settings, and flags of the client. */
static bool is_other_variable(hfd_slice name)
{
    static const char *const names[] = {"HFD_CONFIG", "HFD_URL", "HFD_OPS_URL", "HFD_TOKEN_FILE"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (hfd_slice_is(name, names[i]))
            return true;
    return false;
}

static hfd_rc load_environment(struct hfd_settings_loader *ld, const char *const *env,
                               struct hfd_err *err)
{
    for (; *env != NULL; env++) {
        const char *equals = strchr(*env, '=');
        hfd_slice name;
        hfd_rc rc;

        if (equals == NULL)
            continue;
        name = (hfd_slice){*env, (size_t)(equals - *env)};
        if (!hfd_slice_starts(name, HFD_SLICE("HFD_")) || is_other_variable(name))
            continue;
        rc = load_variable(ld, name, hfd_slice_of(equals + 1), err);
        if (rc != HFD_OK)
            return rc;
    }
    return HFD_OK;
}

/* Reads the flag at argv[*at], sets ld->place, and advances *at. The kind is UNKNOWN for --config.
 */
static hfd_rc parse_flag(struct hfd_settings_loader *ld, const struct hfd_settings_given *given,
                         int *at, struct hfd_setting_value *out, struct hfd_err *err)
{
    const char *const *argv = given->argv;
    const char *arg = argv[(*at)++];
    const char *equals = strchr(arg, '=');
    const hfd_slice name = {arg, equals != NULL ? (size_t)(equals - arg) : strlen(arg)};
    char quoted[HFD_QUOTE_MAX];

    (void)hfd_setting_quote(name, quoted);
    (void)snprintf(ld->place, sizeof(ld->place), "%.*s", HFD_SLICE_FMT(name));
    if (!hfd_slice_starts(name, HFD_SLICE("--")) || name.len == 2)
        return hfd_fail(err, HFD_INVALID, "unexpected argument %s%s", quoted,
                        *at >= 2 && strcmp(argv[*at - 2], "--demo") == 0 ? "; write --demo=SECONDS"
                                                                         : "");
    *out = hfd_setting_find(HFD_FORM_FLAG, name);
    if (out->kind == HFD_REF_UNKNOWN && !hfd_slice_is(name, "--config"))
        return hfd_setting_unknown_name(HFD_FORM_FLAG, "unknown flag", name, err);
    if (equals != NULL)
        out->text = hfd_slice_of(equals + 1);
    else if (out->kind == HFD_REF_SETTING && hfd_setting_needs_no_value(out->row))
        out->text = HFD_SLICE("on");
    else if (*at < given->argc && strncmp(argv[*at], "--", 2) != 0)
        out->text = hfd_slice_of(argv[(*at)++]);
    else
        return hfd_fail_field(err, HFD_INVALID, out->row != NULL ? out->row->key : "config",
                              "flag %s: expected a value", quoted);
    return HFD_OK;
}

/*
 * Writes the path of the file of an installed program, which lies in a folder `bin`: ROOT/etc/...
 * for ROOT/usr/bin and ROOT/usr/local/bin, /etc/... for others. ROOT is empty but for a tree that
 * was unpacked elsewhere. A program in the folder of its build has no such file.
 * @return path; NULL if there is no such file
 */
static const char *installed_file(char path[PATH_MAX])
{
    static const char *const folders[] = {"/usr/local/bin", "/usr/bin", "/bin"};
    char program[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof(program));
    const char *slash = n > 0 ? memrchr(program, '/', (size_t)n) : NULL;
    const size_t len = slash != NULL ? (size_t)(slash - program) : 0; /* of its folder */

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        const size_t end = strlen(folders[i]);

        if (len < end || memcmp(program + len - end, folders[i], end) != 0)
            continue;
        (void)snprintf(path, PATH_MAX, "%.*s%s", i < 2 ? (int)(len - end) : 0, program,
                       HFD_SETTINGS_FILE);
        return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR) ? path : NULL;
    }
    return NULL;
}

/*
 * Checks all flags and finds the file: --config, else HFD_CONFIG, else that of an installed
 * program.
 * @param path  has room for the last one
 * @param out   NULL = there is none
 */
static hfd_rc find_file(struct hfd_settings_loader *ld, const struct hfd_settings_given *given,
                        char path[PATH_MAX], const char **out, struct hfd_err *err)
{
    static const char variable[] = "HFD_CONFIG=";
    bool flagged = false;

    *out = installed_file(path);
    for (const char *const *env = given->env; *env != NULL; env++)
        if (strncmp(*env, variable, sizeof(variable) - 1) == 0 &&
            (*env)[sizeof(variable) - 1] != '\0')
            *out = *env + sizeof(variable) - 1;
    for (int at = 0; at < given->argc;) {
        struct hfd_setting_value v = {.kind = HFD_REF_UNKNOWN};
        hfd_rc rc = parse_flag(ld, given, &at, &v, err);

        if (rc != HFD_OK)
            return rc;
        if (v.kind != HFD_REF_UNKNOWN)
            continue;
        if (flagged || v.text.len == 0)
            return hfd_fail_field(err, HFD_INVALID, "config", "flag --config: expected one file");
        flagged = true;
        *out = v.text.p;
    }
    return HFD_OK;
}

static hfd_rc load_flags(struct hfd_settings_loader *ld, const struct hfd_settings_given *given,
                         struct hfd_err *err)
{
    for (int at = 0; at < given->argc;) {
        struct hfd_setting_value v = {.kind = HFD_REF_UNKNOWN};
        hfd_rc rc = parse_flag(ld, given, &at, &v, err);

        if (rc != HFD_OK)
            return rc;
        if (v.kind == HFD_REF_UNKNOWN)
            continue;
        rc = put_text(ld, HFD_FORM_FLAG, &v, err);
        if (rc != HFD_OK)
            return rc;
    }
    return HFD_OK;
}

/* --- values together --- */

/* Refuses the names of values that every output has. */
static hfd_rc check_output_names(const struct hfd_map *values, struct hfd_err *err)
{
    static const char *const taken[] = {
        "name",   "cluster_id",    "nodepool_id",    "href",      "generation",
        "health", "health_reason", "health_message", "nodepools", "demo"};

    for (size_t i = 0; i < values->count; i++)
        for (size_t k = 0; k < sizeof(taken) / sizeof(taken[0]); k++)
            if (hfd_slice_is(values->items[i].name, taken[k]))
                return hfd_fail_field(err, HFD_INVALID, "driver.outputs.values",
                                      "%.*s: driver.outputs.values.%s: expected another name, as "
                                      "every output has its own \"%s\"",
                                      HFD_SLICE_FMT(values->items[i].origin), taken[k], taken[k]);
    return HFD_OK;
}

/* Returns the setting to blame of two that conflict: the one that was given. */
static enum hfd_setting given_of(const struct hfd_settings *s, enum hfd_setting a,
                                 enum hfd_setting b)
{
    return hfd_settings_is_set(s, b) ? b : a;
}

/* Two durations, of which the first must not be longer. */
static const struct order {
    enum hfd_setting less, more;
} orders[] = {
    {HFD_SETTING_remote_retry_min_us, HFD_SETTING_remote_retry_max_us},
    {HFD_SETTING_estimate_create_us, HFD_SETTING_deadline_create_us},
    {HFD_SETTING_estimate_update_us, HFD_SETTING_deadline_update_us},
    {HFD_SETTING_estimate_delete_us, HFD_SETTING_deadline_delete_us},
};

static int64_t duration_of(const struct hfd_settings *s, enum hfd_setting which)
{
    return *(const int64_t *)(const void *)((const char *)s + hfd_setting_rows[which].offset);
}

static hfd_rc check_order(const struct hfd_settings *s, const struct order *o, struct hfd_err *err)
{
    const int64_t less_us = duration_of(s, o->less), more_us = duration_of(s, o->more);
    struct hfd_buf b;
    hfd_rc rc;

    if (less_us <= more_us)
        return HFD_OK;
    hfd_buf_init(&b, 64);
    hfd_setting_format(&b, &hfd_setting_rows[o->less], &less_us);
    hfd_buf_lit(&b, " to ");
    hfd_setting_format(&b, &hfd_setting_rows[o->more], &more_us);
    rc = hfd_settings_refuse(s, given_of(s, o->less, o->more), err,
                             "expected %s to be no more than %s, got %.*s",
                             hfd_setting_rows[o->less].key, hfd_setting_rows[o->more].key,
                             HFD_SLICE_FMT(hfd_buf_slice(&b)));
    hfd_buf_fini(&b);
    return rc;
}

/* ---- settings without an effect ---- */

static bool is_remote(const struct hfd_settings *s)
{
    return !hfd_slice_is(s->backend, "embedded");
}

static bool is_embedded(const struct hfd_settings *s)
{
    return !is_remote(s);
}

static bool has_kubeconfig(const struct hfd_settings *s)
{
    return s->hypershift_kubeconfig.len > 0;
}

static bool has_broker(const struct hfd_settings *s)
{
    return is_embedded(s) && s->events_amqp_url.len > 0;
}

static bool has_proxies(const struct hfd_settings *s)
{
    return s->http_trusted_proxies.count > 0;
}

static bool has_socket(const struct hfd_settings *s)
{
    return hfd_slice_starts(s->listen, HFD_SLICE("unix:")) ||
           hfd_slice_starts(s->ops_listen, HFD_SLICE("unix:"));
}

/* The settings whose keys begin so, and what they need. */
static const struct {
    const char *keys;
    bool (*works)(const struct hfd_settings *s);
    const char *needs;
} effects[] = {
    {"remote.", is_remote, "the URL of a HyperFleet in backend"},
    {"hypershift.", has_kubeconfig, "hypershift.kubeconfig"},
    {"events.amqp.", has_broker, "events.amqp.url and backend: embedded"},
    {"adapters.required.", is_embedded, "backend: embedded, as a remote has its own"},
    {"fleet.identity_header", has_proxies, "http.trusted_proxies"},
    {"http.socket_mode", has_socket, "unix:/path in listen or ops_listen"},
    {"store.connect_timeout", hfd_settings_has_postgres, "store: postgres://..."},
    {"store.answer_timeout", hfd_settings_has_postgres, "store: postgres://..."},
    {"store.patroni", hfd_settings_has_postgres, "store: postgres://..."},
};

const char *hfd_settings_lacks(const struct hfd_settings *s, enum hfd_setting which)
{
    const hfd_slice key = hfd_slice_of(hfd_setting_rows[which].key);

    for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++)
        if (hfd_settings_is_set(s, which) && hfd_slice_starts(key, hfd_slice_of(effects[i].keys)) &&
            !effects[i].works(s))
            return effects[i].needs;
    return NULL;
}

/* A condition of several settings that is broken, and the setting that is refused. */
struct rule {
    bool broken;
    enum hfd_setting which;
    const char *expected;
};

static hfd_rc check_rules(const struct hfd_settings *s, const struct rule *rules, size_t count,
                          struct hfd_err *err)
{
    for (size_t i = 0; i < count; i++)
        if (rules[i].broken)
            return hfd_settings_refuse(s, rules[i].which, err, "%s", rules[i].expected);
    return HFD_OK;
}

/* An empty `data` is none. The variable HFD_DATA is not used with PostgreSQL: an image sets it. */
static hfd_rc check_store(const struct hfd_settings *s, struct hfd_err *err)
{
    const bool postgres = hfd_settings_has_postgres(s), password = s->store_password_file.len > 0;
    const struct rule rules[] = {
        {!postgres && s->data.len == 0, HFD_SETTING_data, "expected a path, got \"\""},
        {!postgres && password, HFD_SETTING_store_password_file,
         "expected store: postgres://... with it"},
        {postgres && s->data.len > 0 && hfd_settings_is_set(s, HFD_SETTING_data) &&
             !hfd_slice_is(s->origin[HFD_SETTING_data], "HFD_DATA"),
         HFD_SETTING_data,
         "expected none, or an empty one, with a PostgreSQL store, which needs no data folder; "
         "name keys and auth.tokens_file instead"},
        {postgres && password && hfd_pgurl_has_password(s->store), HFD_SETTING_store_password_file,
         "expected a URL in store without a password beside it"},
    };

    return check_rules(s, rules, sizeof(rules) / sizeof(rules[0]), err);
}

static hfd_rc check_others(const struct hfd_settings *s, struct hfd_err *err)
{
    const struct rule rules[] = {
        {s->hypershift_management.count > 0 && s->hypershift_kubeconfig.len == 0,
         HFD_SETTING_hypershift_management,
         "expected hypershift.kubeconfig with it: it is the management cluster of orders that name "
         "none"},
        {(s->tls_cert_file.len == 0) != (s->tls_key_file.len == 0),
         s->tls_key_file.len == 0 ? HFD_SETTING_tls_cert_file : HFD_SETTING_tls_key_file,
         "expected both or none of tls.cert_file and tls.key_file"},
        {s->tls_client_ca_file.len > 0 && s->tls_cert_file.len == 0, HFD_SETTING_tls_client_ca_file,
         "expected tls.cert_file with it: client certificates need TLS"},
        {s->demo_us >= 0 && is_remote(s), HFD_SETTING_demo_us,
         "expected off with a remote backend: demo adapters would report instead of the remote's "
         "adapters"},
        {s->pacemaker.count > 0 && is_remote(s), HFD_SETTING_pacemaker,
         "expected an empty list with a remote backend: its adapters report to the remote"},
        {(s->remote_cert_file.len == 0) != (s->remote_key_file.len == 0),
         s->remote_key_file.len == 0 ? HFD_SETTING_remote_cert_file : HFD_SETTING_remote_key_file,
         "expected both or none of remote.cert_file and remote.key_file"},
        {s->remote_identity.len > 0 && s->remote_identity_header.len == 0,
         HFD_SETTING_remote_identity, "expected a header for it in remote.identity_header"},
    };

    return check_rules(s, rules, sizeof(rules) / sizeof(rules[0]), err);
}

/* Makes the checks that need more than one setting. */
static hfd_rc check_whole(const struct hfd_settings *s, struct hfd_err *err)
{
    hfd_rc rc;

    if (hfd_slice_eq(s->path_cluster, s->path_nodepool))
        return hfd_settings_refuse(
            s, given_of(s, HFD_SETTING_path_cluster, HFD_SETTING_path_nodepool), err,
            "expected another path for clusters than for nodepools, got \"%.*s\" for both",
            HFD_SLICE_FMT(s->path_nodepool));
    for (size_t i = 0; i < s->types_nodepool.count; i++)
        for (size_t k = 0; k < s->types_cluster.count; k++)
            if (hfd_slice_eq(s->types_nodepool.items[i], s->types_cluster.items[k]))
                return hfd_settings_refuse(
                    s, given_of(s, HFD_SETTING_types_cluster, HFD_SETTING_types_nodepool), err,
                    "expected other types for clusters than for nodepools, got %.60s for both",
                    s->types_nodepool.items[i].p);
    rc = check_output_names(&s->output_values, err);
    for (size_t i = 0; rc == HFD_OK && i < sizeof(orders) / sizeof(orders[0]); i++)
        rc = check_order(s, &orders[i], err);
    if (rc == HFD_OK)
        rc = check_store(s, err);
    return rc != HFD_OK ? rc : check_others(s, err);
}

/* --- all sources --- */

static int by_name(const void *a, const void *b)
{
    return hfd_slice_cmp(((const struct hfd_pair *)a)->name, ((const struct hfd_pair *)b)->name);
}

/* Keeps the order of the file's entries, and sorts the others by name behind them. */
static void sort_maps(struct hfd_settings_loader *ld)
{
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
        const struct hfd_setting_row *row = &hfd_setting_rows[i];

        if (hfd_setting_is_map(row)) {
            struct hfd_map *map = member_of(ld->s, row);
            size_t kept = ld->file_entries[i];

            if (map->count > kept)
                qsort(map->items + kept, map->count - kept, sizeof(*map->items), by_name);
        }
    }
}

/* An estimate that is not set is no longer than the deadline. */
static void shorten_estimates(struct hfd_settings *s)
{
#define SHORTEN_(op)                                                                               \
    if (!hfd_settings_is_set(s, HFD_SETTING_estimate_##op##_us) &&                                 \
        s->estimate_##op##_us > s->deadline_##op##_us)                                             \
    s->estimate_##op##_us = s->deadline_##op##_us
    SHORTEN_(create);
    SHORTEN_(update);
    SHORTEN_(delete);
#undef SHORTEN_
}

static hfd_rc load_all(struct hfd_settings_loader *ld, const struct hfd_settings_given *given,
                       struct hfd_err *err)
{
    char path[PATH_MAX];
    const char *file = NULL;
    hfd_rc rc = load_defaults(ld, err);

    if (rc == HFD_OK)
        rc = find_file(ld, given, path, &file, err);
    if (rc == HFD_OK && file != NULL) {
        ld->in_file = true;
        rc = read_file(ld, file, err);
        ld->in_file = false;
        ld->s->file = hfd_arena_dup(&ld->s->mem, hfd_slice_of(file));
        if (rc == HFD_OK && ld->s->file.p == NULL)
            rc = hfd_fail_nomem(err, "load settings");
    }
    if (rc == HFD_OK)
        rc = load_environment(ld, given->env, err);
    if (rc == HFD_OK)
        rc = load_flags(ld, given, err);
    if (rc == HFD_OK) {
        shorten_estimates(ld->s);
        rc = check_whole(ld->s, err);
    }
    if (rc == HFD_OK) {
        sort_maps(ld);
        if (hfd_settings_has_postgres(ld->s)) {
            if (hfd_settings_is_set(ld->s, HFD_SETTING_data))
                ld->s->unused_data = ld->s->data;
            ld->s->data = HFD_SLICE(""); /* the default is for SQLite */
        }
    }
    return rc;
}

hfd_rc hfd_settings_load_within(size_t max_bytes, const struct hfd_settings_given *given,
                                struct hfd_settings **out, struct hfd_err *err)
{
    struct hfd_settings_loader ld = {.s = NULL};
    hfd_rc rc;

    *out = NULL;
    ld.s = calloc(1, sizeof(*ld.s));
    if (ld.s == NULL)
        return hfd_fail_nomem(err, "load the settings");
    hfd_arena_init(&ld.s->mem, max_bytes);
    rc = load_all(&ld, given, err);
    if (rc != HFD_OK) {
        hfd_settings_free(ld.s);
        return rc;
    }
    *out = ld.s;
    return HFD_OK;
}

hfd_rc hfd_settings_load(int argc, const char *const *argv, const char *const *env,
                         struct hfd_settings **out, struct hfd_err *err)
{
    const struct hfd_settings_given given = {argc, argv, env};

    return hfd_settings_load_within(ARENA_MAX, &given, out, err);
}

void hfd_settings_free(struct hfd_settings *s)
{
    if (s == NULL)
        return;
    hfd_arena_fini(&s->mem);
    free(s);
}
