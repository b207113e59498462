/*
 * The names of settings as a file, the environment and flags spell them, with the nearest name for
 * an unknown one. Also the texts of settings_show.h. Pure.
 */
#include "handlers/settings/settings_show.h"

#include "driver/base/check.h"
#include "driver/base/nearest.h"
#include "handlers/settings/settings_int.h"

/* ---- names ---- */

#define NAME_LEN (sizeof(".NAME") - 1)

/* clang-format off */
#define SUFFIXES_(key, variable, flag) {[HFD_FORM_KEY] = ".NAME" key, [HFD_FORM_ENV] = "_NAME" variable, [HFD_FORM_FLAG] = "-NAME" flag}
static const char *const of_map[] = SUFFIXES_("", "", "");
/* Those of maps with an ending. */
static const char *const of_endings[HFD_SETTING_COUNT][3] = {
    [HFD_SETTING_hypershift_management] = SUFFIXES_(".kubeconfig", "_KUBECONFIG", "-kubeconfig"),
    [HFD_SETTING_webhook_urls] = SUFFIXES_(".url", "_URL", "-url"),
    [HFD_SETTING_webhook_secret_files] = SUFFIXES_(".secret_file", "_SECRET_FILE", "-secret-file"),
    [HFD_SETTING_webhook_types] = SUFFIXES_(".types", "_TYPES", "-types"),
    [HFD_SETTING_webhook_ca_files] = SUFFIXES_(".ca_file", "_CA_FILE", "-ca-file"),
};
#undef SUFFIXES_
/* clang-format on */

const char *hfd_setting_suffix(enum hfd_setting_form form, const struct hfd_setting_row *row)
{
    if (of_endings[row->which][form] != NULL)
        return of_endings[row->which][form];
    return hfd_setting_is_map(row) ? of_map[form] : "";
}

const char *hfd_setting_ending(enum hfd_setting_form form, const struct hfd_setting_row *row)
{
    return hfd_setting_is_map(row) ? hfd_setting_suffix(form, row) + NAME_LEN : "";
}

static char spell_char(enum hfd_setting_form form, char c)
{
    if (form == HFD_FORM_FLAG && (c == '.' || c == '_'))
        return '-';
    if (form == HFD_FORM_ENV && c == '.')
        return '_';
    if (form == HFD_FORM_ENV && c >= 'a' && c <= 'z')
        return (char)(c - 'a' + 'A');
    return c;
}

size_t hfd_setting_spell(enum hfd_setting_form form, const char *key,
                         char out[HFD_SETTING_NAME_MAX])
{
    static const char *const prefix[] = {
        [HFD_FORM_KEY] = "", [HFD_FORM_ENV] = "HFD_", [HFD_FORM_FLAG] = "--"};
    size_t at = strlen(prefix[form]);

    HFD_ASSERT(at + strlen(key) + sizeof("_NAME_SECRET_FILE") <= HFD_SETTING_NAME_MAX);
    memcpy(out, prefix[form], at);
    for (; *key != '\0'; key++)
        out[at++] = spell_char(form, *key);
    out[at] = '\0';
    return at;
}

/* Takes the name of an entry out of what follows the name of its map: ".east.kubeconfig". */
static bool take_entry(enum hfd_setting_form form, const struct hfd_setting_row *row,
                       hfd_slice rest, hfd_slice *name)
{
    const hfd_slice ending = hfd_slice_of(hfd_setting_ending(form, row));

    if (!hfd_setting_is_map(row) || rest.p[0] != hfd_setting_suffix(form, row)[0] ||
        rest.len < 1 + ending.len ||
        !hfd_slice_eq((hfd_slice){rest.p + rest.len - ending.len, ending.len}, ending))
        return false;
    *name = (hfd_slice){rest.p + 1, rest.len - 1 - ending.len};
    return true;
}

/* True for the name of an entry that has keys below it: "hypershift.management.east". */
static bool is_entry_section(const struct hfd_setting_row *row, hfd_slice key)
{
    const hfd_slice whole = hfd_slice_of(row->key);

    return of_endings[row->which][HFD_FORM_KEY] != NULL && hfd_slice_starts(key, whole) &&
           key.len > whole.len + 1 && key.p[whole.len] == '.' &&
           memchr(key.p + whole.len + 1, '.', key.len - whole.len - 1) == NULL;
}

/* Returns true if other keys begin with this one: "driver", "driver.deadline". */
static bool is_section(hfd_slice key)
{
    for (size_t i = 0; key.len > 0 && i < HFD_SETTING_COUNT; i++) {
        hfd_slice whole = hfd_slice_of(hfd_setting_rows[i].key);

        if (is_entry_section(&hfd_setting_rows[i], key))
            return true;
        if (hfd_slice_starts(whole, key) && whole.len > key.len && whole.p[key.len] == '.')
            return true;
    }
    return false;
}

static struct hfd_setting_value find_setting(enum hfd_setting_form form, hfd_slice text)
{
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
        const struct hfd_setting_row *row = &hfd_setting_rows[i];
        char name[HFD_SETTING_NAME_MAX];
        size_t len = hfd_setting_spell(form, row->key, name);
        hfd_slice entry;

        if (!hfd_slice_starts(text, (hfd_slice){name, len}))
            continue;
        if (text.len == len)
            return (struct hfd_setting_value){.kind = HFD_REF_SETTING, .row = row};
        if (take_entry(form, row, (hfd_slice){text.p + len, text.len - len}, &entry))
            return (struct hfd_setting_value){.kind = HFD_REF_ENTRY, .row = row, .name = entry};
    }
    return (struct hfd_setting_value){.kind = HFD_REF_UNKNOWN};
}

struct hfd_setting_value hfd_setting_find(enum hfd_setting_form form, hfd_slice text)
{
    struct hfd_setting_value v = find_setting(form, text);

    if (form != HFD_FORM_KEY)
        return v;
    v.goes_on = is_section(text) || (v.kind == HFD_REF_SETTING && hfd_setting_is_map(v.row));
    if (v.kind == HFD_REF_UNKNOWN && v.goes_on)
        v.kind = HFD_REF_SECTION;
    return v;
}

struct nearest {
    struct hfd_nearest n;
    char text[HFD_SETTING_NAME_MAX];
};

static void consider(struct nearest *n, const char *candidate, size_t len)
{
    if (!hfd_nearest_consider(&n->n, (hfd_slice){candidate, len}))
        return;
    memcpy(n->text, candidate, len);
    n->text[len] = '\0';
}

/* Writes "did you mean log.level?", or where to look. */
static void suggest(enum hfd_setting_form form, hfd_slice given,
                    char out[HFD_SETTING_NAME_MAX + 32])
{
    struct nearest n = {.n = hfd_nearest_to(given), .text = ""};

    for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
        char name[HFD_SETTING_NAME_MAX];
        size_t len = hfd_setting_spell(form, hfd_setting_rows[i].key, name);

        for (size_t k = 1; form == HFD_FORM_KEY && k < len; k++) {
            if (name[k] == '.')
                consider(&n, name, k);
        }
        (void)snprintf(name + len, sizeof(name) - len, "%s",
                       hfd_setting_suffix(form, &hfd_setting_rows[i]));
        consider(&n, name, strlen(name));
    }
    if (n.text[0] != '\0')
        (void)snprintf(out, HFD_SETTING_NAME_MAX + 32, "did you mean %s?", n.text);
    else
        (void)snprintf(out, HFD_SETTING_NAME_MAX + 32, "see `hyperfleet-driver help settings`");
}

hfd_rc hfd_setting_unknown_name(enum hfd_setting_form form, const char *what, hfd_slice name,
                                struct hfd_err *err)
{
    char field[HFD_SETTING_NAME_MAX], quoted[HFD_QUOTE_MAX], hint[HFD_SETTING_NAME_MAX + 32];

    suggest(form, name, hint);
    (void)snprintf(field, sizeof(field), "%.*s", HFD_SLICE_FMT(name));
    return hfd_fail_field(err, HFD_INVALID, field, "%s%s %s; %s", what,
                          form == HFD_FORM_KEY ? ": unknown setting" : "",
                          hfd_setting_quote(name, quoted), hint);
}

/* ---- the table and the values ---- */

#define DEFAULT_MAX ((size_t)1024 * 1024)

static const void *const_member_of(const struct hfd_settings *s, const struct hfd_setting_row *row)
{
    return (const char *)s + row->offset;
}

static void help_plain(struct hfd_buf *b, const struct hfd_setting_row *row)
{
    const char *name = hfd_setting_suffix(HFD_FORM_FLAG, row);
    char flag[HFD_SETTING_NAME_MAX];

    (void)hfd_setting_spell(HFD_FORM_FLAG, row->key, flag);
    if (hfd_setting_needs_no_value(row))
        hfd_buf_addf(b, "  %s[=%s]", flag, hfd_setting_form_text(row));
    else
        hfd_buf_addf(b, "  %s%s %s", flag, name, hfd_setting_form_text(row));
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
    const char *name = hfd_setting_suffix(HFD_FORM_KEY, row);

    hfd_buf_addf(b, "| `%s%s` | %s | ", row->key, name, hfd_setting_form_text(row));
    if (row->def[0] != '\0')
        hfd_buf_addf(b, "`%s`", row->def);
    hfd_buf_lit(b, " | ");
    if (row->max != 0)
        hfd_setting_range(b, row);
    hfd_buf_addf(b, " | %s |\n", row->text);
}

/* The settings that most installations set, in the order of their table. The others are advanced.
 */
static const enum hfd_setting usual[] = {
    HFD_SETTING_listen,
    HFD_SETTING_ops_listen,
    HFD_SETTING_data,
    HFD_SETTING_store,
    HFD_SETTING_backend,
    HFD_SETTING_remote_token_file,
    HFD_SETTING_hypershift_kubeconfig,
    HFD_SETTING_hypershift_pull_secret_file,
    HFD_SETTING_webhook_urls,
    HFD_SETTING_webhook_secret_files,
    HFD_SETTING_events_amqp_url,
    HFD_SETTING_events_amqp_password_file,
    HFD_SETTING_required_cluster,
    HFD_SETTING_http_hosts,
    HFD_SETTING_tls_cert_file,
    HFD_SETTING_tls_key_file,
    HFD_SETTING_log_level,
    HFD_SETTING_demo_us,
};
#define USUAL_COUNT (sizeof(usual) / sizeof(usual[0]))

static bool is_usual(size_t which)
{
    for (size_t i = 0; i < USUAL_COUNT; i++)
        if (usual[i] == which)
            return true;
    return false;
}

void hfd_settings_help(struct hfd_buf *b, bool markdown)
{
    static const char head[] =
        "| Key | Value | Default | Range | Meaning |\n|---|---|---|---|---|\n";
    void (*const add)(struct hfd_buf *, const struct hfd_setting_row *) =
        markdown ? help_markdown : help_plain;

    if (markdown)
        hfd_buf_addf(b, "%s", head);
    for (size_t i = 0; i < USUAL_COUNT; i++)
        add(b, &hfd_setting_rows[usual[i]]);
    if (markdown)
        hfd_buf_addf(b, "\n## Advanced\n\nMost installations set none of these.\n\n%s", head);
    else
        hfd_buf_lit(b, "\nAdvanced settings, which most installations leave alone:\n\n");
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++)
        if (!is_usual(i))
            add(b, &hfd_setting_rows[i]);
}

void hfd_settings_help_some(struct hfd_buf *b, const char *keys)
{
    while (*keys != '\0') {
        const size_t len = strcspn(keys, " ");
        const struct hfd_setting_value v = hfd_setting_find(HFD_FORM_KEY, (hfd_slice){keys, len});
        char flag[HFD_SETTING_NAME_MAX], head[2 * HFD_SETTING_NAME_MAX];

        HFD_ASSERT(v.kind == HFD_REF_SETTING);
        (void)hfd_setting_spell(HFD_FORM_FLAG, v.row->key, flag);
        (void)snprintf(head, sizeof(head), hfd_setting_needs_no_value(v.row) ? "%s[=%s]" : "%s %s",
                       flag, hfd_setting_form_text(v.row));
        hfd_buf_addf(b, "  %-22s %.*s\n", head, (int)strcspn(v.row->text, ";"), v.row->text);
        keys += len + (keys[len] == ' ');
    }
}

static void show_origin(struct hfd_buf *b, bool origins, hfd_slice origin)
{
    if (origins && origin.len > 0)
        hfd_buf_addf(b, " # %.*s", HFD_SLICE_FMT(origin));
    hfd_buf_addc(b, '\n');
}

static void show_map(struct hfd_buf *b, const struct hfd_setting_row *row,
                     const struct hfd_settings_form *form, const struct hfd_map *map)
{
    const bool again = row->which > 0 && strcmp(row->key, row[-1].key) == 0;

    if (map->count == 0 && !form->changed && !again)
        hfd_buf_addf(b, "%s: {}\n", row->key);
    for (size_t i = 0; i < map->count; i++) {
        hfd_buf_addf(b, "%s.%.*s%s: ", row->key, HFD_SLICE_FMT(map->items[i].name),
                     hfd_setting_ending(HFD_FORM_KEY, row));
        hfd_setting_entry_format(b, row, map->items[i].value);
        show_origin(b, form->origins, map->items[i].origin);
    }
}

/* True for a value other than the default. */
static bool is_changed(const struct hfd_settings *s, const struct hfd_setting_row *row)
{
    const struct hfd_setting_value v = {.row = row, .text = hfd_slice_of(row->def)};
    struct hfd_settings other = {.file = HFD_SLICE_NONE};
    struct hfd_buf now, def;
    bool same = false;

    hfd_arena_init(&other.mem, DEFAULT_MAX);
    hfd_buf_init(&now, DEFAULT_MAX);
    hfd_buf_init(&def, DEFAULT_MAX);
    if (hfd_setting_parse(&v, &other.mem, (char *)&other + row->offset, NULL) == HFD_OK) {
        hfd_setting_format(&now, row, const_member_of(s, row));
        hfd_setting_format(&def, row, const_member_of(&other, row));
        same = now.rc == HFD_OK && hfd_slice_eq(hfd_buf_slice(&now), hfd_buf_slice(&def));
    }
    hfd_buf_fini(&now);
    hfd_buf_fini(&def);
    hfd_arena_fini(&other.mem);
    return !same;
}

void hfd_settings_show(const struct hfd_settings *s, const struct hfd_settings_form *form,
                       struct hfd_buf *b)
{
    if (form->origins)
        hfd_buf_addf(b, "# settings file: %.*s\n",
                     HFD_SLICE_FMT(s->file.len > 0 ? s->file : HFD_SLICE("none")));
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
        const struct hfd_setting_row *row = &hfd_setting_rows[i];

        if (hfd_setting_is_map(row)) {
            show_map(b, row, form, const_member_of(s, row));
            continue;
        }
        if (form->changed && (s->origin[i].len == 0 || !is_changed(s, row)))
            continue;
        hfd_buf_addf(b, "%s: ", row->key);
        hfd_setting_format(b, row, const_member_of(s, row));
        show_origin(b, form->origins, s->origin[i]);
    }
}

/* ---- files ---- */

const struct hfd_setting_file hfd_setting_files[] = {
    {HFD_SETTING_keys, HFD_READS_HANGUP, "with PostgreSQL also when it changes"},
    {HFD_SETTING_auth_tokens_file, HFD_READS_CHANGES, ""},
    {HFD_SETTING_auth_operator_keys, HFD_READS_CHANGES, ""},
    {HFD_SETTING_auth_issuers, HFD_READS_STARTS,
     "the keys that it names are read again when they change"},
    {HFD_SETTING_tls_cert_file, HFD_READS_CHANGES, ""},
    {HFD_SETTING_tls_key_file, HFD_READS_CHANGES, ""},
    {HFD_SETTING_tls_client_ca_file, HFD_READS_CHANGES, ""},
    {HFD_SETTING_store_password_file, HFD_READS_USES, "at each connection"},
    {HFD_SETTING_webhook_secret_files, HFD_READS_HANGUP, ""},
    {HFD_SETTING_webhook_ca_files, HFD_READS_USES, "at each connection"},
    {HFD_SETTING_events_amqp_password_file, HFD_READS_USES, "at each connection"},
    {HFD_SETTING_events_amqp_ca_file, HFD_READS_USES, "at each connection"},
    {HFD_SETTING_fleet_spec_schema, HFD_READS_STARTS, ""},
    {HFD_SETTING_remote_token_file, HFD_READS_CHANGES, "and after a 401"},
    {HFD_SETTING_remote_ca_file, HFD_READS_CHANGES, ""},
    {HFD_SETTING_remote_cert_file, HFD_READS_CHANGES, ""},
    {HFD_SETTING_remote_key_file, HFD_READS_CHANGES, ""},
    {HFD_SETTING_hypershift_kubeconfig, HFD_READS_CHANGES,
     "also the files that it names, and in-cluster those of the service account"},
    {HFD_SETTING_hypershift_management, HFD_READS_CHANGES, "as hypershift.kubeconfig"},
    {HFD_SETTING_hypershift_pull_secret_file, HFD_READS_CHANGES,
     "clusters get it when they are applied again: by hypershift.resync"},
};
const size_t hfd_setting_file_count = sizeof(hfd_setting_files) / sizeof(hfd_setting_files[0]);

const char *hfd_setting_key(enum hfd_setting which)
{
    return hfd_setting_rows[which].key;
}

hfd_slice hfd_setting_path(const struct hfd_settings *s, enum hfd_setting which)
{
    return *(const hfd_slice *)const_member_of(s, &hfd_setting_rows[which]);
}

void hfd_settings_files(struct hfd_buf *b)
{
    static const char *const reads[] = {
        [HFD_READS_CHANGES] = "when it changes, and at SIGHUP",
        [HFD_READS_HANGUP] = "at SIGHUP",
        [HFD_READS_USES] = "whenever it is needed",
        [HFD_READS_STARTS] = "at a restart; SIGHUP logs that it has changed",
    };

    hfd_buf_lit(b, "| File | Read again |\n|---|---|\n");
    hfd_buf_addf(b, "| `--config`, `HFD_CONFIG` | %s |\n", reads[HFD_READS_STARTS]);
    for (size_t i = 0; i < hfd_setting_file_count; i++) {
        const struct hfd_setting_file *f = &hfd_setting_files[i];
        const struct hfd_setting_row *row = &hfd_setting_rows[f->which];

        hfd_buf_addf(b, "| `%s%s` | %s%s%s |\n", row->key, hfd_setting_suffix(HFD_FORM_KEY, row),
                     reads[f->reads], f->more[0] != '\0' ? "; " : "", f->more);
    }
}
