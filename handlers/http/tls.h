/*
 * The certificates of the listeners: one OpenSSL context for each, loaded from the files of tls.*
 * and again when these change. A connection keeps the context that it began with. OpenSSL does the
 * cryptography; the library reads and writes (door.c). Thread: main, unless said.
 */
#ifndef HFD_HTTP_TLS_H
#define HFD_HTTP_TLS_H

#include "handlers/http/http.h"

#include <openssl/ssl.h>

struct hfd_tls;

/**
 * Loads the files of tls.*.
 * @param out  gives; NULL without tls.cert_file; free with hfd_tls_free
 * @return HFD_OK, HFD_INVALID or HFD_IO (the message names setting, file and reason), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_tls_open(const struct hfd_settings *settings, struct hfd_tls **out,
                                   struct hfd_err *err);
/** Frees it; accepts NULL. Contexts in use live on. */
void hfd_tls_free(struct hfd_tls *tls);

/**
 * Returns the context for a new connection.
 * @return gives; SSL_CTX_free
 * Thread: any.
 */
SSL_CTX *hfd_tls_context(struct hfd_tls *tls, enum hfd_listener which);

/**
 * Loads the files again if they have changed, and sets the metric of the expiry. Logs a new
 * certificate, files that cannot be used, and an expiry that is near. Unusable files change
 * nothing. To be called every few seconds.
 * @param forced  loads in any case (SIGHUP)
 */
void hfd_tls_watch(struct hfd_tls *tls, int64_t now_us, bool forced);

/** "sha256//" and base64: the form of libcurl's CURLOPT_PINNEDPUBLICKEY. */
#define HFD_TLS_PIN_MAX 64
/**
 * Computes the pin of the public key in tls.cert_file, for clients on the same machine.
 * @param out  of HFD_TLS_PIN_MAX bytes
 * @return HFD_OK, HFD_IO
 */
HFD_MUST_CHECK hfd_rc hfd_tls_pin(const struct hfd_settings *settings, char *out,
                                  struct hfd_err *err);

/**
 * Takes the alert that a failed handshake of this thread has written, because the library drops it.
 * @return its length; 0 = none
 * Thread: loop, in the callback of the handshake.
 */
size_t hfd_tls_take_alert(unsigned char *out, size_t cap);

#endif
