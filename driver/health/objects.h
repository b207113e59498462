/*
 * The objects of EMCO's status query that a PacemakerCluster document stands for: its nodes, their
 * resources and their fencing agents. Pure. Thread: any.
 */
#ifndef HFD_HEALTH_OBJECTS_H
#define HFD_HEALTH_OBJECTS_H

#include "driver/fleet/objects.h"
#include "driver/health/document.h"

#define HFD_HEALTH_OBJECTS_MAX (HFD_HEALTH_NODES_MAX * (1 + 2 * HFD_HEALTH_UNITS_MAX))

struct hfd_health_object {
    struct hfd_object object;
    const json_t *entry; /* of the node, resource or agent in the document */
};

struct hfd_health_objects {
    struct hfd_health_object items[HFD_HEALTH_OBJECTS_MAX];
    size_t count;
};

/**
 * Finds the objects of a document that hfd_health_check has accepted. An offline node is not
 * present, and neither is what runs on it.
 * @param doc  borrowed by out; NULL has no objects
 */
void hfd_health_objects(const json_t *doc, struct hfd_health_objects *out);

/** Adds data.objects and the objects of the document in the data of an observer's report. */
void hfd_health_count_objects(const json_t *data, struct hfd_object_counts *counts);

#endif
