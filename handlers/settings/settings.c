/*
 * Where settings come from and in which order: defaults, file, environment, flags; and what the
 * table says of itself. Refuses names that are not in the table. Source: DESIGN 8. Thread:
 * start-up.
 */
#include "handlers/settings/settings_int.h"

#include "driver/base/check.h"

#include <stdarg.h>

#define ARENA_MAX (size_t)(8 * 1024 * 1024)
#define NAME_TEXT_MAX 96
#define DISTANCE_MAX_LEN 80

/* clang-format off */
#define ROW_(key_, member_, type_, def_, min_, max_, text_)                                                                   \
    [HFD_SETTING_##member_] = {.key = (key_), .which = HFD_SETTING_##member_, .type = HFD_SETTING_TYPE_##type_,               \
                               .offset = offsetof(struct hfd_settings, member_), .def = (def_), .min = (min_), .max = (max_), \
                               .text = (text_)},
/* clang-format on */
const struct hfd_setting_row hfd_setting_rows[HFD_SETTING_COUNT] = {HFD_SETTING_LIST(ROW_)};
#undef ROW_

/* How a key is spelled. */
enum form {
    FORM_KEY,
    FORM_ENV,
    FORM_FLAG,
};

static const char *const map_suffix[] = {
    [FORM_KEY] = ".NAME", [FORM_ENV] = "_NAME", [FORM_FLAG] = "-NAME"};

static char spell_char(enum form form, char c)
{
    if (form == FORM_FLAG && (c == '.' || c == '_'))
        return '-';
    if (form == FORM_ENV && c == '.')
        return '_';
    if (form == FORM_ENV && c >= 'a' && c <= 'z')
        return (char)(c - 'a' + 'A');
    return c;
}

/* Writes the spelling of a key; without the suffix of maps. @return its length */
static size_t spell(enum form form, const char *key, char out[NAME_TEXT_MAX])
{
    static const char *const prefix[] = {[FORM_KEY] = "", [FORM_ENV] = "HFD_", [FORM_FLAG] = "--"};
    size_t at = strlen(prefix[form]);

    HFD_ASSERT(at + strlen(key) + sizeof("_NAME") <= NAME_TEXT_MAX);
    memcpy(out, prefix[form], at);
    for (; *key != '\0'; key++)
        out[at++] = spell_char(form, *key);
    out[at] = '\0';
    return at;
}

static struct hfd_setting_ref find(enum form form, hfd_slice text)
{
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
        const struct hfd_setting_row *row = &hfd_setting_rows[i];
        char name[NAME_TEXT_MAX];
        size_t len = spell(form, row->key, name);

        if (!hfd_slice_starts(text, (hfd_slice){name, len}))
            continue;
        if (text.len == len)
            return (struct hfd_setting_ref){.kind = HFD_REF_SETTING, .row = row};
        if (row->type == HFD_SETTING_TYPE_MAP && text.p[len] == map_suffix[form][0])
            return (struct hfd_setting_ref){
                .kind = HFD_REF_ENTRY, .row = row, .name = {text.p + len + 1, text.len - len - 1}};
    }
    return (struct hfd_setting_ref){.kind = HFD_REF_UNKNOWN};
}

/* Whether keys go on below it: "driver", "driver.deadline". */
static bool is_section(hfd_slice key)
{
    for (size_t i = 0; key.len > 0 && i < HFD_SETTING_COUNT; i++) {
        hfd_slice whole = hfd_slice_of(hfd_setting_rows[i].key);

        if (hfd_slice_starts(whole, key) && whole.len > key.len && whole.p[key.len] == '.')
            return true;
    }
    return false;
}

struct hfd_setting_ref hfd_setting_find_key(hfd_slice key)
{
    struct hfd_setting_ref ref = find(FORM_KEY, key);

    ref.goes_on =
        is_section(key) || (ref.kind == HFD_REF_SETTING && ref.row->type == HFD_SETTING_TYPE_MAP);
    if (ref.kind == HFD_REF_UNKNOWN && ref.goes_on)
        ref.kind = HFD_REF_SECTION;
    return ref;
}

/* --- what was meant instead of an unknown name --- */

/* Edits (insert, delete, replace) between two texts of at most DISTANCE_MAX_LEN bytes. */
static size_t distance(hfd_slice a, hfd_slice b)
{
    size_t row[DISTANCE_MAX_LEN + 1];

    for (size_t k = 0; k <= b.len; k++)
        row[k] = k;
    for (size_t i = 0; i < a.len; i++) {
        size_t diagonal = row[0];

        row[0] = i + 1;
        for (size_t k = 0; k < b.len; k++) {
            size_t replaced = diagonal + (a.p[i] != b.p[k]);
            size_t shorter = row[k] < row[k + 1] ? row[k] : row[k + 1];

            diagonal = row[k + 1];
            row[k + 1] = replaced < shorter + 1 ? replaced : shorter + 1;
        }
    }
    return row[b.len];
}

struct nearest {
    hfd_slice given;
    size_t best;
    char text[NAME_TEXT_MAX];
};

static void consider(struct nearest *n, const char *candidate, size_t len)
{
    size_t d;

    if (len > DISTANCE_MAX_LEN)
        return;
    d = distance(n->given, (hfd_slice){candidate, len});
    if (d < n->best) {
        n->best = d;
        memcpy(n->text, candidate, len);
        n->text[len] = '\0';
    }
}

/* ", did you mean log.level?", or where to look. */
static void suggest(enum form form, hfd_slice given, char out[NAME_TEXT_MAX + 32])
{
    struct nearest n = {.given = given, .best = given.len / 3 + 1};

    if (given.len <= DISTANCE_MAX_LEN) {
        for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
            char name[NAME_TEXT_MAX];
            size_t len = spell(form, hfd_setting_rows[i].key, name);

            for (size_t k = 1; form == FORM_KEY && k < len; k++) {
                if (name[k] == '.')
                    consider(&n, name, k);
            }
            if (hfd_setting_rows[i].type == HFD_SETTING_TYPE_MAP) {
                memcpy(name + len, map_suffix[form], sizeof(".NAME"));
                len += sizeof(".NAME") - 1;
            }
            consider(&n, name, len);
        }
    }
    if (n.text[0] != '\0')
        (void)snprintf(out, NAME_TEXT_MAX + 32, "did you mean %s?", n.text);
    else
        (void)snprintf(out, NAME_TEXT_MAX + 32, "see `hyperfleet-driver help serve`");
}

hfd_rc hfd_setting_unknown_key(const struct hfd_settings_loader *ld, hfd_slice key,
                               struct hfd_err *err)
{
    char quoted[HFD_QUOTE_MAX], hint[NAME_TEXT_MAX + 32];

    suggest(FORM_KEY, key, hint);
    (void)hfd_setting_quote(key, quoted);
    return hfd_fail_field(err, HFD_INVALID, key.p, "%s: unknown setting %s; %s", ld->place, quoted,
                          hint);
}

/* --- storing one value --- */

hfd_rc hfd_setting_fail(const struct hfd_settings_loader *ld, hfd_rc rc, const char *key,
                        struct hfd_err *err, const char *fmt, ...)
{
    char msg[sizeof(err->msg)];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    return hfd_fail_field(err, rc, key, "%s: %s: %s", ld->place, key, msg);
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
    const char *key = hfd_setting_rows[which].key;
    const hfd_slice origin = s->origin[which];
    char msg[sizeof(err->msg)];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    return hfd_fail_field(err, HFD_INVALID, key, "%.*s%s%s: %s", HFD_SLICE_FMT(origin),
                          origin.len > 0 ? ": " : "", key, msg);
}

static void *member_of(struct hfd_settings *s, const struct hfd_setting_row *row)
{
    return (char *)s + row->offset;
}

static const void *const_member_of(const struct hfd_settings *s, const struct hfd_setting_row *row)
{
    return (const char *)s + row->offset;
}

/*
 * The entry of that name, or a new one with no value; NULL when the map is full or memory is short.
 */
static struct hfd_pair *entry_of(struct hfd_map *map, hfd_slice name, struct hfd_arena *mem)
{
    for (size_t i = 0; i < map->count; i++) {
        if (hfd_slice_eq(map->items[i].name, name))
            return &map->items[i];
    }
    if (map->items == NULL)
        map->items = hfd_arena_array(mem, HFD_SETTING_ITEMS_MAX, sizeof(*map->items));
    if (map->items == NULL || map->count == HFD_SETTING_ITEMS_MAX)
        return NULL;
    map->items[map->count] = (struct hfd_pair){.name = hfd_arena_dup(mem, name)};
    return map->items[map->count].name.p != NULL ? &map->items[map->count++] : NULL;
}

static hfd_rc put_entry(struct hfd_settings_loader *ld, const struct hfd_setting_ref *ref,
                        hfd_slice value, struct hfd_err *err)
{
    struct hfd_map *map = member_of(ld->s, ref->row);
    struct hfd_err why = {0};
    struct hfd_pair *pair;
    hfd_rc rc = hfd_setting_name_check(ref->name, &why);

    if (rc != HFD_OK)
        return hfd_setting_fail(ld, rc, ref->row->key, err, "%s", why.msg);
    rc = hfd_setting_entry_check(value, &why);
    if (rc != HFD_OK)
        return hfd_fail_field(err, rc, ref->row->key, "%s: %s.%.*s: %s", ld->place, ref->row->key,
                              HFD_SLICE_FMT(ref->name), why.msg);
    pair = entry_of(map, ref->name, &ld->s->mem);
    if (pair == NULL && map->count == HFD_SETTING_ITEMS_MAX)
        return hfd_setting_fail(ld, HFD_INVALID, ref->row->key, err, "expected at most %d entries",
                                HFD_SETTING_ITEMS_MAX);
    if (pair == NULL)
        return hfd_fail(err, HFD_NOMEM, "out of memory");
    if (ld->in_file && pair->value.p != NULL)
        return hfd_setting_fail(ld, HFD_INVALID, ref->row->key, err, "%.*s is given twice",
                                HFD_SLICE_FMT(pair->name));
    pair->value = hfd_arena_dup(&ld->s->mem, value);
    pair->origin = hfd_arena_dup(&ld->s->mem, hfd_slice_of(ld->place));
    if (pair->value.p == NULL || pair->origin.p == NULL)
        return hfd_fail(err, HFD_NOMEM, "out of memory");
    if (ld->in_file)
        ld->file_entries[ref->row->which] = map->count;
    return HFD_OK;
}

hfd_rc hfd_setting_put(struct hfd_settings_loader *ld, const struct hfd_setting_ref *ref,
                       const struct hfd_setting_value *v, struct hfd_err *err)
{
    const struct hfd_setting_row *row = ref->row;
    hfd_slice *origin = &ld->s->origin[row->which];
    struct hfd_err why = {0};
    hfd_rc rc;

    if (ref->kind == HFD_REF_ENTRY) {
        rc = put_entry(ld, ref, v->text, err);
    } else {
        if (ld->in_file && origin->len > 0)
            return hfd_setting_fail(ld, HFD_INVALID, row->key, err, "given twice, first at %.*s",
                                    HFD_SLICE_FMT(*origin));
        rc = hfd_setting_parse(row, v, &ld->s->mem, member_of(ld->s, row), &why);
        if (rc != HFD_OK)
            return hfd_setting_fail(ld, rc, row->key, err, "%s", why.msg);
    }
    if (rc != HFD_OK || ld->place[0] == '\0')
        return rc;
    *origin = hfd_arena_dup(&ld->s->mem, hfd_slice_of(ld->place));
    return origin->p != NULL ? HFD_OK : hfd_fail(err, HFD_NOMEM, "out of memory");
}

/* --- sources --- */

static hfd_rc load_defaults(struct hfd_settings_loader *ld, struct hfd_err *err)
{
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
        const struct hfd_setting_ref ref = {.kind = HFD_REF_SETTING, .row = &hfd_setting_rows[i]};
        const struct hfd_setting_value v = {.text = hfd_slice_of(hfd_setting_rows[i].def)};
        hfd_rc rc;

        if (ref.row->type == HFD_SETTING_TYPE_MAP)
            continue;
        rc = hfd_setting_put(ld, &ref, &v, err);
        HFD_ASSERT(rc == HFD_OK || rc == HFD_NOMEM); /* the table's own defaults */
        if (rc != HFD_OK)
            return rc;
    }
    return HFD_OK;
}

/* A value of the environment or a flag. */
static hfd_rc put_text(struct hfd_settings_loader *ld, enum form form,
                       const struct hfd_setting_ref *ref, hfd_slice text, struct hfd_err *err)
{
    const struct hfd_setting_value v = {.text = text};
    char name[NAME_TEXT_MAX];

    if (ref->kind == HFD_REF_SETTING && ref->row->type == HFD_SETTING_TYPE_MAP) {
        (void)spell(form, ref->row->key, name);
        return hfd_setting_fail(ld, HFD_INVALID, ref->row->key, err,
                                "expected one entry at a time: %s%s=ADAPTER:/json/pointer", name,
                                map_suffix[form]);
    }
    return hfd_setting_put(ld, ref, &v, err);
}

static hfd_rc unknown_name(enum form form, const char *what, hfd_slice name, struct hfd_err *err)
{
    char field[NAME_TEXT_MAX], quoted[HFD_QUOTE_MAX], hint[NAME_TEXT_MAX + 32];

    suggest(form, name, hint);
    (void)snprintf(field, sizeof(field), "%.*s", HFD_SLICE_FMT(name));
    return hfd_fail_field(err, HFD_INVALID, field, "%s %s; %s", what,
                          hfd_setting_quote(name, quoted), hint);
}

static hfd_rc load_variable(struct hfd_settings_loader *ld, hfd_slice name, hfd_slice value,
                            struct hfd_err *err)
{
    struct hfd_setting_ref ref = find(FORM_ENV, name);
    char lower[NAME_TEXT_MAX];

    if (ref.kind == HFD_REF_UNKNOWN)
        return unknown_name(FORM_ENV, "environment: unknown variable", name, err);
    (void)snprintf(ld->place, sizeof(ld->place), "%.*s", HFD_SLICE_FMT(name));
    if (ref.kind == HFD_REF_ENTRY && ref.name.len < sizeof(lower)) {
        for (size_t i = 0; i < ref.name.len; i++)
            lower[i] =
                (char)(ref.name.p[i] >= 'A' && ref.name.p[i] <= 'Z' ? ref.name.p[i] - 'A' + 'a'
                                                                    : ref.name.p[i]);
        ref.name.p = lower;
    }
    return put_text(ld, FORM_ENV, &ref, value, err);
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
        if (!hfd_slice_starts(name, HFD_SLICE("HFD_")) || hfd_slice_is(name, "HFD_CONFIG"))
            continue;
        rc = load_variable(ld, name, hfd_slice_of(equals + 1), err);
        if (rc != HFD_OK)
            return rc;
    }
    return HFD_OK;
}

struct flag {
    hfd_slice name; /* with its "--" */
    struct hfd_setting_ref ref;
    const char *value;
};

/* Reads the flag at argv[*at] and moves *at behind it. ref.kind is UNKNOWN for --config. */
static hfd_rc parse_flag(int argc, const char *const *argv, int *at, struct flag *out,
                         struct hfd_err *err)
{
    const char *arg = argv[(*at)++];
    const char *equals = strchr(arg, '=');
    char quoted[HFD_QUOTE_MAX];

    out->name = (hfd_slice){arg, equals != NULL ? (size_t)(equals - arg) : strlen(arg)};
    (void)hfd_setting_quote(out->name, quoted);
    if (!hfd_slice_starts(out->name, HFD_SLICE("--")) || out->name.len == 2)
        return hfd_fail(err, HFD_INVALID, "unexpected argument %s%s", quoted,
                        *at >= 2 && strcmp(argv[*at - 2], "--demo") == 0 ? "; write --demo=SECONDS"
                                                                         : "");
    out->ref = find(FORM_FLAG, out->name);
    if (out->ref.kind == HFD_REF_UNKNOWN && !hfd_slice_is(out->name, "--config"))
        return unknown_name(FORM_FLAG, "unknown flag", out->name, err);
    if (equals != NULL)
        out->value = equals + 1;
    else if (out->ref.kind == HFD_REF_SETTING && out->ref.row->type == HFD_SETTING_TYPE_DEMO)
        out->value = "on";
    else if (*at < argc && strncmp(argv[*at], "--", 2) != 0)
        out->value = argv[(*at)++];
    else
        return hfd_fail_field(err, HFD_INVALID, out->ref.row != NULL ? out->ref.row->key : "config",
                              "flag %s: expected a value", quoted);
    return HFD_OK;
}

/* Checks all names, and finds the file: --config, else HFD_CONFIG, else none. */
static hfd_rc find_file(int argc, const char *const *argv, const char *const *env, const char **out,
                        struct hfd_err *err)
{
    static const char variable[] = "HFD_CONFIG=";
    bool flagged = false;

    *out = NULL;
    for (; *env != NULL; env++) {
        if (strncmp(*env, variable, sizeof(variable) - 1) == 0 &&
            (*env)[sizeof(variable) - 1] != '\0')
            *out = *env + sizeof(variable) - 1;
    }
    for (int at = 0; at < argc;) {
        struct flag flag = {.value = ""};
        hfd_rc rc = parse_flag(argc, argv, &at, &flag, err);

        if (rc != HFD_OK)
            return rc;
        if (flag.ref.kind != HFD_REF_UNKNOWN)
            continue;
        if (flagged || flag.value[0] == '\0')
            return hfd_fail_field(err, HFD_INVALID, "config", "flag --config: expected one file");
        flagged = true;
        *out = flag.value;
    }
    return HFD_OK;
}

static hfd_rc load_flags(struct hfd_settings_loader *ld, int argc, const char *const *argv,
                         struct hfd_err *err)
{
    for (int at = 0; at < argc;) {
        struct flag flag = {.value = ""};
        hfd_rc rc = parse_flag(argc, argv, &at, &flag, err);

        if (rc != HFD_OK)
            return rc;
        if (flag.ref.kind == HFD_REF_UNKNOWN)
            continue;
        (void)snprintf(ld->place, sizeof(ld->place), "%.*s", HFD_SLICE_FMT(flag.name));
        rc = put_text(ld, FORM_FLAG, &flag.ref, hfd_slice_of(flag.value), err);
        if (rc != HFD_OK)
            return rc;
    }
    return HFD_OK;
}

/* --- the whole --- */

static int by_name(const void *a, const void *b)
{
    return hfd_slice_cmp(((const struct hfd_pair *)a)->name, ((const struct hfd_pair *)b)->name);
}

/* The file's entries keep their order, the others follow by name. */
static void sort_maps(struct hfd_settings_loader *ld)
{
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
        const struct hfd_setting_row *row = &hfd_setting_rows[i];

        if (row->type == HFD_SETTING_TYPE_MAP) {
            struct hfd_map *map = member_of(ld->s, row);
            size_t kept = ld->file_entries[i];

            if (map->count > kept)
                qsort(map->items + kept, map->count - kept, sizeof(*map->items), by_name);
        }
    }
}

/* Every output has these values; a second one of the name would be a second member of the name. */
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

/* Of two settings that do not go together, the one that somebody gave. */
static enum hfd_setting given_of(const struct hfd_settings *s, enum hfd_setting a,
                                 enum hfd_setting b)
{
    return hfd_settings_is_set(s, b) ? b : a;
}

static hfd_rc refuse_retry(const struct hfd_settings *s, struct hfd_err *err)
{
    const enum hfd_setting which =
        given_of(s, HFD_SETTING_remote_retry_min_us, HFD_SETTING_remote_retry_max_us);
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, 64);
    hfd_setting_format(&b, &hfd_setting_rows[HFD_SETTING_remote_retry_min_us],
                       &s->remote_retry_min_us);
    hfd_buf_lit(&b, " to ");
    hfd_setting_format(&b, &hfd_setting_rows[HFD_SETTING_remote_retry_max_us],
                       &s->remote_retry_max_us);
    rc = hfd_settings_refuse(
        s, which, err, "expected remote.retry_min to be no more than remote.retry_max, got %.*s",
        HFD_SLICE_FMT(hfd_buf_slice(&b)));
    hfd_buf_fini(&b);
    return rc;
}

static hfd_rc check_remote(const struct hfd_settings *s, struct hfd_err *err)
{
    if (s->demo_us >= 0 && !hfd_slice_is(s->backend, "embedded"))
        return hfd_settings_refuse(s, HFD_SETTING_demo_us, err,
                                   "expected it off with a remote backend: demo adapters would "
                                   "report success in the place of the "
                                   "remote's own");
    if ((s->remote_cert_file.len == 0) != (s->remote_key_file.len == 0))
        return hfd_settings_refuse(s,
                                   s->remote_key_file.len == 0 ? HFD_SETTING_remote_cert_file
                                                               : HFD_SETTING_remote_key_file,
                                   err,
                                   "expected both or none of remote.cert_file and remote.key_file");
    if (s->remote_identity.len > 0 && s->remote_identity_header.len == 0)
        return hfd_settings_refuse(s, HFD_SETTING_remote_identity, err,
                                   "expected a header for it in remote.identity_header");
    if (s->remote_retry_min_us > s->remote_retry_max_us)
        return refuse_retry(s, err);
    return HFD_OK;
}

/* What no single value can tell. */
static hfd_rc check_whole(const struct hfd_settings *s, struct hfd_err *err)
{
    hfd_rc rc;

    if (hfd_slice_eq(s->path_cluster, s->path_nodepool))
        return hfd_settings_refuse(
            s, given_of(s, HFD_SETTING_path_cluster, HFD_SETTING_path_nodepool), err,
            "expected another path for clusters than for nodepools, got \"%.*s\" for both",
            HFD_SLICE_FMT(s->path_nodepool));
    for (size_t i = 0; i < s->types_nodepool.count; i++) {
        for (size_t k = 0; k < s->types_cluster.count; k++) {
            if (hfd_slice_eq(s->types_nodepool.items[i], s->types_cluster.items[k]))
                return hfd_settings_refuse(
                    s, given_of(s, HFD_SETTING_types_cluster, HFD_SETTING_types_nodepool), err,
                    "expected other types for clusters than for nodepools, got %.60s for both",
                    s->types_nodepool.items[i].p);
        }
    }
    rc = check_output_names(&s->output_values, err);
    return rc != HFD_OK ? rc : check_remote(s, err);
}

static hfd_rc load_all(struct hfd_settings_loader *ld, int argc, const char *const *argv,
                       const char *const *env, struct hfd_err *err)
{
    const char *file = NULL;
    hfd_rc rc = load_defaults(ld, err);

    if (rc == HFD_OK)
        rc = find_file(argc, argv, env, &file, err);
    if (rc == HFD_OK && file != NULL) {
        ld->in_file = true;
        rc = hfd_settings_read_file(ld, file, err);
        ld->in_file = false;
    }
    if (rc == HFD_OK)
        rc = load_environment(ld, env, err);
    if (rc == HFD_OK)
        rc = load_flags(ld, argc, argv, err);
    if (rc == HFD_OK)
        rc = check_whole(ld->s, err);
    if (rc == HFD_OK)
        sort_maps(ld);
    return rc;
}

hfd_rc hfd_settings_load_within(size_t max_bytes, int argc, const char *const *argv,
                                const char *const *env, struct hfd_settings **out,
                                struct hfd_err *err)
{
    struct hfd_settings_loader ld = {.s = NULL};
    hfd_rc rc;

    *out = NULL;
    ld.s = calloc(1, sizeof(*ld.s));
    if (ld.s == NULL)
        return hfd_fail(err, HFD_NOMEM, "out of memory");
    hfd_arena_init(&ld.s->mem, max_bytes);
    rc = load_all(&ld, argc, argv, env, err);
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
    return hfd_settings_load_within(ARENA_MAX, argc, argv, env, out, err);
}

void hfd_settings_free(struct hfd_settings *s)
{
    if (s == NULL)
        return;
    hfd_arena_fini(&s->mem);
    free(s);
}

bool hfd_settings_is_set(const struct hfd_settings *s, enum hfd_setting which)
{
    return s->origin[which].len > 0;
}

/* --- what the table says of itself --- */

static void help_plain(struct hfd_buf *b, const struct hfd_setting_row *row)
{
    const char *name = row->type == HFD_SETTING_TYPE_MAP ? map_suffix[FORM_FLAG] : "";
    char flag[NAME_TEXT_MAX];

    (void)spell(FORM_FLAG, row->key, flag);
    if (row->type == HFD_SETTING_TYPE_DEMO)
        hfd_buf_addf(b, "  %s[=%s]", flag, hfd_setting_form(row));
    else
        hfd_buf_addf(b, "  %s%s %s", flag, name, hfd_setting_form(row));
    hfd_buf_addf(b, "\n      %s", row->text);
    if (row->def[0] != '\0')
        hfd_buf_addf(b, "\n      default %s", row->def);
    if (row->max != 0) {
        hfd_buf_addf(b, "%s", row->def[0] != '\0' ? "; " : "\n      ");
        hfd_setting_range(b, row);
    }
    hfd_buf_addc(b, '\n');
}

static void help_markdown(struct hfd_buf *b, const struct hfd_setting_row *row)
{
    const char *name = row->type == HFD_SETTING_TYPE_MAP ? map_suffix[FORM_KEY] : "";

    hfd_buf_addf(b, "| `%s%s` | %s | ", row->key, name, hfd_setting_form(row));
    if (row->def[0] != '\0')
        hfd_buf_addf(b, "`%s`", row->def);
    hfd_buf_lit(b, " | ");
    if (row->max != 0)
        hfd_setting_range(b, row);
    hfd_buf_addf(b, " | %s |\n", row->text);
}

void hfd_settings_help(struct hfd_buf *b, bool markdown)
{
    if (markdown)
        hfd_buf_lit(b, "| Key | Value | Default | Range | Meaning |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
        if (markdown)
            help_markdown(b, &hfd_setting_rows[i]);
        else
            help_plain(b, &hfd_setting_rows[i]);
    }
}

static void show_origin(struct hfd_buf *b, bool origins, hfd_slice origin)
{
    if (origins && origin.len > 0)
        hfd_buf_addf(b, " # %.*s", HFD_SLICE_FMT(origin));
    hfd_buf_addc(b, '\n');
}

static void show_map(struct hfd_buf *b, const char *key, bool origins, const struct hfd_map *map)
{
    if (map->count == 0)
        hfd_buf_addf(b, "%s: {}\n", key);
    for (size_t i = 0; i < map->count; i++) {
        hfd_buf_addf(b, "%s.%.*s: ", key, HFD_SLICE_FMT(map->items[i].name));
        hfd_buf_json_str(b, map->items[i].value);
        show_origin(b, origins, map->items[i].origin);
    }
}

void hfd_settings_show(const struct hfd_settings *s, bool origins, struct hfd_buf *b)
{
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
        const struct hfd_setting_row *row = &hfd_setting_rows[i];

        if (row->type == HFD_SETTING_TYPE_MAP) {
            show_map(b, row->key, origins, const_member_of(s, row));
            continue;
        }
        hfd_buf_addf(b, "%s: ", row->key);
        hfd_setting_format(b, row, const_member_of(s, row));
        show_origin(b, origins, s->origin[i]);
    }
}
