/*
 * PacemakerCluster documents for tests: the base document D (master-0 and master-1, one Redfish
 * agent each, every condition True) and edits of it by path.
 */
#ifndef HFD_TESTS_LIB_HEALTH_DOC_H
#define HFD_TESTS_LIB_HEALTH_DOC_H

#include <jansson.h>
#include <stddef.h>

/** status.lastUpdated of D. */
#define HEALTH_DOC_UPDATED "2025-01-01T00:00:00Z"

/** D with so many nodes. Gives; never NULL. */
json_t *health_doc(size_t nodes);

/**
 * Changes one place: "status/nodes/master-0/conditions/Ready/status". A number is an index; in an
 * array another word is the type, name or nodeName of an item, and "-" appends.
 * @param json  the new value; NULL removes it
 */
void health_doc_set(json_t *doc, const char *path, const char *json);
/** Fills a list to count items with copies of its last one, each with another value of the key. */
void health_doc_fill(json_t *doc, const char *path, size_t count, const char *key);

#endif
