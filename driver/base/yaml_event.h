/* The rule that both readers of YAML share: the settings file's (handlers/settings) and yamlx.c. */
#ifndef HFD_BASE_YAML_EVENT_H
#define HFD_BASE_YAML_EVENT_H

#include <yaml.h>

/**
 * Why an event is refused: anchors, aliases, tags.
 * @return NULL, or a static text
 */
const char *hfd_yaml_refusal(const yaml_event_t *event);

#endif
