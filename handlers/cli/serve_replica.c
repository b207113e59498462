/* See serve_replica.h. */
#include "handlers/cli/serve_replica.h"

#include "driver/base/log.h"
#include "driver/core/keyring.h"
#include "driver/fleet/changes.h"
#include "store/migrate.h"

#include <stdio.h>
#include <unistd.h>

#define KEY_IDS_MAX 1024
#define NAME_MAX_BYTES 256

/* The ids of a ring, with commas between them. */
static void name_keys(const struct hfd_keyring *ring, char out[KEY_IDS_MAX])
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < hfd_keyring_count(ring); i++) {
        struct hfd_key_view key;

        hfd_keyring_view(ring, i, &key);
        if (len + sizeof(key.name) + 1 > KEY_IDS_MAX)
            return;
        len += (size_t)snprintf(out + len, KEY_IDS_MAX - len, "%s%s", i > 0 ? "," : "", key.name);
    }
}

enum hfd_exit hfd_serve_replica_open(const struct hfd_settings *settings, struct hfd_driver *driver,
                                     struct hfd_store *store, struct hfd_keeper **out,
                                     struct hfd_err *err)
{
    char name[NAME_MAX_BYTES] = "";
    char key_ids[KEY_IDS_MAX];
    const struct hfd_keeper_config config = {
        .store = store,
        .clock = &hfd_clock_boot,
        .rng = &hfd_rng_system,
        .name = name,
        .schema = (int64_t)hfd_migrations_count,
        .key_ids = key_ids,
        .settings = {driver->fleet.settings_fingerprint, hfd_driver_rules_fingerprint(driver)},
    };
    hfd_rc rc;

    *out = NULL;
    if (!hfd_settings_has_postgres(settings) || store == NULL)
        return HFD_EXIT_OK;
    if (gethostname(name, sizeof(name) - 1) != 0)
        name[0] = '\0'; /* it may have written some */
    name_keys(driver->ring, key_ids);
    rc = hfd_keeper_start(&config, out, err);
    if (rc != HFD_OK)
        return rc == HFD_NOMEM ? HFD_EXIT_INTERNAL : HFD_EXIT_DATA;
    driver->fleet.settings_fingerprint =
        hfd_fleet_fingerprint_of_epoch(driver->fleet.settings_fingerprint, hfd_keeper_epoch(*out));
    return HFD_EXIT_OK;
}

void hfd_serve_replica_keys(struct hfd_keeper *keeper, const struct hfd_keyring *ring)
{
    char key_ids[KEY_IDS_MAX];

    if (keeper == NULL)
        return;
    name_keys(ring, key_ids);
    hfd_keeper_set_keys(keeper, key_ids);
}

enum hfd_exit hfd_serve_replica_broken(struct hfd_keeper *keeper)
{
    struct hfd_keeper_state state = {.shut_out = false};

    if (keeper != NULL)
        hfd_keeper_state(keeper, &state);
    if (state.shut_out) {
        HFD_LOG(HFD_LOG_ERROR, "stopping: the database needs a newer version of this program");
        return HFD_EXIT_DATA;
    }
    HFD_LOG(HFD_LOG_ERROR, "stopping: the store failed; a restart recovers what was acknowledged");
    return HFD_EXIT_INTERNAL;
}
