/*
 * Loads the settings in order: defaults, file, environment, flags. Refuses names that are not in
 * the table. Thread: start-up.
 */
#include "handlers/settings/settings.h"

#include <stdarg.h>

#include "driver/base/check.h"
#include "handlers/settings/settings_check.h"
#include "handlers/settings/settings_names.h"
#include "handlers/settings/settings_value.h"
#include "handlers/settings/settings_whole.h"
#include "handlers/settings/settings_yaml.h"

#define ARENA_MAX (size_t)(8 * 1024 * 1024)

/* clang-format off */
#define ROW_(key_, member_, type_, def_, min_, max_, text_)                                                                   \
    [HFD_SETTING_##member_] = {.key = (key_), .which = HFD_SETTING_##member_, .type = HFD_SETTING_TYPE_##type_,               \
                               .offset = offsetof(struct hfd_settings, member_), .def = (def_), .min = (min_), .max = (max_), \
                               .text = (text_)},
/* clang-format on */
const struct hfd_setting_row hfd_setting_rows[HFD_SETTING_COUNT] = {HFD_SETTING_LIST(ROW_)};
#undef ROW_

/* --- storing one value --- */

bool hfd_setting_is_named_by(hfd_slice place)
{
    return hfd_slice_starts(place, HFD_SLICE("--")) || hfd_slice_starts(place, HFD_SLICE("HFD_"));
}

hfd_rc hfd_setting_fail(const struct hfd_settings_loader *ld, const char *key, struct hfd_err *err,
                        const char *fmt, ...)
{
    char msg[sizeof(err->msg)];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    if (hfd_setting_is_named_by(hfd_slice_of(ld->place)))
        return hfd_fail_field(err, HFD_INVALID, key, "%s: %s", ld->place, msg);
    return hfd_fail_field(err, HFD_INVALID, key, "%s: %s: %s", ld->place, key, msg);
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
    if (hfd_setting_is_named_by(origin))
        return hfd_fail_field(err, HFD_INVALID, key, "%.*s: %s", HFD_SLICE_FMT(origin), msg);
    return hfd_fail_field(err, HFD_INVALID, key, "%.*s%s%s: %s", HFD_SLICE_FMT(origin),
                          origin.len > 0 ? ": " : "", key, msg);
}

static void *member_of(struct hfd_settings *s, const struct hfd_setting_row *row)
{
    return (char *)s + row->offset;
}

/* Finds or adds an entry. Returns NULL if the map is full or memory is short. */
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
        return hfd_setting_fail(ld, ref->row->key, err, "%s", why.msg);
    rc = hfd_setting_entry_check(ref->row, value, &why);
    if (rc != HFD_OK)
        return hfd_fail_field(err, rc, ref->row->key, "%s: %s.%.*s%s: %s", ld->place, ref->row->key,
                              HFD_SLICE_FMT(ref->name), hfd_setting_ending(HFD_FORM_KEY, ref->row),
                              why.msg);
    pair = entry_of(map, ref->name, &ld->s->mem);
    if (pair == NULL && map->count == HFD_SETTING_ITEMS_MAX)
        return hfd_setting_fail(ld, ref->row->key, err, "expected at most %d entries",
                                HFD_SETTING_ITEMS_MAX);
    if (pair == NULL)
        return hfd_fail_nomem(err, "load the settings");
    if (ld->in_file && pair->value.p != NULL)
        return hfd_setting_fail(ld, ref->row->key, err, "%.*s is given twice",
                                HFD_SLICE_FMT(pair->name));
    pair->value = hfd_arena_dup(&ld->s->mem, value);
    pair->origin = hfd_arena_dup(&ld->s->mem, hfd_slice_of(ld->place));
    if (pair->value.p == NULL || pair->origin.p == NULL)
        return hfd_fail_nomem(err, "load the settings");
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
            return hfd_setting_fail(ld, row->key, err, "given twice, first at %.*s",
                                    HFD_SLICE_FMT(*origin));
        rc = hfd_setting_parse(row, v, &ld->s->mem, member_of(ld->s, row), &why);
        if (rc == HFD_INVALID)
            return hfd_setting_fail(ld, row->key, err, "%s", why.msg);
        if (rc != HFD_OK)
            return hfd_fail_field(err, rc, row->key, "%s: %s", ld->place, why.msg);
    }
    if (rc != HFD_OK || ld->place[0] == '\0')
        return rc;
    *origin = hfd_arena_dup(&ld->s->mem, hfd_slice_of(ld->place));
    return origin->p != NULL ? HFD_OK : hfd_fail_nomem(err, "load the settings");
}

/* --- sources --- */

static hfd_rc load_defaults(struct hfd_settings_loader *ld, struct hfd_err *err)
{
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
        const struct hfd_setting_ref ref = {.kind = HFD_REF_SETTING, .row = &hfd_setting_rows[i]};
        const struct hfd_setting_value v = {.text = hfd_slice_of(hfd_setting_rows[i].def)};
        hfd_rc rc;

        if (hfd_setting_is_map(ref.row))
            continue;
        rc = hfd_setting_put(ld, &ref, &v, err);
        HFD_ASSERT(rc == HFD_OK || rc == HFD_NOMEM); /* defaults are valid */
        if (rc != HFD_OK)
            return rc;
    }
    return HFD_OK;
}

/* Stores a value of the environment or of a flag. */
static hfd_rc put_text(struct hfd_settings_loader *ld, enum hfd_setting_form form,
                       const struct hfd_setting_ref *ref, hfd_slice text, struct hfd_err *err)
{
    const struct hfd_setting_value v = {.text = text};
    char name[HFD_SETTING_NAME_MAX];

    if (ref->kind == HFD_REF_SETTING && hfd_setting_is_map(ref->row)) {
        (void)hfd_setting_spell(form, ref->row->key, name);
        return hfd_setting_fail(ld, ref->row->key, err, "expected one entry at a time: %s%s=%s",
                                name, hfd_setting_suffix(form, ref->row),
                                ref->row->type == HFD_SETTING_TYPE_MAP
                                    ? "ADAPTER:/json/pointer"
                                    : hfd_setting_form_text(ref->row));
    }
    return hfd_setting_put(ld, ref, &v, err);
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
    struct hfd_setting_ref ref = hfd_setting_find(HFD_FORM_ENV, name);
    char lower[HFD_SETTING_NAME_MAX];

    if (ref.kind == HFD_REF_UNKNOWN && is_service_link(name, value))
        return note_link(ld->s, name, err);
    if (ref.kind == HFD_REF_UNKNOWN)
        return hfd_setting_unknown_name(HFD_FORM_ENV, "environment: unknown variable", name, err);
    (void)snprintf(ld->place, sizeof(ld->place), "%.*s", HFD_SLICE_FMT(name));
    if (ref.kind == HFD_REF_ENTRY && ref.name.len < sizeof(lower)) {
        for (size_t i = 0; i < ref.name.len; i++)
            lower[i] =
                (char)(ref.name.p[i] >= 'A' && ref.name.p[i] <= 'Z' ? ref.name.p[i] - 'A' + 'a'
                                                                    : ref.name.p[i]);
        ref.name.p = lower;
    }
    return put_text(ld, HFD_FORM_ENV, &ref, value, err);
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

struct flag {
    hfd_slice name; /* with its "--" */
    struct hfd_setting_ref ref;
    const char *value;
};

/* Reads the flag at argv[*at] and advances *at. ref.kind is UNKNOWN for --config. */
static hfd_rc parse_flag(const struct hfd_settings_given *given, int *at, struct flag *out,
                         struct hfd_err *err)
{
    const char *const *argv = given->argv;
    const char *arg = argv[(*at)++];
    const char *equals = strchr(arg, '=');
    char quoted[HFD_QUOTE_MAX];

    out->name = (hfd_slice){arg, equals != NULL ? (size_t)(equals - arg) : strlen(arg)};
    (void)hfd_setting_quote(out->name, quoted);
    if (!hfd_slice_starts(out->name, HFD_SLICE("--")) || out->name.len == 2)
        return hfd_fail(err, HFD_INVALID, "unexpected argument %s%s", quoted,
                        *at >= 2 && strcmp(argv[*at - 2], "--demo") == 0 ? "; write --demo=SECONDS"
                                                                         : "");
    out->ref = hfd_setting_find(HFD_FORM_FLAG, out->name);
    if (out->ref.kind == HFD_REF_UNKNOWN && !hfd_slice_is(out->name, "--config"))
        return hfd_setting_unknown_name(HFD_FORM_FLAG, "unknown flag", out->name, err);
    if (equals != NULL)
        out->value = equals + 1;
    else if (out->ref.kind == HFD_REF_SETTING && hfd_setting_needs_no_value(out->ref.row))
        out->value = "on";
    else if (*at < given->argc && strncmp(argv[*at], "--", 2) != 0)
        out->value = argv[(*at)++];
    else
        return hfd_fail_field(err, HFD_INVALID, out->ref.row != NULL ? out->ref.row->key : "config",
                              "flag %s: expected a value", quoted);
    return HFD_OK;
}

/* Checks all flags and finds the file: --config, else HFD_CONFIG, else none. */
static hfd_rc find_file(const struct hfd_settings_given *given, const char **out,
                        struct hfd_err *err)
{
    static const char variable[] = "HFD_CONFIG=";
    bool flagged = false;

    *out = NULL;
    for (const char *const *env = given->env; *env != NULL; env++) {
        if (strncmp(*env, variable, sizeof(variable) - 1) == 0 &&
            (*env)[sizeof(variable) - 1] != '\0')
            *out = *env + sizeof(variable) - 1;
    }
    for (int at = 0; at < given->argc;) {
        struct flag flag = {.value = ""};
        hfd_rc rc = parse_flag(given, &at, &flag, err);

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

static hfd_rc load_flags(struct hfd_settings_loader *ld, const struct hfd_settings_given *given,
                         struct hfd_err *err)
{
    for (int at = 0; at < given->argc;) {
        struct flag flag = {.value = ""};
        hfd_rc rc = parse_flag(given, &at, &flag, err);

        if (rc != HFD_OK)
            return rc;
        if (flag.ref.kind == HFD_REF_UNKNOWN)
            continue;
        (void)snprintf(ld->place, sizeof(ld->place), "%.*s", HFD_SLICE_FMT(flag.name));
        rc = put_text(ld, HFD_FORM_FLAG, &flag.ref, hfd_slice_of(flag.value), err);
        if (rc != HFD_OK)
            return rc;
    }
    return HFD_OK;
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

static hfd_rc load_all(struct hfd_settings_loader *ld, const struct hfd_settings_given *given,
                       struct hfd_err *err)
{
    const char *file = NULL;
    hfd_rc rc = load_defaults(ld, err);

    if (rc == HFD_OK)
        rc = find_file(given, &file, err);
    if (rc == HFD_OK && file != NULL) {
        ld->in_file = true;
        rc = hfd_settings_read_file(ld, file, err);
        ld->in_file = false;
    }
    if (rc == HFD_OK)
        rc = load_environment(ld, given->env, err);
    if (rc == HFD_OK)
        rc = load_flags(ld, given, err);
    if (rc == HFD_OK)
        rc = hfd_settings_check_whole(ld->s, err);
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

bool hfd_settings_is_set(const struct hfd_settings *s, enum hfd_setting which)
{
    return s->origin[which].len > 0;
}
