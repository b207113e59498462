/* What answers mean: the table of README.md in this folder. Pure. Thread: any. */
#include "driver/backend/upstream_int.h"

/* Whether the body may be a document at all: a cheap look at both ends. */
static bool looks_whole(const struct hfd_upstream_answer *a)
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
    unsigned methods;              /* bits of enum hfd_upstream_method; 0 = any */
    enum hfd_verdict_on verdict;
} table[] = {
    {300, 399, NULL,      0,                                                      HFD_ON_WRONG},
    {401, 401, NULL,      0,                                                      HFD_ON_REFUSED},
    {403, 403, NULL,      0,                                                      HFD_ON_REFUSED},
    {404, 404, NULL,      0,                                                      HFD_ON_MISSING},
    {410, 410, NULL,      0,                                                      HFD_ON_MISSING},
    {405, 405, NULL,      1u << HFD_UPSTREAM_PATCH | 1u << HFD_UPSTREAM_DELETE,   HFD_ON_UNABLE},
    {501, 501, NULL,      1u << HFD_UPSTREAM_PATCH | 1u << HFD_UPSTREAM_DELETE,   HFD_ON_UNABLE},
    {409, 409, "CNF-003", 0,                                                      HFD_ON_LEAVING},
    {409, 409, NULL,      1u << HFD_UPSTREAM_POST,                                HFD_ON_TAKEN},
    {408, 408, NULL,      0,                                                      HFD_ON_LATER},
    {425, 425, NULL,      0,                                                      HFD_ON_LATER},
    {429, 429, NULL,      0,                                                      HFD_ON_LATER},
    {409, 409, NULL,      0,                                                      HFD_ON_LATER}, /* others refer to it: they may leave */
    {400, 499, NULL,      1u << HFD_UPSTREAM_POST | 1u << HFD_UPSTREAM_PATCH,     HFD_ON_INVALID},
};
/* clang-format on */

static bool ends_with(hfd_slice s, const char *end)
{
    const size_t n = strlen(end);

    return s.len >= n && memcmp(s.p + s.len - n, end, n) == 0;
}

enum hfd_verdict_on hfd_upstream_verdict(enum hfd_upstream_method method, const struct hfd_upstream_answer *a,
                                         const struct hfd_wire_problem *problem)
{
    if (!a->arrived)
        return HFD_ON_LATER;
    if (a->status >= 200 && a->status <= 299) /* a deletion may be answered without a word */
        return looks_whole(a) || (method == HFD_UPSTREAM_DELETE && a->body.len == 0) ? HFD_ON_WELL : HFD_ON_LATER;
    /* A 404 in other words than HyperFleet's is somebody else's, and says nothing of the resource. */
    if (a->status == 404 && (problem->no_route || !a->is_json))
        return HFD_ON_WRONG;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (a->status < table[i].from || a->status > table[i].to || (table[i].methods != 0 && (table[i].methods & 1u << method) == 0))
            continue;
        if (table[i].code == NULL || ends_with(problem->code, table[i].code))
            return table[i].verdict;
    }
    return HFD_ON_LATER;
}

enum hfd_upstream_health hfd_upstream_health_of(const struct hfd_upstream_answer *a)
{
    if (!a->arrived)
        return HFD_UPSTREAM_ILL;
    if (a->status >= 200 && a->status <= 299)
        return looks_whole(a) || a->body.len == 0 ? HFD_UPSTREAM_WELL : HFD_UPSTREAM_ILL;
    if (a->status >= 300 && a->status <= 399)
        return HFD_UPSTREAM_WRONG;
    if (a->status == 401 || a->status == 403)
        return HFD_UPSTREAM_REFUSES;
    if (a->status == 404 && (!a->is_json || memmem(a->body.p, a->body.len, "HYPERFLEET-NTF-000", 18) != NULL))
        return HFD_UPSTREAM_WRONG;
    if (a->status == 408 || a->status == 425 || a->status == 429 || a->status < 200 || (a->status >= 500 && a->status != 501))
        return HFD_UPSTREAM_ILL;
    return HFD_UPSTREAM_WELL;
}
