/* See decide.h. */
#include "handlers/auth/decide.h"

#include "driver/base/check.h"

#define FAULT_ROW_(name, label, text) [HFD_AUTH_##name] = {(label), (text)},
static const struct {
    const char *label, *text;
} faults[HFD_AUTH_FAULT_COUNT] = {HFD_AUTH_FAULT_LIST(FAULT_ROW_)};
#undef FAULT_ROW_

const char *hfd_auth_fault_label(enum hfd_auth_fault fault)
{
    HFD_ASSERT((unsigned)fault < HFD_AUTH_FAULT_COUNT);
    return faults[fault].label;
}

enum hfd_access hfd_auth_decide(bool on, enum hfd_need need, const struct hfd_caller *caller,
                                char text[HFD_AUTH_TEXT_MAX])
{
    text[0] = '\0';
    HFD_ASSERT(need != HFD_NEED_UNSET);
    if (!on || need == HFD_NEED_OPEN)
        return HFD_ACCESS_ALLOWED;
    if (caller->fault != HFD_AUTH_NONE) {
        (void)snprintf(text, HFD_AUTH_TEXT_MAX, "%s", faults[caller->fault].text);
        return HFD_ACCESS_UNKNOWN;
    }
    if (hfd_need_is_met(need, caller->scopes))
        return HFD_ACCESS_ALLOWED;
    (void)snprintf(text, HFD_AUTH_TEXT_MAX, "the caller lacks the scope %s", hfd_need_text(need));
    return HFD_ACCESS_FORBIDDEN;
}
