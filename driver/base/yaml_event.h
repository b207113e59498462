/* What both readers of YAML share: the settings file's and the one for documents. */
#ifndef HFD_BASE_YAML_EVENT_H
#define HFD_BASE_YAML_EVENT_H

#include <yaml.h>

/** Why an event is not read: anchors, aliases, tags. @return NULL, or static words */
const char *hfd_yaml_refusal(const yaml_event_t *event);

#endif
