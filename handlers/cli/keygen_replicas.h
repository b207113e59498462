/* The second step of a rotation with replicas: which of them lack the new key. Thread: main. */
#ifndef HFD_CLI_KEYGEN_REPLICAS_H
#define HFD_CLI_KEYGEN_REPLICAS_H

#include "handlers/cli/cli.h"

/**
 * Checks that the key ring of each live replica has a key. Prints the names of those that lack it.
 * @param id  of the key, in hex
 * @return OK, FOUND (some lack it), DATA (the database cannot be read), INTERNAL
 */
enum hfd_exit hfd_keygen_ask_replicas(const struct hfd_settings *s, const char *id);

#endif
