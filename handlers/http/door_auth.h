/*
 * Refuses a caller before its body is read: the head has its credentials. A small request that
 * arrives in one piece is checked in access.c alone. Thread: loop.
 */
#ifndef HFD_HTTP_DOOR_AUTH_H
#define HFD_HTTP_DOOR_AUTH_H

#include "handlers/http/door_int.h"

/**
 * Checks the credentials of a request whose body is still under way, or is too large.
 * @param text  gets the sentence for a refused caller
 * @param fault gets the refusal, with text
 * @return HFD_HEAD_OK: they are valid, or none are needed; else HFD_HEAD_BAD
 */
enum hfd_head_verdict hfd_conn_check_caller(struct hfd_conn *conn, char text[HFD_AUTH_TEXT_MAX],
                                            struct hfd_head_fault *fault);

#endif
