/*
 * Inside of the settings: the table's rows, how one value is read, and where values come from. For
 * settings*.c alone.
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
    HFD_SETTING_TYPE_MAP,
    HFD_SETTING_TYPE_DEMO,
    HFD_SETTING_TYPE_LEVEL
};

struct hfd_setting_row {
    const char *key;
    enum hfd_setting which;
    enum hfd_setting_type type;
    size_t offset; /* of the member in struct hfd_settings */
    const char *def;
    int64_t min, max;
    const char *text;
};

/** Indexed by enum hfd_setting. */
extern const struct hfd_setting_row hfd_setting_rows[HFD_SETTING_COUNT];

/** A value as it came in, before anybody knows its type. */
struct hfd_setting_value {
    bool is_list; /* a YAML sequence: items; else text */
    hfd_slice text;
    const hfd_slice *items;
    size_t count;
};

/* settings_value.c: pure */

/**
 * Reads and checks a value of any type but MAP into the row's member.
 * @return HFD_OK, HFD_INVALID ("expected ..., got ...", without key and place), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_setting_parse(const struct hfd_setting_row *row,
                                        const struct hfd_setting_value *v, struct hfd_arena *mem,
                                        void *member, struct hfd_err *err);
/** Checks the name and the value of an entry of a MAP. */
HFD_MUST_CHECK hfd_rc hfd_setting_name_check(hfd_slice name, struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_setting_entry_check(hfd_slice value, struct hfd_err *err);
/** Writes a member of any type but MAP as a YAML value. */
void hfd_setting_format(struct hfd_buf *b, const struct hfd_setting_row *row, const void *member);
/** What a value looks like: "HOST:PORT", "DURATION". */
const char *hfd_setting_form(const struct hfd_setting_row *row);
/** "1s to 1h"; nothing for types without a range. */
void hfd_setting_range(struct hfd_buf *b, const struct hfd_setting_row *row);

#define HFD_QUOTE_MAX 68
/**
 * Input for a message: at most 60 bytes of it, in quotes, what is not printable ASCII as '?'.
 * @return out
 */
const char *hfd_setting_quote(hfd_slice s, char out[HFD_QUOTE_MAX]);

/* settings.c */

/** hfd_settings_load with another ceiling of its memory: tests. */
HFD_MUST_CHECK hfd_rc hfd_settings_load_within(size_t max_bytes, int argc, const char *const *argv,
                                               const char *const *env, struct hfd_settings **out,
                                               struct hfd_err *err);

/** What a name of a file, the environment or a flag means. */
struct hfd_setting_ref {
    enum {
        HFD_REF_UNKNOWN,
        HFD_REF_SECTION,
        HFD_REF_SETTING,
        HFD_REF_ENTRY,
    } kind;
    const struct hfd_setting_row *row; /* SETTING, ENTRY */
    hfd_slice name;                    /* ENTRY: its name in the map; borrows */
    bool goes_on; /* keys of the file stand below it: SECTION, a MAP, and `store`, which is a
                     setting as well */
};

struct hfd_settings_loader {
    struct hfd_settings *s;
    bool
        in_file; /* a key given twice in one file is a mistake; over other sources the later wins */
    char place[160];                        /* where the value at hand stands */
    size_t file_entries[HFD_SETTING_COUNT]; /* of each map: the file's, which keep their order */
};

/** A key of the file: "driver.deadline", "log.level", "driver.outputs.values.NAME". */
struct hfd_setting_ref hfd_setting_find_key(hfd_slice key);
/** Fails with key and ld->place in front, and the nearest known key behind. */
HFD_MUST_CHECK hfd_rc hfd_setting_unknown_key(const struct hfd_settings_loader *ld, hfd_slice key,
                                              struct hfd_err *err);
/** Stores a value from ld->place. ref is SETTING or ENTRY; v is borrowed. */
HFD_MUST_CHECK hfd_rc hfd_setting_put(struct hfd_settings_loader *ld,
                                      const struct hfd_setting_ref *ref,
                                      const struct hfd_setting_value *v, struct hfd_err *err);
/** Fails with the place and the key in front of the message. */
HFD_MUST_CHECK hfd_rc hfd_setting_fail(const struct hfd_settings_loader *ld, hfd_rc rc,
                                       const char *key, struct hfd_err *err, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* settings_yaml.c */

/** @return HFD_OK, HFD_INVALID, HFD_IO, HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_settings_read_file(struct hfd_settings_loader *ld, const char *path,
                                             struct hfd_err *err);

#endif
