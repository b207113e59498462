/*
 * Checks of `serve`, `config check` and `doctor` before anything is created: files that settings
 * name, and suspicious settings. Reads only. Thread: main.
 */
#ifndef HFD_CLI_LOOK_H
#define HFD_CLI_LOOK_H

#include "driver/backend/remote/http.h"
#include "handlers/auth/guard.h"
#include "handlers/cli/cli.h"
#include "schemas/documents.h"

/**
 * Receives a suspicious setting.
 * @param key   the setting
 * @param text  the reason
 */
typedef void hfd_look_fn(void *ctx, const char *key, const char *text);

#define HFD_LOOK_OPEN_TEXT_MAX 96
/**
 * Writes the warning for a secret file with such a mode.
 * @param out  of HFD_LOOK_OPEN_TEXT_MAX bytes
 */
static inline void hfd_look_open_text(unsigned mode, char *out)
{
    (void)snprintf(out, HFD_LOOK_OPEN_TEXT_MAX,
                   "mode %04o lets every user of this machine read a secret: chmod o-rw", mode);
}

/** Returns true if `backend` names a remote. */
static inline bool hfd_look_is_remote(const struct hfd_settings *s)
{
    return !hfd_slice_is(s->backend, "embedded");
}

/** Returns how to reach the remote. Borrows from the settings. */
struct hfd_remote_http_config hfd_look_http(const struct hfd_settings *s);

/**
 * Checks that the files of remote.* exist and match, and those of settings without an effect exist.
 * @param on_open  receives secret files that every user may read; may be NULL
 * @return HFD_OK, HFD_INVALID or HFD_IO (with place, key, file and reason), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_look_files(const struct hfd_settings *s, hfd_remote_open_file_fn *on_open,
                                     void *ctx, struct hfd_err *err);

/**
 * Checks that the files of tls.* and those of passwords can be used.
 * @param on_open  receives those with a secret that every user may read
 * @return as hfd_look_files
 */
HFD_MUST_CHECK hfd_rc hfd_look_secrets(const struct hfd_settings *s,
                                       hfd_remote_open_file_fn *on_open, void *ctx,
                                       struct hfd_err *err);

/**
 * Loads the schemas of fleet.spec_schema, if it is set.
 * @param out  as hfd_spec_schemas_load gives
 * @return as hfd_look_files
 */
HFD_MUST_CHECK hfd_rc hfd_look_spec_schemas(const struct hfd_settings *s,
                                            struct hfd_spec_schemas *out, struct hfd_err *err);

/**
 * Reads what callers log in with, and checks that a listener off loopback asks for it.
 * @param out  gives; free with hfd_guard_free
 * @return HFD_OK, HFD_INVALID (the message has the ways out), HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_look_guard(struct hfd_settings *s, struct hfd_guard **out,
                                     struct hfd_err *err);

/** Calls on_odd for each suspicious setting. */
void hfd_look_settings(const struct hfd_settings *s, hfd_look_fn *on_odd, void *ctx);

#endif
