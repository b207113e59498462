/*
 * Reads a YAML document into JSON, for OpenAPI documents. The settings file has its own reader,
 * which knows its keys. Pure. Thread: any.
 */
#ifndef HFD_BASE_YAMLX_H
#define HFD_BASE_YAMLX_H

#include <jansson.h>

#include "driver/base/slice.h"

#define HFD_YAML_DEPTH_MAX 64
#define HFD_YAML_NODES_MAX 200000

/**
 * Reads one document; JSON is YAML and is read as well. A plain scalar that JSON takes for a
 * number, true, false or null has that value; ~ and an empty scalar are null. Every other scalar is
 * a string, and so is every key. Refused: anchors, aliases, tags, duplicate keys, a second
 * document, and more depth or values than the limits.
 * @param name of the source, for messages: "spec.yaml:3: ..."
 * @param out gives; null for an empty text
 * @return HFD_OK, HFD_INVALID (the message names source and line), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_yaml_parse(hfd_slice text, const char *name, json_t **out,
                                     struct hfd_err *err);

#endif
