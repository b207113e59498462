/*
 * Reads query parameters, `fields` and preferences. Pure. Thread: any.
 *
 * Parameters are percent-decoded. "+" is a space, and the last one of a name counts. `fields` of a
 * list selects members of each item: "name,status.conditions.type,labels.*". It always includes id.
 * Source: HyperFleet API.
 */
#ifndef HFD_HTTP_QUERY_H
#define HFD_HTTP_QUERY_H

#include "driver/base/arena.h"
#include "driver/base/buf.h"
#include "store/kind.h"

struct hfd_fields;

#define HFD_WAIT_MAX_S 50 /* of an answer that is held: proxies commonly cut at 60 s */

/** Parses the parameter `wait`. @return HFD_OK, HFD_INVALID */
HFD_MUST_CHECK hfd_rc hfd_query_wait(hfd_slice value, int64_t *wait_us, struct hfd_err *err);
/**
 * Finds the preference `wait` in a value of the header Prefer (RFC 7240).
 * @param wait_s  at most HFD_WAIT_MAX_S; 0 = its number is none
 * @return false: it is not there
 */
bool hfd_prefer_wait(hfd_slice value, int *wait_s);

/**
 * Finds a parameter.
 * @param query  as received, without '?'
 * @param out    in mem; p is NULL if there is no such parameter
 * @return HFD_OK, HFD_BAD_REQUEST (bad percent-encoding), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_query_get(hfd_slice query, const char *name, struct hfd_arena *mem,
                                    hfd_slice *out, struct hfd_err *err);

/** A parameter as it stands in a query. */
struct hfd_query_param {
    hfd_slice name, value; /* decoded, in mem */
};

/**
 * Takes the first parameter off a query.
 * @param rest  as received, without '?'; what is left of it
 * @return HFD_OK, HFD_NOT_FOUND (no more), HFD_BAD_REQUEST (bad percent-encoding), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_query_next(hfd_slice *rest, struct hfd_arena *mem,
                                     struct hfd_query_param *out, struct hfd_err *err);

/** A parameter that is a whole number from 1 to max. */
struct hfd_query_number {
    const char *name;
    int64_t max;
};

/**
 * Parses a whole number from 1 to max; *out stays if the parameter is absent or blank.
 * @return as get, and HFD_INVALID
 */
HFD_MUST_CHECK hfd_rc hfd_query_i64(hfd_slice query, const struct hfd_query_number *number,
                                    struct hfd_arena *mem, int64_t *out, struct hfd_err *err);

/** Which page of a list is asked for. */
struct hfd_query_page {
    int64_t page; /* from 1 on */
    int64_t size;
};

/** Parses `page`, and `pageSize` or `size`, with their defaults. @return as hfd_query_i64 */
HFD_MUST_CHECK hfd_rc hfd_query_page(hfd_slice query, struct hfd_arena *mem,
                                     struct hfd_query_page *out, struct hfd_err *err);

/**
 * Parses a `fields` parameter.
 * @param text  decoded; borrowed as long as the fields are used; blank = all
 * @param out   in mem; NULL for all
 * @return HFD_OK, HFD_INVALID (a field that the kind does not have), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_fields_parse(enum hfd_kind kind, hfd_slice text, struct hfd_arena *mem,
                                       const struct hfd_fields **out, struct hfd_err *err);

/** Adds the selected members of a document to b. A failure is kept in b. */
void hfd_fields_add(struct hfd_buf *b, const struct hfd_fields *fields, hfd_slice document);

#endif
