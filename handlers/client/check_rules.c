/* See check_rules.h. */
#include "handlers/client/check_rules.h"

#define ROW_(name, id, level, text, source) {id, HFD_CHECK_##level, text, source},
const struct hfd_check_rule_text hfd_check_rules[HFD_CHECK_RULE_COUNT] = {
    HFD_CHECK_RULE_LIST(ROW_)};
#undef ROW_

const char *hfd_check_level_name(enum hfd_check_level level)
{
    static const char *const names[] = {"must", "should", "may"};

    return names[level];
}

static hfd_rc choose_by_id(hfd_slice id, struct hfd_check_choice *out, struct hfd_err *err)
{
    for (size_t i = 0; i < HFD_CHECK_RULE_COUNT; i++)
        if (hfd_slice_is(id, hfd_check_rules[i].id)) {
            out->of[i] = true;
            return HFD_OK;
        }
    return hfd_fail(err, HFD_INVALID, "--only: there is no rule '%.*s': expected ids as A-01",
                    (int)(id.len < 20 ? id.len : 20), id.p);
}

static hfd_rc choose_by_ids(const char *only, struct hfd_check_choice *out, struct hfd_err *err)
{
    hfd_slice left = hfd_slice_of(only);

    while (left.len > 0) {
        const char *comma = memchr(left.p, ',', left.len);
        const size_t len = comma != NULL ? (size_t)(comma - left.p) : left.len;
        const hfd_rc rc = choose_by_id(hfd_slice_trim((hfd_slice){left.p, len}), out, err);

        if (rc != HFD_OK)
            return rc;
        left.p += len + (comma != NULL);
        left.len -= len + (comma != NULL);
    }
    return HFD_OK;
}

hfd_rc hfd_check_choose(const char *only, const char *level, struct hfd_check_choice *out,
                        struct hfd_err *err)
{
    enum hfd_check_level weakest = HFD_CHECK_MAY;
    bool any = false;
    hfd_rc rc = HFD_OK;

    *out = (struct hfd_check_choice){0};
    if (level != NULL && strcmp(level, "must") == 0)
        weakest = HFD_CHECK_MUST;
    else if (level != NULL && strcmp(level, "should") == 0)
        weakest = HFD_CHECK_SHOULD;
    else if (level != NULL && strcmp(level, "may") != 0)
        return hfd_fail(err, HFD_INVALID, "--level: expected must, should or may");
    if (only != NULL)
        rc = choose_by_ids(only, out, err);
    for (size_t i = 0; i < HFD_CHECK_RULE_COUNT; i++) {
        out->of[i] = (only == NULL || out->of[i]) && hfd_check_rules[i].level <= weakest;
        any = any || out->of[i];
    }
    if (rc == HFD_OK && !any)
        return hfd_fail(err, HFD_INVALID, "--only and --level leave no rule to check");
    return rc;
}
