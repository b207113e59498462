/* See settings_names.h. */
#include "handlers/settings/settings_names.h"

#include "driver/base/check.h"
#include "driver/base/nearest.h"
#include "handlers/settings/settings_value.h"

#define NAME_LEN (sizeof(".NAME") - 1)

const char *hfd_setting_suffix(enum hfd_setting_form form, const struct hfd_setting_row *row)
{
    static const char *const of_map[] = {
        [HFD_FORM_KEY] = ".NAME", [HFD_FORM_ENV] = "_NAME", [HFD_FORM_FLAG] = "-NAME"};
    static const char *const of_files[] = {[HFD_FORM_KEY] = ".NAME.kubeconfig",
                                           [HFD_FORM_ENV] = "_NAME_KUBECONFIG",
                                           [HFD_FORM_FLAG] = "-NAME-kubeconfig"};

    if (row->type == HFD_SETTING_TYPE_FILES)
        return of_files[form];
    return row->type == HFD_SETTING_TYPE_MAP ? of_map[form] : "";
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

    HFD_ASSERT(at + strlen(key) + sizeof("_NAME_KUBECONFIG") <= HFD_SETTING_NAME_MAX);
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

struct hfd_setting_value hfd_setting_find(enum hfd_setting_form form, hfd_slice text)
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

/* True for the name of an entry that has keys below it: "hypershift.management.east". */
static bool is_entry_section(const struct hfd_setting_row *row, hfd_slice key)
{
    const hfd_slice whole = hfd_slice_of(row->key);

    return row->type == HFD_SETTING_TYPE_FILES && hfd_slice_starts(key, whole) &&
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

struct hfd_setting_value hfd_setting_find_key(hfd_slice key)
{
    struct hfd_setting_value v = hfd_setting_find(HFD_FORM_KEY, key);

    v.goes_on = is_section(key) || (v.kind == HFD_REF_SETTING && hfd_setting_is_map(v.row));
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

hfd_rc hfd_setting_unknown_key(const char *place, hfd_slice key, struct hfd_err *err)
{
    char quoted[HFD_QUOTE_MAX], hint[HFD_SETTING_NAME_MAX + 32];

    suggest(HFD_FORM_KEY, key, hint);
    (void)hfd_setting_quote(key, quoted);
    return hfd_fail_field(err, HFD_INVALID, key.p, "%s: unknown setting %s; %s", place, quoted,
                          hint);
}

hfd_rc hfd_setting_unknown_name(enum hfd_setting_form form, const char *what, hfd_slice name,
                                struct hfd_err *err)
{
    char field[HFD_SETTING_NAME_MAX], quoted[HFD_QUOTE_MAX], hint[HFD_SETTING_NAME_MAX + 32];

    suggest(form, name, hint);
    (void)snprintf(field, sizeof(field), "%.*s", HFD_SLICE_FMT(name));
    return hfd_fail_field(err, HFD_INVALID, field, "%s %s; %s", what,
                          hfd_setting_quote(name, quoted), hint);
}
