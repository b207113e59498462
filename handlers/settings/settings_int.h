/* Inside of the settings: the rows of the table and the loader. For settings*.c only. */
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
    HFD_SETTING_TYPE_FILES, /* kubeconfigs: NAME.kubeconfig */
    HFD_SETTING_TYPE_DEMO,
    HFD_SETTING_TYPE_BOOL,
    HFD_SETTING_TYPE_LEVEL
};

/**
 * Checks items[i] of a list, or a text that is the only one.
 * @return HFD_OK, HFD_INVALID ("expected ..., got ...")
 */
typedef hfd_rc hfd_setting_check_fn(const hfd_slice *items, size_t i, struct hfd_err *err);

struct hfd_setting_row {
    const char *key;
    enum hfd_setting which;
    enum hfd_setting_type type;
    size_t offset; /* of the member in struct hfd_settings */
    const char *def;
    int64_t min, max;
    const char *text;
    hfd_setting_check_fn *check; /* NULL = none */
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

/** Stores a value from ld->place: a SETTING or an ENTRY. */
HFD_MUST_CHECK hfd_rc hfd_setting_put(struct hfd_settings_loader *ld,
                                      const struct hfd_setting_value *v, struct hfd_err *err);
/** Fails with the place and the key in front of the message. @return HFD_INVALID */
HFD_MUST_CHECK hfd_rc hfd_setting_fail(const struct hfd_settings_loader *ld, const char *key,
                                       struct hfd_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
