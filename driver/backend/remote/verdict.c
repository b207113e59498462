/* See verdict.h. */
#include "driver/backend/remote/verdict.h"

/* Returns whether the body may be a whole document. Cheap: checks its last byte. */
static bool looks_whole(const struct hfd_remote_answer *a)
{
    hfd_slice b = a->body;

    while (b.len > 0 && strchr(" \t\r\n", b.p[b.len - 1]) != NULL)
        b.len--;
    return a->is_json && b.len > 1 && b.p[b.len - 1] == '}';
}

/* clang-format off */
static const struct {
    int from, to;                  /* of the status */
    const char *code;              /* the last characters of the problem's code; NULL = any */
    unsigned methods;              /* bits of enum hfd_remote_method; 0 = any */
    enum hfd_remote_verdict verdict;
} table[] = {
    {300, 399, NULL,      0,                                                      HFD_ON_WRONG},
    {401, 401, NULL,      0,                                                      HFD_ON_REFUSED},
    {403, 403, NULL,      0,                                                      HFD_ON_REFUSED},
    {404, 404, NULL,      0,                                                      HFD_ON_MISSING},
    {410, 410, NULL,      0,                                                      HFD_ON_MISSING},
    {405, 405, NULL,      1u << HFD_REMOTE_PATCH | 1u << HFD_REMOTE_DELETE,   HFD_ON_UNABLE},
    {501, 501, NULL,      1u << HFD_REMOTE_PATCH | 1u << HFD_REMOTE_DELETE,   HFD_ON_UNABLE},
    {409, 409, "CNF-003", 0,                                                      HFD_ON_LEAVING},
    {409, 409, NULL,      1u << HFD_REMOTE_POST,                                HFD_ON_TAKEN},
    {408, 408, NULL,      0,                                                      HFD_ON_LATER},
    {425, 425, NULL,      0,                                                      HFD_ON_LATER},
    {429, 429, NULL,      0,                                                      HFD_ON_LATER},
    {409, 409, NULL,      0,                                                      HFD_ON_LATER}, /* other resources refer to it, and may be deleted soon */
    {400, 499, NULL,      1u << HFD_REMOTE_POST | 1u << HFD_REMOTE_PATCH,     HFD_ON_INVALID},
};
/* clang-format on */

static bool ends_with(hfd_slice s, const char *end)
{
    const size_t n = strlen(end);

    return s.len >= n && memcmp(s.p + s.len - n, end, n) == 0;
}

static bool fits(size_t row, enum hfd_remote_method method, int status, hfd_slice code)
{
    return status >= table[row].from && status <= table[row].to &&
           (table[row].methods == 0 || (table[row].methods & 1u << method) != 0) &&
           (table[row].code == NULL || ends_with(code, table[row].code));
}

static bool is_good(int status)
{
    return status >= 200 && status <= 299;
}

enum hfd_remote_verdict hfd_remote_verdict_of(enum hfd_remote_method method,
                                              const struct hfd_remote_answer *a,
                                              const struct hfd_wire_problem *problem)
{
    if (!a->arrived)
        return HFD_ON_LATER;
    if (is_good(a->status)) /* the answer to DELETE may be empty */
        return looks_whole(a) || (method == HFD_REMOTE_DELETE && a->body.len == 0) ? HFD_ON_WELL
                                                                                   : HFD_ON_LATER;
    /* A 404 that is not HyperFleet's own says nothing about the resource. */
    if (a->status == 404 && (problem->no_route || !a->is_json))
        return HFD_ON_WRONG;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (fits(i, method, a->status, problem->code))
            return table[i].verdict;
    return HFD_ON_LATER;
}

static bool contains(const struct hfd_remote_answer *a, hfd_slice words)
{
    return a->body.len > 0 && memmem(a->body.p, a->body.len, words.p, words.len) != NULL;
}

static bool is_wrong(const struct hfd_remote_answer *a)
{
    if (a->status != 404)
        return a->status >= 300 && a->status <= 399;
    return !a->is_json || !contains(a, HFD_SLICE("HYPERFLEET-")) ||
           contains(a, HFD_SLICE("HYPERFLEET-NTF-000"));
}

static bool is_ill(int status)
{
    return status == 408 || status == 425 || status == 429 || status < 200 ||
           (status >= 500 && status != 501);
}

enum hfd_remote_health hfd_remote_health_of(const struct hfd_remote_answer *a)
{
    if (!a->arrived || is_ill(a->status))
        return HFD_REMOTE_ILL;
    if (is_good(a->status))
        return looks_whole(a) || a->body.len == 0 ? HFD_REMOTE_WELL : HFD_REMOTE_ILL;
    if (is_wrong(a))
        return HFD_REMOTE_WRONG;
    return a->status == 401 || a->status == 403 ? HFD_REMOTE_REFUSES : HFD_REMOTE_WELL;
}
