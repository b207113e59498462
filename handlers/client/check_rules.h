/*
 * The rules of the conformance check: every statement of the Humanitec Driver API 0.9.3 that can be
 * observed from outside, in our words. The table is also the table of the manual.
 */
#ifndef HFD_CLIENT_CHECK_RULES_H
#define HFD_CLIENT_CHECK_RULES_H

#include "driver/base/slice.h"

enum hfd_check_level {
    HFD_CHECK_MUST,
    HFD_CHECK_SHOULD,
    HFD_CHECK_MAY
};

/* clang-format off */
/* name, id, level, text, source */
#define HFD_CHECK_RULE_LIST(X) \
    X(STATUS,       "A-01", MUST,   "each status is one that the API has for the method", "responses") \
    X(NO_5XX,       "A-02", MUST,   "no request ends with a status of 500 or above", "responses") \
    X(TYPE_JSON,    "A-03", MUST,   "a body is application/json", "responses, content") \
    X(BODY_OBJECT,  "A-04", MUST,   "the body of 200, 202, 400 and 409 is a JSON object", "responses, content") \
    X(OUT_TYPES,    "O-01", MUST,   "the members of a 200 have the types of OutputData", "OutputData") \
    X(OUT_ID,       "O-02", MUST,   "`id` of a 200 is the GUResID", "OutputData, id") \
    X(OUT_TYPE,     "O-03", MUST,   "`type` of a 200 is the type that was ordered", "OutputData, type") \
    X(OUT_MANIFEST, "O-04", MUST,   "each manifest has a known location and an object as data", "OutputData, manifests") \
    X(OUT_BOTH,     "O-05", SHOULD, "a 200 has `id` and `type`", "OutputData") \
    X(HINT_STATUS,  "H-01", MUST,   "`status` of a hint is creating, updating or deleting", "AsyncProgressHint, status") \
    X(HINT_TIMES,   "H-02", MUST,   "the times of a hint are ISO 8601", "AsyncProgressHint") \
    X(HINT_NOW,     "H-03", SHOULD, "a hint has `current_time`", "AsyncProgressHint, current_time") \
    X(HINT_FUTURE,  "H-04", SHOULD, "the estimated completion is not in the past", "AsyncProgressHint, estimated_completion_time") \
    X(HINT_WITHIN,  "H-05", SHOULD, "the estimated completion is not after the timeout", "AsyncProgressHint, timeout") \
    X(HINT_FIXED,   "H-06", SHOULD, "the timeout stays the same while an operation lasts", "AsyncProgressHint, timeout") \
    X(HINT_OP,      "H-07", SHOULD, "`status` names the operation that is under way", "AsyncProgressHint, status") \
    X(HINT_CLOCK,   "H-08", MAY,    "`current_time` is within 5 minutes of this machine's clock", "AsyncProgressHint, current_time") \
    X(ERR_CODE,     "E-01", MUST,   "`error` of a 400 is RES-1 and two digits", "Error, error") \
    X(ERR_MESSAGE,  "E-02", MUST,   "`message` of a 400 is a text that is not empty", "Error, message") \
    X(COOKIE_SIZE,  "C-01", MUST,   "a cookie has fewer than 10,240 bytes", "SetHumanitecDriverCookie") \
    X(COOKIE_TEXT,  "C-02", SHOULD, "a cookie has the characters of base64 only", "SetHumanitecDriverCookie") \
    X(COOKIE_NAME,  "C-03", MUST,   "the cookie is read from the header Humanitec-Driver-Cookie", "HumanitecDriverCookie") \
    X(COOKIE_SAME,  "C-04", SHOULD, "the cookie stays the same while nothing changes", "HumanitecDriverCookie") \
    X(COOKIE_LOST,  "C-05", MAY,    "a resource is found without its cookie, too", "HumanitecDriverCookie") \
    X(COOKIE_BAD,   "C-06", MAY,    "an altered cookie is answered by 400", "HumanitecDriverCookie") \
    X(CREATE,       "P-01", MUST,   "the first PUT is answered by 200 or 202", "PUT") \
    X(CREATE_SAME,  "P-02", MUST,   "the same PUT again, while creating, is answered by 200 or 202", "PUT 409") \
    X(CREATE_ENDS,  "P-03", MUST,   "a creation ends in 200", "PUT 202, GET 200") \
    X(READY_SAME,   "P-04", MUST,   "the same PUT again, when ready, is answered by 200", "PUT 200") \
    X(CREATE_OTHER, "P-05", MUST,   "another PUT while creating is answered by 409, 202 or 200", "PUT 409") \
    X(UPDATE,       "P-06", MUST,   "an update ends in 200", "PUT 200, PUT 202") \
    X(UPDATE_NEW,   "P-07", MUST,   "a PUT of an update creates what does not exist", "PUT") \
    X(CREATE_AGAIN, "P-08", MUST,   "a PUT after the deletion creates the resource again", "PUT, DELETE 204") \
    X(PUT_TOGETHER, "P-09", SHOULD, "four equal PUTs at the same time are answered by 200 or 202", "PUT") \
    X(GET_THERE,    "G-01", SHOULD, "GET is served", "GET") \
    X(GET_ABSENT,   "G-02", MUST,   "GET of a resource that was never made is 404", "GET 404") \
    X(GET_MADE,     "G-03", MUST,   "GET behind the first PUT is 200 or 202", "GET 200, GET 202") \
    X(GET_READY,    "G-04", MUST,   "GET of a resource that is ready is 200", "GET 200") \
    X(GET_SAME,     "G-05", SHOULD, "two GETs of a resource that is ready are equal", "GET") \
    X(GET_GONE,     "G-06", MUST,   "GET behind the end of the deletion is 404", "GET 404") \
    X(GET_DELETING, "G-07", SHOULD, "GET during a deletion is 202 or 404", "GET 202") \
    X(DEL_ABSENT,   "D-01", MUST,   "DELETE of a resource that was never made is 204", "DELETE 204") \
    X(DEL_SAME,     "D-02", MUST,   "a repeated DELETE is 202 or 204", "DELETE 202") \
    X(DEL_ENDS,     "D-03", MUST,   "a deletion ends in 204", "DELETE 202") \
    X(DEL_GONE,     "D-04", MUST,   "DELETE of what was deleted is 204", "DELETE 204") \
    X(DEL_EMPTY,    "D-05", MUST,   "a 204 has no body", "DELETE 204") \
    X(DEL_CREATING, "D-06", MUST,   "DELETE while creating is 202 or 204", "DELETE") \
    X(DEL_COOKIE,   "D-07", SHOULD, "a DELETE 204 sets no cookie", "HumanitecDriverCookie") \
    X(BAD_JSON,     "X-01", MUST,   "a PUT that is not JSON is 400", "PUT 400") \
    X(BAD_NONE,     "X-02", MUST,   "a PUT without a body is 400", "PUT, requestBody") \
    X(BAD_ARRAY,    "X-03", MUST,   "a PUT that is no object is 400", "InputData") \
    X(BAD_TYPE,     "X-04", MUST,   "a PUT with a number as `type` is 400", "InputData, type") \
    X(BAD_NOTHING,  "X-05", MUST,   "a PUT that was refused makes nothing", "PUT 400, GET 404")
/* clang-format on */

#define HFD_CHECK_ENUM_(name, id, level, text, source) HFD_RULE_##name,
enum hfd_check_rule {
    HFD_CHECK_RULE_LIST(HFD_CHECK_ENUM_) HFD_CHECK_RULE_COUNT
};
#undef HFD_CHECK_ENUM_

struct hfd_check_rule_text {
    const char *id;
    enum hfd_check_level level;
    const char *text, *source;
};

extern const struct hfd_check_rule_text hfd_check_rules[HFD_CHECK_RULE_COUNT];

/** "must", "should" or "may". */
const char *hfd_check_level_name(enum hfd_check_level level);

/** Chosen rules. */
struct hfd_check_choice {
    bool of[HFD_CHECK_RULE_COUNT];
};

/**
 * Chooses rules.
 * @param only   "D-01,H-02"; NULL = all
 * @param level  "must", "should" or "may": that and stronger; NULL = all
 * @return HFD_OK, HFD_INVALID (names what is unknown, or that nothing is left)
 */
HFD_MUST_CHECK hfd_rc hfd_check_choose(const char *only, const char *level,
                                       struct hfd_check_choice *out, struct hfd_err *err);

#endif
