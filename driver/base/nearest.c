/* See nearest.h. */
#include "driver/base/nearest.h"

#define NAME_MAX_LEN 80

/* Returns the number of edits (insert, delete, replace) between two texts. */
static size_t distance(hfd_slice a, hfd_slice b)
{
    size_t row[NAME_MAX_LEN + 1];

    for (size_t k = 0; k <= b.len; k++)
        row[k] = k;
    for (size_t i = 0; i < a.len; i++) {
        size_t diagonal = row[0];

        row[0] = i + 1;
        for (size_t k = 0; k < b.len; k++) {
            size_t replaced = diagonal + (a.p[i] != b.p[k]);
            size_t shorter = row[k] < row[k + 1] ? row[k] : row[k + 1];

            diagonal = row[k + 1];
            row[k + 1] = replaced < shorter + 1 ? replaced : shorter + 1;
        }
    }
    return row[b.len];
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
