/*
 * The resource types and modules for Stellwerk's Platform Orchestrator, which runs OpenTofu. Pure.
 * Thread: any.
 */
#ifndef HFD_REGISTER_STELLWERK_H
#define HFD_REGISTER_STELLWERK_H

#include "handlers/register/plan.h"

/** Adds resources of the provider stellwerk-labs/platform-orchestrator. @param c  checked */
void hfd_register_stellwerk(struct hfd_buf *b, const struct hfd_register_config *c);

#endif
