/* The URL of a RabbitMQ broker: amqps://USER@HOST:PORT/VHOST. Pure. Thread: any. */
#ifndef HFD_BASE_AMQPURL_H
#define HFD_BASE_AMQPURL_H

#include "driver/base/slice.h"

#define HFD_AMQP_NAME_MAX 256 /* of a text of AMQP, with its NUL */

/** A broker. Texts end with a NUL; escapes are resolved. */
struct hfd_amqp_url {
    bool tls;
    char host[HFD_AMQP_NAME_MAX]; /* of IPv6 with brackets */
    int port;
    char user[HFD_AMQP_NAME_MAX];  /* guest if the URL names none */
    char vhost[HFD_AMQP_NAME_MAX]; /* "/" if the URL names none */
};

/**
 * Parses a URL. Characters that have a meaning in it must be escaped as %XX. Refuses a password.
 * @return HFD_OK, or HFD_INVALID ("expected ..."; the text is not quoted, as it may hold a
 * password)
 */
HFD_MUST_CHECK hfd_rc hfd_amqp_url_parse(hfd_slice text, struct hfd_amqp_url *out,
                                         struct hfd_err *err);

#endif
