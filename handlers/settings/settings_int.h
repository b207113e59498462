/*
 * Inside of the settings: the rows of the table, the names and the values of settings, and the
 * loader. For settings*.c and their tests only. Thread: start-up.
 */
#ifndef HFD_SETTINGS_INT_H
#define HFD_SETTINGS_INT_H

#include "handlers/settings/settings.h"

#define HFD_SETTING_ITEMS_MAX 256     /* of one list, of one map */
#define HFD_SETTINGS_FILE_MAX 1048576 /* bytes */

enum hfd_setting_type {
    HFD_SETTING_TYPE_STR,
    HFD_SETTING_TYPE_I64,
    HFD_SETTING_TYPE_BYTES,
    HFD_SETTING_TYPE_DURATION,
    HFD_SETTING_TYPE_LIST,
    HFD_SETTING_TYPE_MAP,   /* outputs: NAME */
    HFD_SETTING_TYPE_FILES, /* NAME.kubeconfig */
    HFD_SETTING_TYPE_TEXTS, /* NAME.url */
    HFD_SETTING_TYPE_LISTS, /* NAME.types; its value is the list as a text, with commas */
    HFD_SETTING_TYPE_DEMO,
    HFD_SETTING_TYPE_BOOL,
    HFD_SETTING_TYPE_LEVEL
};

/** One step of the check of items[i] of a list, or of a text that is the only one. */
struct hfd_setting_check {
    bool (*is)(hfd_slice item);
    const char *expected; /* else */
    /* In place of both. Returns HFD_OK, HFD_INVALID ("expected ..., got ..."). */
    hfd_rc (*check)(const hfd_slice *items, size_t i, struct hfd_err *err);
};

struct hfd_setting_row {
    const char *key;
    enum hfd_setting which;
    enum hfd_setting_type type;
    size_t offset; /* of the member in struct hfd_settings */
    const char *def;
    int64_t min, max;
    const char *text;
    const struct hfd_setting_check *checks; /* NULL = none; an empty step is the end */
};

/** Indexed by enum hfd_setting. */
extern const struct hfd_setting_row hfd_setting_rows[HFD_SETTING_COUNT];

/** A value as it came in: what its name means, and its text before its type is known. Borrows. */
struct hfd_setting_value {
    enum {
        HFD_REF_UNKNOWN,
        HFD_REF_SECTION,
        HFD_REF_SETTING,
        HFD_REF_ENTRY,
    } kind;
    const struct hfd_setting_row *row; /* SETTING, ENTRY */
    hfd_slice name;                    /* ENTRY: its name in the map */
    bool goes_on; /* the file may have keys below it: SECTION, a MAP, and `store` */
    bool is_list; /* a YAML sequence: items; else text */
    hfd_slice text;
    const hfd_slice *items;
    size_t count;
};

/** The sources of settings besides the file: see hfd_settings_load. */
struct hfd_settings_given {
    int argc;
    const char *const *argv;
    const char *const *env;
};

/** hfd_settings_load with another limit of its memory: for tests. */
HFD_MUST_CHECK hfd_rc hfd_settings_load_within(size_t max_bytes,
                                               const struct hfd_settings_given *given,
                                               struct hfd_settings **out, struct hfd_err *err);

struct hfd_settings_loader {
    struct hfd_settings *s;
    bool in_file;    /* a key given twice in the file is an error; otherwise the later value wins */
    char place[160]; /* of the value at hand */
    size_t file_entries[HFD_SETTING_COUNT]; /* of each map: those of the file, which keep their
                                               order */
};

/* ---- names: settings_show.c ---- */

#define HFD_SETTING_NAME_MAX 96 /* of one without the name of an entry */

/** How a name is spelled. */
enum hfd_setting_form {
    HFD_FORM_KEY,  /* log.level */
    HFD_FORM_ENV,  /* HFD_LOG_LEVEL */
    HFD_FORM_FLAG, /* --log-level */
};

/** True for the types whose setting is a map of entries. */
static inline bool hfd_setting_is_map(const struct hfd_setting_row *row)
{
    return row->type >= HFD_SETTING_TYPE_MAP && row->type <= HFD_SETTING_TYPE_LISTS;
}
/** The suffix of the name of a map for one of its entries: ".NAME". Empty for other types. */
const char *hfd_setting_suffix(enum hfd_setting_form form, const struct hfd_setting_row *row);
/** The end of that suffix behind the name: ".kubeconfig". Empty if nothing follows. */
const char *hfd_setting_ending(enum hfd_setting_form form, const struct hfd_setting_row *row);

/** Writes the name of a key without the suffix of maps. Returns its length. */
size_t hfd_setting_spell(enum hfd_setting_form form, const char *key,
                         char out[HFD_SETTING_NAME_MAX]);
/** Finds what a name means. A key may also name a section. The value is not there yet. */
struct hfd_setting_value hfd_setting_find(enum hfd_setting_form form, hfd_slice text);

/**
 * Fails for an unknown name; suggests the nearest one.
 * @param what  for a key of the file its place, else the beginning of the message
 */
HFD_MUST_CHECK hfd_rc hfd_setting_unknown_name(enum hfd_setting_form form, const char *what,
                                               hfd_slice name, struct hfd_err *err);

/* ---- values: settings_value.c ---- */

/**
 * Parses and checks a value of any type but MAP.
 * @param member  the row's member of struct hfd_settings
 * @return HFD_OK, HFD_INVALID ("expected ..., got ...", without key and place), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_setting_parse(const struct hfd_setting_value *v, struct hfd_arena *mem,
                                        void *member, struct hfd_err *err);

/** Writes a member of any type but MAP as a YAML value, with *** for a password of a URL. */
void hfd_setting_format(struct hfd_buf *b, const struct hfd_setting_row *row, const void *member);
/** Returns true if the flag of a setting may come without a value, which then is "on". */
static inline bool hfd_setting_needs_no_value(const struct hfd_setting_row *row)
{
    return row->type == HFD_SETTING_TYPE_DEMO || row->type == HFD_SETTING_TYPE_BOOL;
}
/** Returns the form of a value: "TEXT", "DURATION". */
const char *hfd_setting_form_text(const struct hfd_setting_row *row);
/** Writes the range: "1s to 1h"; nothing for types without one. */
void hfd_setting_range(struct hfd_buf *b, const struct hfd_setting_row *row);

#define HFD_QUOTE_MAX 68
/**
 * Quotes input for a message: at most 60 bytes, with '?' for anything but printable ASCII. Leaves
 * out what may be a password.
 * @return out
 */
const char *hfd_setting_quote(hfd_slice s, char out[HFD_QUOTE_MAX]);

/** Check the name and the value of an entry of a map. @return HFD_OK, HFD_INVALID */
HFD_MUST_CHECK hfd_rc hfd_setting_name_check(hfd_slice name, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_setting_entry_check(const struct hfd_setting_row *row,
                                              const struct hfd_pair *entry, struct hfd_err *err);
/** Adds a value of a map, with *** for what a URL may have of secrets. */
void hfd_setting_entry_format(struct hfd_buf *b, const struct hfd_setting_row *row,
                              hfd_slice value);

#endif
