/*
 * Finds credentials in a request: the Authorization header, or the secret prefix of the path. Pure.
 * Thread: any.
 */
#ifndef HFD_AUTH_CREDENTIAL_H
#define HFD_AUTH_CREDENTIAL_H

#include "driver/base/slice.h"
#include "handlers/auth/decide.h"

#define HFD_BASIC_MAX_BYTES 512 /* of user name and password together */

/**
 * Reads an Authorization header: "Bearer TOKEN", or "Basic BASE64" with the token as the password.
 * @param value     trimmed; empty = there is no header
 * @param basic     memory for the decoded text; wipe it after use. NULL = Basic is not accepted
 * @param out       the token, in value or in basic; empty unless NONE
 * @return HFD_AUTH_NONE, HFD_AUTH_ABSENT, HFD_AUTH_UNREADABLE
 */
enum hfd_auth_fault hfd_credential_read(hfd_slice value, char basic[HFD_BASIC_MAX_BYTES],
                                        hfd_slice *out);

/**
 * Cuts "/t/TOKEN" off a path, in any spelling that the router takes for it: a doubled slash in
 * front, or an escaped "t".
 * @param path   the path of the request; what follows the prefix, or "/", if there is one
 * @param token  as it stands in the path; p is NULL if there is none
 */
void hfd_credential_cut(hfd_slice *path, hfd_slice *token);

#endif
