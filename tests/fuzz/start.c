/* Prepares the process before the first input of any target. */
#include "tests/fuzz/fuzz.h"

#include "driver/base/base.h"
#include "driver/base/check.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    HFD_ASSERT(hfd_base_init(NULL) == HFD_OK);
    return 0;
}
