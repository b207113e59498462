/* The forms of single texts in a PacemakerCluster. See forms.h. */
#include "driver/health/forms.h"

#include "driver/fleet/condition.h"

size_t hfd_health_characters(hfd_slice text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += ((unsigned char)text.p[i] & 0xc0u) != 0x80u;
    return n;
}

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* [a-z0-9]([-a-z0-9]*[a-z0-9])? */
static bool is_label(hfd_slice text)
{
    if (text.len == 0 || !is_lower_alnum(text.p[0]) || !is_lower_alnum(text.p[text.len - 1]))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!is_lower_alnum(text.p[i]) && text.p[i] != '-')
            return false;
    return true;
}

bool hfd_health_is_subdomain(hfd_slice text)
{
    size_t from = 0;

    for (size_t i = 0; i <= text.len; i++) {
        if (i < text.len && text.p[i] != '.')
            continue;
        if (!is_label((hfd_slice){text.p + from, i - from}))
            return false;
        from = i + 1;
    }
    return true;
}

static bool is_one_of(char c, const char *others)
{
    return hfd_is_alnum(c) || (c != '\0' && strchr(others, c) != NULL);
}

/* Letters and digits at both ends; inside also the others. */
static bool is_name_with(hfd_slice text, const char *others)
{
    if (text.len == 0 || !hfd_is_alnum(text.p[0]) || !hfd_is_alnum(text.p[text.len - 1]))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!is_one_of(text.p[i], others))
            return false;
    return true;
}

bool hfd_health_is_condition_type(hfd_slice text)
{
    const char *slash = text.len > 0 ? memchr(text.p, '/', text.len) : NULL;
    size_t prefix;

    if (slash == NULL)
        return is_name_with(text, "-_.");
    prefix = (size_t)(slash - text.p);
    return hfd_health_is_subdomain((hfd_slice){text.p, prefix}) &&
           is_name_with((hfd_slice){slash + 1, text.len - prefix - 1}, "-_.");
}

bool hfd_health_is_reason(hfd_slice text)
{
    if (text.len == 0 || !hfd_is_alnum(text.p[0]) || (text.p[0] >= '0' && text.p[0] <= '9'))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!is_one_of(text.p[i], "_,:"))
            return false;
    return is_one_of(text.p[text.len - 1], "_");
}

bool hfd_health_is_agent_name(hfd_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_one_of(text.p[i], "._-"))
            return false;
    return text.len > 0;
}

bool hfd_health_is_api_version(hfd_slice text)
{
    return hfd_slice_is(text, "etcd.openshift.io/v1alpha1") ||
           hfd_slice_is(text, "etcd.openshift.io/v1");
}

bool hfd_health_is_kind(hfd_slice text)
{
    return hfd_slice_is(text, "PacemakerCluster");
}

bool hfd_health_is_cluster_name(hfd_slice text)
{
    return hfd_slice_is(text, "cluster");
}

bool hfd_health_is_status(hfd_slice text)
{
    enum hfd_status ignored;

    return hfd_status_parse(text, &ignored);
}

bool hfd_health_is_address_type(hfd_slice text)
{
    return hfd_slice_is(text, "InternalIP");
}

bool hfd_health_is_resource_name(hfd_slice text)
{
    return hfd_slice_is(text, "Kubelet") || hfd_slice_is(text, "Etcd");
}

bool hfd_health_is_method(hfd_slice text)
{
    return hfd_slice_is(text, "Redfish") || hfd_slice_is(text, "IPMI");
}
