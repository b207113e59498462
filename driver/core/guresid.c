/* The id that the orchestrator gives. */
#include "driver/core/guresid.h"

static bool is_guresid(hfd_slice text)
{
    if (text.len == 0 || text.len > HFD_GURESID_MAX)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!hfd_is_alnum(text.p[i]) && text.p[i] != '.' && text.p[i] != '_' && text.p[i] != '-')
            return false;
    return hfd_is_alnum(text.p[0]) && hfd_is_alnum(text.p[text.len - 1]);
}

hfd_rc hfd_guresid_check(hfd_slice text, struct hfd_err *err)
{
    if (is_guresid(text))
        return HFD_OK;
    return hfd_fail_field(err, HFD_INVALID, "GUResID",
                          "GUResID must be 1 to %d letters, digits, '-', '_' or '.', beginning and "
                          "ending with a letter or digit",
                          HFD_GURESID_MAX);
}
