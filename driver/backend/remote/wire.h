/*
 * Reads the documents of a remote HyperFleet of any generation: resources, lists, reports,
 * problems. Checks every member that it reads, and ignores unknown ones. Pure. Thread: any. Source:
 * HyperFleet API.
 */
#ifndef HFD_REMOTE_WIRE_H
#define HFD_REMOTE_WIRE_H

#include "driver/backend/remote/http.h"
#include "driver/base/err.h"
#include "driver/base/jsonx.h"
#include "driver/base/slice.h"
#include "store/kind.h"

struct hfd_report_row;

#define HFD_WIRE_ID_MAX 64
#define HFD_WIRE_REPORTS_MAX 256 /* of one resource; more are not read */

/** Checks for A-Z a-z 0-9 and hyphen, at most HFD_WIRE_ID_MAX: safe in a path. */
bool hfd_wire_id_ok(hfd_slice id);

/** A cluster or nodepool. Texts are in the memory given. */
struct hfd_wire_resource {
    hfd_slice id, name, owner_id; /* owner_id: of a nodepool; empty where it is not told */
    int64_t generation;
    hfd_slice spec, labels; /* canonical; labels without the one that names the owner */
    hfd_slice guresid;      /* of its labels; empty = none */
    hfd_slice made_by;      /* value of the label that names the owner; empty = none */
    hfd_slice conditions;   /* as the store keeps them, by the names that the store
                               keeps */
    bool ready;             /* Ready is True at its generation */
    bool later_names;       /* it says Reconciled for Ready */
    bool deleting;
    int64_t created_us, updated_us, deleted_us; /* deleted_us is not 0 while deleting */
    hfd_slice created_by, updated_by, deleted_by;
};

/** @return HFD_OK, HFD_MALFORMED (what is wrong, without the remote's text), HFD_NOMEM */
HFD_MUST_CHECK hfd_rc hfd_wire_resource_read(const json_t *doc, enum hfd_kind kind,
                                             struct hfd_arena *mem, struct hfd_wire_resource *out,
                                             struct hfd_err *err);

/** A page of a list; items is borrowed from the document. */
struct hfd_wire_page {
    const json_t *items; /* an array, or NULL for none */
    size_t count;
    int64_t total; /* -1 = not told, or not to be believed */
};

/** @return HFD_OK, HFD_MALFORMED */
HFD_MUST_CHECK hfd_rc hfd_wire_page_read(const json_t *doc, struct hfd_wire_page *out,
                                         struct hfd_err *err);

/**
 * Reads an adapter's report. Sets neither received_us nor fleet_id nor secrets of the row.
 * @param secrets  data.secrets as plain JSON, or none; without values that the remote has redacted
 * @return HFD_OK, HFD_MALFORMED, HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_wire_report_read(json_t *doc, struct hfd_arena *mem,
                                           struct hfd_report_row *row, hfd_slice *secrets,
                                           struct hfd_err *err);

/** A problem document (RFC 9457), as far as it can be read. */
struct hfd_wire_problem {
    hfd_slice code;  /* "HYPERFLEET-CNF-001"; empty = none */
    hfd_slice words; /* its detail and field errors, without control characters,
                        at most 240 bytes; empty = none */
    bool no_route;   /* it says that the path is not one of HyperFleet's */
    int64_t status;  /* 0 = not said */
};

/**
 * Reads a problem document. out is empty if the body is none.
 * @return HFD_OK, HFD_NOMEM (out is empty)
 */
HFD_MUST_CHECK hfd_rc hfd_wire_problem_read(hfd_slice body, struct hfd_arena *mem,
                                            struct hfd_wire_problem *out, struct hfd_err *err);

/* The meaning of an answer: the table "What answers mean" of README.md. Pure. Thread: any. */

enum hfd_remote_verdict {
    HFD_ON_WELL,    /* done, or the document is here */
    HFD_ON_LATER,   /* down, busy */
    HFD_ON_FOREIGN, /* not a word of HyperFleet: a proxy's, perhaps */
    HFD_ON_WRONG,   /* not a HyperFleet: a redirect, or its word that the path is not its own */
    HFD_ON_REFUSED, /* the credentials are refused */
    HFD_ON_MISSING, /* the resource does not exist (any more) */
    HFD_ON_TAKEN,   /* the name is taken */
    HFD_ON_LEAVING, /* the resource or its cluster is being deleted */
    HFD_ON_INVALID, /* the input is refused */
    HFD_ON_UNABLE   /* this HyperFleet has no such operation */
};

/** @param problem  from the answer's document, or zeroes */
enum hfd_remote_verdict hfd_remote_verdict_of(enum hfd_remote_method method,
                                              const struct hfd_remote_answer *a,
                                              const struct hfd_wire_problem *problem);

/** Finds the state of the remote that the answer shows. */
enum hfd_remote_health hfd_remote_health_of(const struct hfd_remote_answer *a);

#endif
