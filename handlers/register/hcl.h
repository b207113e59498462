/*
 * The plan as files for OpenTofu and Terraform, and as a script for humctl. Pure. Thread: any.
 */
#ifndef HFD_REGISTER_HCL_H
#define HFD_REGISTER_HCL_H

#include "handlers/register/plan.h"

/** Adds resources of the provider humanitec/humanitec. @param plan  of hfd_register_plan */
void hfd_register_terraform(struct hfd_buf *b, const json_t *plan);
/** Adds a shell script that registers by `humctl api post`. */
void hfd_register_humctl(struct hfd_buf *b, const json_t *plan);

/* ---- for the writers ---- */

/** Adds a text in quotes; "${" and "%{" stay as they are when it is read. */
void hfd_hcl_text(struct hfd_buf *b, const char *text);
/** Adds `  name = jsonencode(...)` and a newline. */
void hfd_hcl_json(struct hfd_buf *b, const char *name, const json_t *doc);
/** Adds `  name = "text"` and a newline; nothing for NULL. */
void hfd_hcl_line(struct hfd_buf *b, const char *name, const char *text);

#endif
