/* Checks of single values: type, const and enum, strings, numbers. Thread: any. */
#ifndef HFD_SCHEMAS_SCALAR_INT_H
#define HFD_SCHEMAS_SCALAR_INT_H

#include "schemas/walk_int.h"

/** The HFD_TYPE_... bits that a value has. */
unsigned hfd_scalar_type(const json_t *v);

/** Notes that a value has none of the wanted types. @return false always */
bool hfd_scalar_wrong_type(struct hfd_walk *w, const struct hfd_place *at, unsigned types,
                           const json_t *v);

/*
 * Checks of a value against one part of a schema. They note violations. @return whether it is valid
 */

/** const and enum. */
bool hfd_scalar_check_enum(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                           const struct hfd_place *at);
bool hfd_scalar_check_string(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                             const struct hfd_place *at);
bool hfd_scalar_check_number(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v,
                             const struct hfd_place *at);

#endif
