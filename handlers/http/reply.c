#include "handlers/http/reply.h"

#include "driver/base/check.h"

#define MESSAGE_MAX_BYTES 500
#define RETRY_AFTER_S 2

/* clang-format off */
/*
 * Driver API: an error of ours that a retry may cure is 503, never 400, because 400 is final for
 * the orchestrator. HyperFleet: LMT-001 means 429, so a body over the limit is VAL-005 with status
 * 413. Type, title and code belong together whatever the status is (RFC 9457, 3.1.3), because
 * HyperFleet has no type for statuses of HTTP alone.
 */
static const struct row {
    int driver_status;
    const char *driver_code;
    int fleet_status;
    const char *fleet_code;
    const char *suffix;
    const char *title;
} rows[] = {
    [HFD_OK]          = {500, "RES-199", 500, "INT-001", "internal-error",      "Internal Server Error"},
    [HFD_INVALID]     = {400, "RES-101", 400, "VAL-000", "validation-error",    "Validation Failed"},
    [HFD_BAD_REQUEST] = {400, "RES-101", 400, "VAL-005", "bad-request",         "Bad Request"},
    [HFD_UNAUTHORIZED] = {401, "RES-101", 401, "AUTH-001", "authentication-error", "Authentication Required"},
    [HFD_FORBIDDEN]   = {403, "RES-101", 403, "AUZ-001", "forbidden",           "Forbidden"},
    [HFD_MALFORMED]   = {400, "RES-101", 400, "VAL-006", "malformed-request",   "Malformed Request"},
    [HFD_TOO_LARGE]   = {413, "RES-101", 413, "VAL-005", "bad-request",         "Bad Request"},
    [HFD_NOT_FOUND]   = {400, "RES-101", 404, "NTF-001", "not-found",           "Resource Not Found"},
    [HFD_CONFLICT]    = {400, "RES-101", 409, "CNF-001", "conflict",            "Resource Conflict"},
    [HFD_DELETING]    = {400, "RES-101", 409, "CNF-003", "conflict",            "State Conflict"},
    [HFD_IMMUTABLE]   = {400, "RES-106", 409, "CNF-001", "conflict",            "Resource Conflict"},
    [HFD_PROTECTED]   = {400, "RES-109", 409, "CNF-003", "conflict",            "State Conflict"},
    [HFD_PRECONDITION] = {412, "RES-101", 412, "CNF-003", "conflict",           "State Conflict"},
    [HFD_COOKIE]      = {400, "RES-102", 400, "VAL-005", "bad-request",         "Bad Request"},
    [HFD_LIMIT]       = {400, "RES-107", 400, "VAL-000", "validation-error",    "Validation Failed"},
    [HFD_BUSY]        = {503, "RES-199", 503, "SVC-001", "service-unavailable", "Service Unavailable"},
    [HFD_TIMEOUT]     = {503, "RES-199", 503, "SVC-001", "service-unavailable", "Service Unavailable"},
    [HFD_NOMEM]       = {503, "RES-199", 503, "SVC-001", "service-unavailable", "Service Unavailable"},
    [HFD_IO]          = {503, "RES-199", 503, "SVC-001", "service-unavailable", "Service Unavailable"},
    [HFD_AWAY]        = {503, "RES-199", 503, "SVC-001", "service-unavailable", "Service Unavailable"},
    [HFD_UNCHECKED]   = {503, "RES-199", 503, "SVC-001", "service-unavailable", "Service Unavailable"},
    [HFD_CORRUPT]     = {500, "RES-199", 500, "INT-001", "internal-error",      "Internal Server Error"},
    [HFD_DAMAGED]     = {500, "RES-199", 500, "INT-001", "internal-error",      "Internal Server Error"},
};
_Static_assert(sizeof(rows) / sizeof(rows[0]) == HFD_RC_COUNT, "every result code has its row");
_Static_assert(HFD_DAMAGED == HFD_RC_COUNT - 1, "a new code behind the last one is a gap in the middle of the table: look at the rows");

static const struct { int status; const char *text; } status_texts[] = {
    {200, "OK"}, {201, "Created"}, {202, "Accepted"}, {204, "No Content"}, {304, "Not Modified"}, {400, "Bad Request"}, {401, "Unauthorized"}, {404, "Not Found"}, {403, "Forbidden"}, {405, "Method Not Allowed"},
    {408, "Request Timeout"}, {409, "Conflict"}, {410, "Gone"}, {412, "Precondition Failed"}, {413, "Content Too Large"}, {414, "URI Too Long"}, {415, "Unsupported Media Type"}, {417, "Expectation Failed"}, {422, "Unprocessable Content"},
    {421, "Misdirected Request"}, {431, "Request Header Fields Too Large"}, {500, "Internal Server Error"}, {501, "Not Implemented"}, {503, "Service Unavailable"}, {507, "Insufficient Storage"},
};
/* clang-format on */

static const struct row *row_of(hfd_rc rc)
{
    HFD_ASSERT((unsigned)rc < HFD_RC_COUNT);
    return &rows[rc];
}

int hfd_problem_status(enum hfd_dialect dialect, hfd_rc rc)
{
    const struct row *row = row_of(rc);

    return dialect == HFD_DIALECT_DRIVER ? row->driver_status : row->fleet_status;
}

const char *hfd_status_text(int status)
{
    for (size_t i = 0; i < sizeof(status_texts) / sizeof(status_texts[0]); i++)
        if (status_texts[i].status == status)
            return status_texts[i].text;
    return "Unknown";
}

static const char *said(const struct hfd_problem *p)
{
    return p->message != NULL && p->message[0] != '\0' ? p->message : hfd_rc_text(p->rc);
}

/* Returns the length of UTF-8 text cut at len, without a cut character at the end. */
static size_t whole_characters(const char *text, size_t len)
{
    size_t lead = len, needs;

    while (lead > 0 && ((unsigned char)text[lead - 1] & 0xc0) == 0x80)
        lead--;
    if (lead == 0 || (unsigned char)text[lead - 1] < 0xc0)
        return len;
    needs = (unsigned char)text[lead - 1] >= 0xf0   ? 4
            : (unsigned char)text[lead - 1] >= 0xe0 ? 3
                                                    : 2;
    return len - (lead - 1) < needs ? lead - 1 : len;
}

/* Returns true for a 5xx whose message is for the client. */
static bool tells_why(const struct hfd_problem *p, int status)
{
    return p->rc == HFD_DAMAGED || p->rc == HFD_UNCHECKED || status == 507;
}

/* Returns the text that the client may see. */
static hfd_slice public_message(const struct hfd_problem *p, int status, char *out, size_t cap)
{
    const char *message = said(p);
    const char *field = p->field != NULL ? p->field : "";
    size_t field_len = strlen(field);
    const bool is_told = tells_why(p, status);
    int n;

    if (status == 503 && p->rc == HFD_BUSY)
        n = snprintf(out, cap, "too much work is queued; try again later (request %.*s)",
                     HFD_SLICE_FMT(p->request_id));
    else if (status == 503 && p->rc == HFD_TIMEOUT)
        n = snprintf(
            out, cap,
            "the list took longer than store.read_timeout; ask for less: a narrower search "
            "or a smaller pageSize (request %.*s)",
            HFD_SLICE_FMT(p->request_id));
    else if (status == 503 && !is_told)
        n = snprintf(out, cap,
                     "the service cannot do this at the moment; try again later (request %.*s)",
                     HFD_SLICE_FMT(p->request_id));
    else if (is_told)
        n = snprintf(out, cap, "%s (request %.*s)", message, HFD_SLICE_FMT(p->request_id));
    else if (status >= 500)
        n = snprintf(out, cap, "an internal error occurred (request %.*s)",
                     HFD_SLICE_FMT(p->request_id));
    else if (field_len != 0 && strncmp(message, field, field_len) != 0)
        n = snprintf(out, cap, "%s: %s", field, message);
    else
        n = snprintf(out, cap, "%s", message);
    if (n < 0)
        return HFD_SLICE("");
    return (hfd_slice){out, (size_t)n < cap ? (size_t)n : whole_characters(out, cap - 1)};
}

/* Appends an end to the message, which is cut if needed. text holds MESSAGE_MAX_BYTES + 1 bytes. */
static hfd_slice with_end(const char *end, char *text, hfd_slice message)
{
    const size_t len = strlen(end);

    if (len >= MESSAGE_MAX_BYTES)
        return message;
    if (message.len + len > MESSAGE_MAX_BYTES)
        message.len = whole_characters(text, MESSAGE_MAX_BYTES - len);
    memcpy(text + message.len, end, len + 1);
    message.len += len;
    return message;
}

/* Appends "; and 3 more (resource ID)": how many mistakes the details have, and the GUResID. */
static hfd_slice with_ends(const struct hfd_problem *p, char *text, hfd_slice message)
{
    const size_t count = p->fields != NULL ? p->fields->count : 0;
    char end[MESSAGE_MAX_BYTES];
    int n = 0;

    if (count > 1)
        n = snprintf(end, sizeof(end), "; and %s%zu more",
                     count == HFD_VIOLATIONS_MAX ? "at least " : "", count - 1);
    if (n < 0)
        return message;
    if (p->resource.len > 0 && (size_t)n + p->resource.len + sizeof(" (resource )") < sizeof(end))
        n += snprintf(end + n, sizeof(end) - (size_t)n, " (resource %.*s)",
                      HFD_SLICE_FMT(p->resource));
    return n > 0 ? with_end(end, text, message) : message;
}

/* with_value: for HyperFleet; a value of an order may be a secret. */
static void add_error(struct hfd_buf *b, const struct hfd_violation *v, bool with_value)
{
    hfd_buf_member_str(b, "{\"field\":", v->field);
    hfd_buf_member_str(b, ",\"message\":", v->message);
    if (v->constraint[0] != '\0')
        hfd_buf_addf(b, ",\"constraint\":\"%s\"", v->constraint);
    if (with_value && v->value.p != NULL) {
        hfd_buf_lit(b, ",\"value\":");
        hfd_buf_add(b, v->value);
    }
    hfd_buf_addc(b, '}');
}

static void add_rules(const struct hfd_health_violations *rules, struct hfd_buf *b)
{
    hfd_buf_lit(b, "\"errors\":[");
    for (size_t i = 0; i < rules->count; i++) {
        const struct hfd_health_violation *v = &rules->items[i];

        hfd_buf_comma(b, i);
        hfd_buf_member_str(b, "{\"field\":", v->field);
        hfd_buf_member_str(b, ",\"message\":", v->message);
        hfd_buf_addf(b, ",\"rule\":\"%s\"}", v->rule);
    }
    hfd_buf_addc(b, ']');
}

/* True if a field is to blame. */
static bool has_errors(const struct hfd_problem *p)
{
    return (p->rules != NULL && p->rules->count > 0) ||
           (p->fields != NULL && p->fields->count > 0) || (p->field != NULL && p->field[0] != '\0');
}

/* Writes errors[]: each field and its error. message: of p->field, which may be the only one. */
static void add_errors(const struct hfd_problem *p, hfd_slice message, struct hfd_buf *b)
{
    const size_t count = p->fields != NULL ? p->fields->count : 0;

    if (p->rules != NULL && p->rules->count > 0) {
        add_rules(p->rules, b);
        return;
    }
    hfd_buf_lit(b, "\"errors\":[");
    for (size_t i = 0; i < count; i++) {
        hfd_buf_comma(b, i);
        add_error(b, &p->fields->items[i], p->dialect == HFD_DIALECT_FLEET);
    }
    if (count == 0)
        add_error(b,
                  &(struct hfd_violation){
                      .field = hfd_slice_of(p->field), .message = message, .constraint = ""},
                  false);
    hfd_buf_addc(b, ']');
}

static void format_fleet(const struct hfd_problem *p, const struct row *row, int status,
                         hfd_slice message, struct hfd_buf *b)
{
    hfd_buf_addf(b,
                 "{\"type\":\"https://api.hyperfleet.io/errors/"
                 "%s\",\"title\":\"%s\",\"status\":%d,\"detail\":",
                 row->suffix, p->unknown_route ? "Endpoint Not Found" : row->title, status);
    hfd_buf_json_str(b, message);
    if (p->path.len != 0)
        hfd_buf_member_str(b, ",\"instance\":", p->path);
    hfd_buf_addf(b, ",\"code\":\"HYPERFLEET-%s\",\"timestamp\":",
                 p->unknown_route ? "NTF-000" : row->fleet_code);
    hfd_buf_json_time(b, p->now_us);
    hfd_buf_member_str(b, ",\"trace_id\":", p->request_id);
    if (status < 500 && has_errors(p)) {
        hfd_buf_addc(b, ',');
        add_errors(p, hfd_slice_of(said(p)), b);
    }
    hfd_buf_addc(b, '}');
}

/* The message of one field, without the field in front. */
static hfd_slice without_field(const struct hfd_problem *p)
{
    const hfd_slice message = hfd_slice_of(said(p));
    const size_t len = strlen(p->field);

    return hfd_slice_starts(message, hfd_slice_of(p->field)) && message.len > len + 2 &&
                   memcmp(message.p + len, ": ", 2) == 0
               ? (hfd_slice){message.p + len + 2, message.len - len - 2}
               : message;
}

static void format_driver(const struct hfd_problem *p, const struct row *row, int status,
                          hfd_slice message, struct hfd_buf *b)
{
    hfd_buf_addf(b, "{\"error\":\"%s\",\"message\":", row->driver_code);
    hfd_buf_json_str(b, message);
    if (status == 400 && has_errors(p)) {
        hfd_buf_lit(b, ",\"details\":{");
        add_errors(p, p->field != NULL ? without_field(p) : HFD_SLICE_NONE, b);
        hfd_buf_addc(b, '}');
    }
    hfd_buf_addc(b, '}');
}

void hfd_problem_format(const struct hfd_problem *p, struct hfd_buf *b, struct hfd_reply *reply)
{
    const struct row *row = p->unknown_route ? row_of(HFD_NOT_FOUND) : row_of(p->rc);
    int status = p->status != 0 ? p->status : hfd_problem_status(p->dialect, p->rc);
    char text[MESSAGE_MAX_BYTES + 1];
    hfd_slice message = public_message(p, status, text, sizeof(text));

    *reply = (struct hfd_reply){.status = status,
                                .content_type = "application/json",
                                .retry_after_s = status == 503 ? RETRY_AFTER_S : 0};
    switch (p->dialect) {
    case HFD_DIALECT_FLEET:
        reply->content_type = "application/problem+json";
        /* HyperFleet shows the field in errors[], not in the detail. */
        if (status < 500)
            message = hfd_slice_of(said(p));
        format_fleet(p, row, status, message, b);
        break;
    case HFD_DIALECT_DRIVER:
        if (status == 400)
            message = with_ends(p, text, message);
        format_driver(p, row, status, message, b);
        break;
    case HFD_DIALECT_OPS:
        hfd_buf_addf(b, "{\"error\":\"%s\",\"message\":", hfd_rc_name(p->rc));
        hfd_buf_json_str(b, message);
        hfd_buf_addc(b, '}');
        break;
    }
    /* A path, a field or a quoted value may have a secret in it. */
    hfd_buf_mask(b, 0);
}
