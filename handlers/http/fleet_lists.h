/* The lists of the embedded HyperFleet API. Thread: loop. */
#ifndef HFD_HTTP_FLEET_LISTS_H
#define HFD_HTTP_FLEET_LISTS_H

#include "driver/fleet/vocabulary.h"
#include "handlers/http/fields.h"
#include "handlers/http/http.h"
#include "store/rows_fleet.h"

/** A request for a list: the arg of a route of hfd_fleet_api_list. */
struct hfd_fleet_listing;
extern const struct hfd_fleet_listing hfd_fleet_resources, hfd_fleet_statuses;

/** Answers with a page of the route's list. */
void hfd_fleet_api_list(struct hfd_exchange *x);

/** Adds the document of a resource, or the members that `fields` selects; NULL = all. */
void hfd_fleet_add_document(struct hfd_buf *b, const struct hfd_fields *fields,
                            const struct hfd_fleet_row *row, enum hfd_vocabulary vocabulary);

#endif
