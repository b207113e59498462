/*
 * Runs a fuzz target once over every file of the folders given, without a fuzzer. No file at all is
 * a failure: a corpus that went missing would pass for ever.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    long size = -1;
    bool ok = false;

    if (file == NULL)
        goto out;
    if (fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) != 0)
        goto out;
    data = malloc(size > 0 ? (size_t)size
                           : 1); /* of the exact size, so that a read behind the end is seen */
    if (data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size)
        goto out;
    LLVMFuzzerTestOneInput(data, (size_t)size);
    ok = true;
out:
    if (!ok)
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
    free(data);
    if (file != NULL)
        fclose(file);
    return ok;
}

/** @return the number of files, or -1 */
static int replay_folder(const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    int files = 0;

    for (int i = 0; i < count; i++) {
        char path[4096];
        bool wanted = entries[i]->d_name[0] != '.' && files >= 0;

        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (wanted)
            files = replay_file(path) ? files + 1 : -1;
        free(entries[i]);
    }
    free(entries);
    return count < 0 ? -1 : files;
}

int main(int argc, char **argv)
{
    int total = 0;

    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        int files = replay_folder(argv[i]);

        if (files <= 0) {
            fprintf(stderr, "%s: nothing to replay\n", argv[i]);
            return 1;
        }
        total += files;
    }
    printf("%d inputs\n", total);
    return total > 0 ? 0 : 1;
}
