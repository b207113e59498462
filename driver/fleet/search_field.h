/*
 * The fields of a search: reads "labels.region" and finds the column, label, condition or member of
 * spec that it names. Source: HyperFleet API, "search". Thread: any.
 */
#ifndef HFD_FLEET_SEARCH_FIELD_H
#define HFD_FLEET_SEARCH_FIELD_H

#include "driver/fleet/search_lex.h"

#define HFD_PATH_MAX 12

/** A field as the search names it. */
struct hfd_field_path {
    hfd_slice parts[HFD_PATH_MAX];
    size_t count;
    hfd_slice whole; /* as written */
};

/** Reads a path; the current token is its first name. @return HFD_OK, HFD_BAD_REQUEST */
HFD_MUST_CHECK hfd_rc hfd_field_read(struct hfd_search *s, struct hfd_field_path *path);

/**
 * Sets f->field and f->name.
 * @return HFD_OK, HFD_BAD_REQUEST (no such field), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_field_resolve(struct hfd_search *s, const struct hfd_field_path *path,
                                        struct hfd_filter *f);

/** Finds a column by its name. @return whether resources of this kind have it */
bool hfd_field_column(enum hfd_kind kind, hfd_slice name, enum hfd_field *out);

/** Finds a column of reports by its name. */
bool hfd_field_report_column(hfd_slice name, enum hfd_field *out);
/** Checks the key of a label. @param parameter  of the request, for the error */
HFD_MUST_CHECK hfd_rc hfd_field_check_label(const char *parameter, hfd_slice key,
                                            struct hfd_err *err);

/** True for a subfield of a condition, such as its last_updated_time. */
bool hfd_field_is_condition_sub(enum hfd_field field);

#endif
