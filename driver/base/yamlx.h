/*
 * YAML documents as JSON: what OpenAPI documents are written in. The settings file has a reader of
 * its own, which knows their keys. Pure. Thread: any.
 */
#ifndef HFD_BASE_YAMLX_H
#define HFD_BASE_YAMLX_H

#include <jansson.h>

#include "driver/base/slice.h"

#define HFD_YAML_DEPTH_MAX 64
#define HFD_YAML_NODES_MAX 200000

/**
 * Reads one document. A plain scalar that JSON takes for a number, true, false or null is that
 * (null also as ~ or nothing); every other scalar is a string, and so is every key. JSON is YAML,
 * and read as well. Refused: anchors, aliases, tags, a key given twice, a second document, and more
 * depth or values than the limits.
 * @param name  of the source, for messages: "spec.yaml:3: ..."
 * @param out   gives; null for an empty text
 * @return HFD_OK, HFD_INVALID (the message names source and line), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_yaml_parse(hfd_slice text, const char *name, json_t **out,
                                     struct hfd_err *err);

#endif
