/* See settings_show.h. */
#include "handlers/settings/settings_show.h"

#include "handlers/settings/settings_names.h"
#include "handlers/settings/settings_value.h"

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

static void show_map(struct hfd_buf *b, const struct hfd_setting_row *row, bool origins,
                     const struct hfd_map *map)
{
    if (map->count == 0)
        hfd_buf_addf(b, "%s: {}\n", row->key);
    for (size_t i = 0; i < map->count; i++) {
        hfd_buf_addf(b, "%s.%.*s%s: ", row->key, HFD_SLICE_FMT(map->items[i].name),
                     hfd_setting_ending(HFD_FORM_KEY, row));
        hfd_buf_json_str(b, map->items[i].value);
        show_origin(b, origins, map->items[i].origin);
    }
}

void hfd_settings_show(const struct hfd_settings *s, bool origins, struct hfd_buf *b)
{
    for (size_t i = 0; i < HFD_SETTING_COUNT; i++) {
        const struct hfd_setting_row *row = &hfd_setting_rows[i];

        if (hfd_setting_is_map(row)) {
            show_map(b, row, origins, const_member_of(s, row));
            continue;
        }
        hfd_buf_addf(b, "%s: ", row->key);
        hfd_setting_format(b, row, const_member_of(s, row));
        show_origin(b, origins, s->origin[i]);
    }
}
