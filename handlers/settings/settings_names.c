/* See settings_names.h. */
#include "handlers/settings/settings_names.h"

#include "driver/base/check.h"
#include "driver/base/nearest.h"
#include "handlers/settings/settings_value.h"

const char *const hfd_setting_map_suffix[] = {
    [HFD_FORM_KEY] = ".NAME", [HFD_FORM_ENV] = "_NAME", [HFD_FORM_FLAG] = "-NAME"};

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

    HFD_ASSERT(at + strlen(key) + sizeof("_NAME") <= HFD_SETTING_NAME_MAX);
    memcpy(out, prefix[form], at);
    for (; *key != '\0'; key++)
        out[at++] = spell_char(form, *key);
    out[at] = '\0';
    return at;
}

struct hfd_setting_ref hfd_setting_find(enum hfd_setting_form form, hfd_slice text)
{
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
        const struct hfd_setting_row *row = &hfd_setting_rows[i];
        char name[HFD_SETTING_NAME_MAX];
        size_t len = hfd_setting_spell(form, row->key, name);

        if (!hfd_slice_starts(text, (hfd_slice){name, len}))
            continue;
        if (text.len == len)
            return (struct hfd_setting_ref){.kind = HFD_REF_SETTING, .row = row};
        if (row->type == HFD_SETTING_TYPE_MAP && text.p[len] == hfd_setting_map_suffix[form][0])
            return (struct hfd_setting_ref){
                .kind = HFD_REF_ENTRY, .row = row, .name = {text.p + len + 1, text.len - len - 1}};
    }
    return (struct hfd_setting_ref){.kind = HFD_REF_UNKNOWN};
}

/* Returns true if other keys begin with this one: "driver", "driver.deadline". */
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
    struct hfd_setting_ref ref = hfd_setting_find(HFD_FORM_KEY, key);

    ref.goes_on =
        is_section(key) || (ref.kind == HFD_REF_SETTING && ref.row->type == HFD_SETTING_TYPE_MAP);
    if (ref.kind == HFD_REF_UNKNOWN && ref.goes_on)
        ref.kind = HFD_REF_SECTION;
    return ref;
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
        if (hfd_setting_rows[i].type == HFD_SETTING_TYPE_MAP) {
            memcpy(name + len, hfd_setting_map_suffix[form], sizeof(".NAME"));
            len += sizeof(".NAME") - 1;
        }
        consider(&n, name, len);
    }
    if (n.text[0] != '\0')
        (void)snprintf(out, HFD_SETTING_NAME_MAX + 32, "did you mean %s?", n.text);
    else
        (void)snprintf(out, HFD_SETTING_NAME_MAX + 32, "see `hyperfleet-driver help serve`");
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
