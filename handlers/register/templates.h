/* The files of this folder that the program carries. The build makes their source. */
#ifndef HFD_REGISTER_TEMPLATES_H
#define HFD_REGISTER_TEMPLATES_H

#include "driver/base/slice.h"

/* A document of each form, which cmd_register.c fills. */
extern const hfd_slice hfd_register_humctl_template;
extern const hfd_slice hfd_register_terraform_template;
extern const hfd_slice hfd_register_stellwerk_template;
/* The schemas of what clusters and nodepools put out: {"cluster": {}, "nodepool": {}}. */
extern const hfd_slice hfd_register_outputs_json;

#endif
