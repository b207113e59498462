/*
 * The command that requests of the embedded HyperFleet API share: fleet_api.c reads and writes
 * single resources, fleet_lists.c lists them. Thread: loop.
 */
#ifndef HFD_HTTP_FLEET_API_INT_H
#define HFD_HTTP_FLEET_API_INT_H

#include "driver/core/observe.h"
#include "handlers/http/api.h"
#include "handlers/http/fields.h"
#include "handlers/http/fleet_api.h"
#include "handlers/http/fleet_json.h"
#include "handlers/http/pacemaker_api.h"
#include "handlers/http/query.h"
#include "store/search.h"
#include "store/rows_fleet.h"
#include "store/rows_report.h"

/** The largest document of one resource that the limits allow. */
#define HFD_FLEET_DOCUMENT_MAX_BYTES ((size_t)64 * 1024 * 1024)

/** A request and its results. Lives in the memory of the exchange. */
struct hfd_fleet_command {
    struct hfd_fleet_call call;
    enum hfd_kind kind;
    hfd_slice owner_id; /* from the path; empty if there is none */
    hfd_slice id;
    union {
        struct hfd_fleet_create create;
        struct hfd_fleet_patch patch;
        struct hfd_fleet_report report;
        hfd_slice reason;
        struct {
            struct hfd_query_page page;
            struct hfd_fleet_query query;
            struct hfd_report_query reports; /* of the lists of statuses */
            const struct hfd_fields *fields; /* NULL = all */
            bool is_plain;                   /* no search, and the order of an index */
            struct hfd_arena_mark asked;     /* what is above it, the page needs */
        } list;
    } in;
    int status;           /* status of a successful answer */
    struct hfd_buf *body; /* of the answer of a list, written by the reader; NULL = none */
    enum hfd_vocabulary vocabulary;
    const struct hfd_driver *driver;
    struct hfd_fleet_row row;
    struct hfd_fleet_reported report;
    struct hfd_pacemaker_report observed; /* of in.report */
    struct hfd_fleet_list rows;
    struct hfd_report_list reports;
};

/** Makes the command of a request, with copies. Returns NULL after it has answered with an error.
 */
struct hfd_fleet_command *hfd_fleet_command_start(struct hfd_exchange *x);
#endif
