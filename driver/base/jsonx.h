/*
 * JSON: parses documents within bounds, reads members with errors that name their path, and writes
 * compact text. A json_t belongs to one thread at a time.
 */
#ifndef HFD_BASE_JSONX_H
#define HFD_BASE_JSONX_H

#include <jansson.h>

#include "driver/base/arena.h"
#include "driver/base/buf.h"

#define HFD_JSON_DEPTH_MAX 32
#define HFD_JSON_NODES_MAX 20000

/**
 * Parses a whole JSON text: UTF-8, no duplicate keys, no NUL, at most HFD_JSON_DEPTH_MAX levels and
 * HFD_JSON_NODES_MAX values and keys. Both limits are checked on the bytes before parsing, so that
 * they bound the parser's recursion and memory. Messages never repeat the text.
 * @param out gives; any JSON value, also a scalar
 * @return HFD_OK, HFD_MALFORMED (message with line, column and reason), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_json_parse(hfd_slice text, json_t **out, struct hfd_err *err);

/**
 * Adds compact text to store, with the keys sorted by bytes: equal documents give equal bytes. Key
 * order and white space do not matter. A number has the fewest digits that read back; 1.0 and 1
 * differ.
 */
void hfd_json_dump_for_store(struct hfd_buf *b, const json_t *v);
/**
 * Adds text to compare only: as above, and equal numbers give equal bytes (1, 1.0 and 10e-1; 0 and
 * -0.0).
 */
void hfd_json_dump_for_compare(struct hfd_buf *b, const json_t *v);
/** Adds compact text with the keys in their order. */
void hfd_json_dump(struct hfd_buf *b, const json_t *v);
/**
 * The same into an arena.
 * @return p is NULL when memory or the ceiling is short
 */
hfd_slice hfd_json_dump_arena(struct hfd_arena *a, const json_t *v);

/** The member `key` of an object. The messages of the getters call it "path.key". */
struct hfd_json_member {
    const json_t *obj;
    const char *path; /* of obj; "" at the top of the document */
    const char *key;
    bool required;
};
#define HFD_JSON_OPTIONAL(obj, path, key) (&(const struct hfd_json_member){obj, path, key, false})
#define HFD_JSON_REQUIRED(obj, path, key) (&(const struct hfd_json_member){obj, path, key, true})

/**
 * Read a member of an object. An optional member that is absent or null gives HFD_OK and NULL.
 * @param out  borrows from m->obj; NULL when there is nothing
 * @return HFD_OK, or HFD_MALFORMED for a wrong type and for a required member that is absent or
 * null ("driver.values.cluster.name: expected a string, got a number")
 */
HFD_MUST_CHECK hfd_rc hfd_json_get_object(const struct hfd_json_member *m, json_t **out,
                                          struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_json_get_array(const struct hfd_json_member *m, json_t **out,
                                         struct hfd_err *err);
HFD_MUST_CHECK hfd_rc hfd_json_get_string(const struct hfd_json_member *m, hfd_slice *out,
                                          struct hfd_err *err);

/** The text of a member; empty for one that is absent or no string. @return borrows from obj */
static inline hfd_slice hfd_json_text(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);

    return json_is_string(v) ? (hfd_slice){json_string_value(v), json_string_length(v)}
                             : HFD_SLICE("");
}

/** The integers that hfd_json_get_i64 accepts, both ends included. */
struct hfd_json_range {
    int64_t min, max;
};

/**
 * Reads an integral number; 3.0 is one.
 * @param present  false when the member is absent or null; *out is 0 then
 * @return HFD_OK, HFD_MALFORMED (as above), HFD_INVALID (outside the range)
 */
HFD_MUST_CHECK hfd_rc hfd_json_get_i64(const struct hfd_json_member *m, struct hfd_json_range range,
                                       bool *present, int64_t *out, struct hfd_err *err);

/**
 * Copy one level (members are shared), or all levels.
 * @return gives; NULL when memory is short, where json_copy and json_deep_copy would silently lose
 * members
 */
json_t *hfd_json_copy(const json_t *v);
json_t *hfd_json_deep_copy(const json_t *v);

/** A member that is a text; "" if it is none. Borrowed. */
static inline const char *hfd_json_cstr(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));

    return text != NULL ? text : "";
}

/** "a string", "an object" and so on, for messages; "nothing" for NULL. */
const char *hfd_json_type_name(const json_t *v);

/**
 * Finds the value at a JSON pointer (RFC 6901); "" is the whole document.
 * @return borrowed, or NULL when there is none
 */
json_t *hfd_json_pointer(const json_t *doc, hfd_slice pointer);

/**
 * Makes failed allocations of jansson visible from now on, whichever allocator is set at this
 * moment. Its parser reports many of them as syntax errors, and a client would read that its
 * document is wrong.
 * Thread: start-up.
 */
void hfd_json_watch_memory(void);

#endif
