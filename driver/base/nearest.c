/* See nearest.h. */
#include "driver/base/nearest.h"

#define NAME_MAX_LEN 80

/* One row of the table of edits: how many turn the first i characters into the first k. */
struct row {
    size_t at[NAME_MAX_LEN + 1];
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns the number of edits (insert, delete, replace, swap neighbours) between two texts. */
static size_t distance(hfd_slice a, hfd_slice b)
{
    struct row rows[3]; /* of i - 2, i - 1 and i characters, in turn */

    for (size_t k = 0; k <= b.len; k++)
        rows[0].at[k] = k;
    for (size_t i = 1; i <= a.len; i++) {
        const size_t *above = rows[(i - 1) % 3].at, *before = rows[(i + 1) % 3].at;
        size_t *row = rows[i % 3].at;

        row[0] = i;
        for (size_t k = 1; k <= b.len; k++) {
            row[k] =
                least(above[k - 1] + (a.p[i - 1] != b.p[k - 1]), least(above[k], row[k - 1]) + 1);
            if (i > 1 && k > 1 && a.p[i - 1] == b.p[k - 2] && a.p[i - 2] == b.p[k - 1])
                row[k] = least(row[k], before[k - 2] + 1);
        }
    }
    return rows[a.len % 3].at[b.len];
}

bool hfd_nearest_consider(struct hfd_nearest *n, hfd_slice name)
{
    size_t edits;

    if (n->given.len > NAME_MAX_LEN || name.len > NAME_MAX_LEN)
        return false;
    edits = distance(n->given, name);
    if (edits >= n->edits)
        return false;
    n->edits = edits;
    return true;
}
