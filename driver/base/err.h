/*
 * The result codes of all functions that can fail, and the error text that goes with them. An error
 * lives on the caller's stack and is never allocated. handlers/http/reply.c turns codes into HTTP
 * status codes. Thread: any.
 */
#ifndef HFD_BASE_ERR_H
#define HFD_BASE_ERR_H

#define HFD_MUST_CHECK __attribute__((warn_unused_result))

/* clang-format off */
#define HFD_RC_LIST(X)                                                                             \
    X(OK,          "ok")                                                                           \
    X(INVALID,     "the request is not valid")                                                     \
    X(BAD_REQUEST, "the request asks for something that does not exist")                           \
    X(UNAUTHORIZED, "the caller is not known")                                                     \
    X(FORBIDDEN,   "the caller may not do this")                                                   \
    X(MALFORMED,   "the document cannot be read")                                                  \
    X(TOO_LARGE,   "the document is too large")                                                    \
    X(NOT_FOUND,   "the resource is not found")                                                    \
    X(CONFLICT,    "the resource is in another state")                                             \
    X(DELETING,    "the resource is marked for deletion")                                          \
    X(IMMUTABLE,   "the change cannot be made in place")                                           \
    X(PROTECTED,   "the resource is protected from deletion")                                      \
    X(PRECONDITION, "the resource is not as the request expects")                                  \
    X(COOKIE,      "the driver cookie is not valid")                                               \
    X(LIMIT,       "a limit is reached")                                                           \
    X(BUSY,        "too much work is queued")                                                      \
    X(TIMEOUT,     "the work took too long")                                                       \
    X(NOMEM,       "out of memory")                                                                \
    X(IO,          "the store or a file failed")                                                   \
    X(AWAY,        "the database cannot be reached now")                                                   \
    X(UNCHECKED,   "the caller cannot be checked now")                                             \
    X(CORRUPT,     "stored data is damaged")                                                       \
    X(DAMAGED,     "a stored row is damaged")
/* clang-format on */

#define HFD_RC_ENUM_(name, text) HFD_##name,
typedef enum hfd_rc {
    HFD_RC_LIST(HFD_RC_ENUM_) HFD_RC_COUNT
} hfd_rc;
#undef HFD_RC_ENUM_

struct hfd_err {
    hfd_rc rc;
    char field[96]; /* the field that is wrong, as a dotted path, or "" */
    char msg[248];  /* what was attempted, on which id, what was expected; never a secret */
};

/** The name of a code, as in the list: "OK", "INVALID". */
const char *hfd_rc_name(hfd_rc rc);
const char *hfd_rc_text(hfd_rc rc);

/**
 * Fills err (may be NULL) and returns rc, so that a failure is one line: return hfd_fail(err,
 * HFD_IO, "..."). A message that does not fit ends in "...". Clears err->field.
 */
hfd_rc hfd_fail(struct hfd_err *err, hfd_rc rc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** As hfd_fail, and names the field: "driver.values.cluster.name". */
hfd_rc hfd_fail_field(struct hfd_err *err, hfd_rc rc, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/**
 * Reports that memory ran out: fills err (may be NULL) with "out of memory: <what>".
 * @param what  what was attempted, in the imperative: "copy the request"
 * @return HFD_NOMEM always
 */
hfd_rc hfd_fail_nomem(struct hfd_err *err, const char *what);

#ifdef __clang_analyzer__
/*
 * The analyser does not see into err.c. These macros show it that the code passed in is returned: a
 * failure is never HFD_OK.
 */
#define hfd_fail(err, rc, ...) ((hfd_fail)((err), (rc), __VA_ARGS__), (rc))
#define hfd_fail_field(err, rc, ...) ((hfd_fail_field)((err), (rc), __VA_ARGS__), (rc))
#define hfd_fail_nomem(err, what) ((hfd_fail_nomem)((err), (what)), HFD_NOMEM)
#endif

#endif
