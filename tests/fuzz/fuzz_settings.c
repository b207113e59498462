/* Settings files: what is accepted is shown as a file that gives the same settings. */
#include "tests/fuzz/fuzz.h"

#include "driver/base/check.h"
#include "handlers/settings/settings.h"
#include "handlers/settings/settings_show.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/** Loads a file of this content. @return NULL when it is refused */
static struct hfd_settings *load(hfd_slice content)
{
    static const char *const no_env[] = {NULL};
    char path[64];
    struct hfd_settings *settings = NULL;
    struct hfd_err err;
    int fd = memfd_create("settings", MFD_CLOEXEC);

    HFD_ASSERT(fd >= 0);
    HFD_ASSERT(write(fd, content.p, content.len) == (ssize_t)content.len);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const char *const flags[] = {"--config", path};
    hfd_rc rc = hfd_settings_load(2, flags, no_env, &settings, &err);
    HFD_ASSERT((rc == HFD_OK) == (settings != NULL));
    close(fd);
    return settings;
}

static hfd_slice shown(struct hfd_buf *b, bool origins, const struct hfd_settings *settings)
{
    struct hfd_err err;
    hfd_slice out;

    hfd_buf_init(b, FUZZ_ARENA_BYTES);
    hfd_settings_show(settings, &(struct hfd_settings_form){.origins = origins}, b);
    HFD_ASSERT(hfd_buf_finish(b, &out, &err) == HFD_OK);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hfd_settings *first = load((hfd_slice){(const char *)data, size});
    struct hfd_buf plain, commented, again;

    if (first == NULL)
        return 0;
    hfd_slice text = shown(&plain, false, first);
    struct hfd_settings *second = load(shown(&commented, true, first));
    HFD_ASSERT(second != NULL);
    HFD_ASSERT(hfd_slice_eq(text, shown(&again, false, second)));
    hfd_settings_free(first);
    hfd_settings_free(second);
    hfd_buf_fini(&plain);
    hfd_buf_fini(&commented);
    hfd_buf_fini(&again);
    return 0;
}
