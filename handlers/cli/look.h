/*
 * What `serve`, `config check` and `doctor` look at before anything is made: the files that
 * settings name, and what is allowed but can hardly be meant. Reads only. Thread: main.
 */
#ifndef HFD_CLI_LOOK_H
#define HFD_CLI_LOOK_H

#include "driver/backend/remote/http.h"
#include "handlers/cli/cli.h"
#include "schemas/spec.h"

/**
 * Told of what works and can hardly be meant.
 * @param key  the setting that it is about
 */
typedef void hfd_look_fn(void *ctx, const char *key, const char *text);

#define HFD_LOOK_OPEN_TEXT_MAX 96
/**
 * What is said of a file with a secret and such a mode. @param out  of HFD_LOOK_OPEN_TEXT_MAX
 * bytes
 */
void hfd_look_open_text(unsigned mode, char *out);

/** Whether `backend` names a remote HyperFleet. */
bool hfd_look_is_remote(const struct hfd_settings *s);

/** How the remote HyperFleet of the settings is asked; borrows from them. */
struct hfd_remote_http_config hfd_look_http(const struct hfd_settings *s);

/**
 * The files of a remote HyperFleet must be there and fit together.
 * @param on_open  told of secrets that every user may read; may be NULL
 * @return HFD_OK, HFD_INVALID or HFD_IO (where the setting was given, its key, the file, and why),
 * HFD_NOMEM
 */
HFD_MUST_CHECK hfd_rc hfd_look_files(const struct hfd_settings *s, hfd_remote_open_file_fn *on_open,
                                     void *ctx, struct hfd_err *err);

/**
 * As hfd_look_files: the schemas of fleet.spec_schema, if it names any. @param out  as
 * hfd_spec_schemas_load gives
 */
HFD_MUST_CHECK hfd_rc hfd_look_spec_schemas(const struct hfd_settings *s,
                                            struct hfd_spec_schemas *out, struct hfd_err *err);

/** Settings that are allowed and can hardly be meant. */
void hfd_look_settings(const struct hfd_settings *s, hfd_look_fn *on_odd, void *ctx);

#endif
