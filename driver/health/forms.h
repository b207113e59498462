/*
 * The forms of single texts in a PacemakerCluster: names, words of a list, addresses. Each function
 * answers yes or no; lengths are the business of rules.c. Pure. Thread: any.
 */
#ifndef HFD_HEALTH_FORMS_H
#define HFD_HEALTH_FORMS_H

#include "driver/base/slice.h"

/** Unicode characters of a text that is UTF-8. */
size_t hfd_health_characters(hfd_slice text);

/** Lower-case RFC 1123 subdomain. Labels may be longer than 63, as in Kubernetes. */
bool hfd_health_is_subdomain(hfd_slice text);
/** The type of a condition: a qualified name, "Ready" or "example.com/Ready". */
bool hfd_health_is_condition_type(hfd_slice text);
/** The reason of a condition: "AsExpected". */
bool hfd_health_is_reason(hfd_slice text);
/** The name of a fencing agent: letters, digits, dots, hyphens and underscores. */
bool hfd_health_is_agent_name(hfd_slice text);

/** One of the words that the field may have. */
bool hfd_health_is_api_version(hfd_slice text);
bool hfd_health_is_kind(hfd_slice text);
bool hfd_health_is_cluster_name(hfd_slice text);
bool hfd_health_is_status(hfd_slice text);
bool hfd_health_is_address_type(hfd_slice text);
bool hfd_health_is_resource_name(hfd_slice text);
bool hfd_health_is_method(hfd_slice text);

#endif
