/* The naming rules of clusters and nodepools. See names.h. */
#include "driver/fleet/names.h"

#define NAME_MIN 3
#define CLUSTER_NAME_MAX 53
#define NODEPOOL_NAME_MAX 15

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_label(hfd_slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_alnum(name.p[i]) && name.p[i] != '-')
            return false;
    return is_alnum(name.p[0]) && is_alnum(name.p[name.len - 1]);
}

hfd_rc hfd_name_check(enum hfd_kind kind, hfd_slice name, struct hfd_err *err)
{
    const size_t max = kind == HFD_KIND_CLUSTER ? CLUSTER_NAME_MAX : NODEPOOL_NAME_MAX;

    if (name.len == 0)
        return hfd_fail_field(err, HFD_INVALID, "name", "name is required");
    if (name.len < NAME_MIN)
        return hfd_fail_field(err, HFD_INVALID, "name", "name must be at least %d characters",
                              NAME_MIN);
    if (name.len > max)
        return hfd_fail_field(err, HFD_INVALID, "name", "name must be at most %zu characters", max);
    if (!is_label(name))
        return hfd_fail_field(err, HFD_INVALID, "name",
                              "name must start and end with lowercase letter or number, and "
                              "contain only lowercase letters, "
                              "numbers, and hyphens");
    return HFD_OK;
}

const char *hfd_kind_name(enum hfd_kind kind)
{
    return kind == HFD_KIND_CLUSTER ? "Cluster" : "NodePool";
}

const char *hfd_kind_word(enum hfd_kind kind)
{
    return kind == HFD_KIND_CLUSTER ? "cluster" : "nodepool";
}
