/*
 * The objects that an adapter lists in its report, as data.objects: what it applies, or observes,
 * for a cluster or nodepool. Their counts are stored with the report, so that a summary reads no
 * data. Pure. Source: EMCO status query; handlers/docs/status.md. Thread: any.
 */
#ifndef HFD_FLEET_OBJECTS_H
#define HFD_FLEET_OBJECTS_H

#include "driver/base/jsonx.h"

/** How far the adapter is with an object: EMCO's rsync-status. The numbers are stored. */
enum hfd_rsync {
    HFD_RSYNC_PENDING,
    HFD_RSYNC_APPLIED,
    HFD_RSYNC_FAILED,
    HFD_RSYNC_RETRYING,
    HFD_RSYNC_TERMINATED,
    HFD_RSYNC_COUNT
};

/** If the object is there: EMCO's cluster-status. The numbers are stored. */
enum hfd_presence {
    HFD_PRESENCE_UNKNOWN,
    HFD_PRESENCE_NOT_PRESENT,
    HFD_PRESENCE_PRESENT,
    HFD_PRESENCE_COUNT
};

/**
 * "Pending", and back. "Instantiated" is Applied and "Deleted" Terminated too. hfd_rsync_parse
 * returns false for any other text.
 */
const char *hfd_rsync_name(enum hfd_rsync s);
/** "Unknown", "NotPresent", "Present". */
const char *hfd_presence_name(enum hfd_presence p);

/** One object. Texts borrow from its entry; absent ones are empty. */
struct hfd_object {
    hfd_slice provider, cluster; /* where it is; both empty = the resource's own place */
    hfd_slice group, version, kind;
    hfd_slice name;
    hfd_slice node; /* of a PacemakerCluster document: the node that it runs on */
    bool has_rsync; /* false: the conditions of the report tell */
    enum hfd_rsync rsync;
    enum hfd_presence presence;
    bool observed_only; /* the adapter did not apply it: it has no rsync-status */
};

/**
 * Reads an entry of data.objects.
 * @return false if it is no object with a name: such an entry counts nowhere
 */
bool hfd_object_read(const json_t *entry, struct hfd_object *out);

/** The counts of a report's objects. */
struct hfd_object_counts {
    int64_t own[HFD_RSYNC_COUNT]; /* that have a rsync-status of their own */
    int64_t other;                /* that have none */
    int64_t presence[HFD_PRESENCE_COUNT];
};

/** Adds one object. */
void hfd_object_count(const struct hfd_object *object, struct hfd_object_counts *counts);
/** Adds the entries of data.objects. @param data  of a report; may be NULL */
void hfd_objects_count(const json_t *data, struct hfd_object_counts *counts);
/** Refuses an unknown rsync-status. @return HFD_OK, HFD_INVALID with the field and the words */
HFD_MUST_CHECK hfd_rc hfd_objects_check(const json_t *data, struct hfd_err *err);
/** True if nothing was counted. */
bool hfd_object_counts_none(const struct hfd_object_counts *counts);

/**
 * Writes the stored form; no counts are an empty text.
 * @param out  in mem
 * @return HFD_OK, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_object_counts_format(const struct hfd_object_counts *counts,
                                               struct hfd_arena *mem, hfd_slice *out);
/** Reads the stored form. A text of another form counts nothing. */
void hfd_object_counts_parse(hfd_slice stored, struct hfd_object_counts *out);

#endif
