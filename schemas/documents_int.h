/* The bytes of the embedded documents. The build makes them (embed.cmake). */
#ifndef HFD_SCHEMAS_DOCUMENTS_INT_H
#define HFD_SCHEMAS_DOCUMENTS_INT_H

#include <stddef.h>

extern const unsigned char hfd_input_json[];
extern const size_t hfd_input_json_len;
extern const unsigned char hfd_hypershift_json[];
extern const size_t hfd_hypershift_json_len;
extern const unsigned char hfd_openapi_json[];
extern const size_t hfd_openapi_json_len;

#endif
