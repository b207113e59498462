/* See check_report.h. */
#include "handlers/client/check_report.h"

#define API "Humanitec Driver API 0.9.3, "

static const char *const verdicts[] = {"skip", "pass", "fail"};

struct hfd_check_counts hfd_check_count(const struct hfd_check_summary *s)
{
    struct hfd_check_counts n = {0, 0, 0};

    for (size_t i = 0; i < HFD_CHECK_RULE_COUNT; i++) {
        const enum hfd_check_verdict v = s->report->of[i].verdict;

        if (!s->choice->of[i])
            continue;
        n.passed += v == HFD_CHECK_PASS;
        n.skipped += v == HFD_CHECK_SKIP;
        n.failed += v == HFD_CHECK_FAIL && hfd_check_rules[i].level != HFD_CHECK_MAY;
    }
    return n;
}

/* ---- a table ---- */

static void write_row(const struct hfd_check_rule_text *rule, const struct hfd_check_result *r,
                      struct hfd_buf *b)
{
    static const char *const words[] = {"skip", "pass", "FAIL"};

    hfd_buf_addf(b, "%s  %s  %-6s  %s\n", words[r->verdict], rule->id,
                 hfd_check_level_name(rule->level), rule->text);
    if (r->verdict == HFD_CHECK_FAIL)
        hfd_buf_addf(b, "      %s\n      (" API "%s)\n", r->seen, rule->source);
    else if (r->verdict == HFD_CHECK_SKIP)
        hfd_buf_addf(b, "      %s\n", r->seen);
}

void hfd_check_write_table(const struct hfd_check_summary *s, struct hfd_buf *b)
{
    const struct hfd_check_counts n = hfd_check_count(s);

    for (size_t i = 0; i < HFD_CHECK_RULE_COUNT; i++)
        if (s->choice->of[i])
            write_row(&hfd_check_rules[i], &s->report->of[i], b);
    for (size_t i = 0; i < s->report->left_count; i++)
        hfd_buf_addf(b, "left: %s could not be deleted\n", s->report->left[i]);
    hfd_buf_addf(b, "%zu passed, %zu failed, %zu skipped\n", n.passed, n.failed, n.skipped);
}

/* ---- JSON ---- */

static void add_member(struct hfd_buf *b, const char *key, const char *value)
{
    hfd_buf_addf(b, ", \"%s\": ", key);
    hfd_buf_json_str(b, hfd_slice_of(value));
}

void hfd_check_write_json(const struct hfd_check_summary *s, struct hfd_buf *b)
{
    const struct hfd_check_counts n = hfd_check_count(s);
    bool first = true;

    hfd_buf_member_str(b, "{\"target\": ", hfd_slice_of(s->target));
    hfd_buf_lit(b, ", \"rules\": [");
    for (size_t i = 0; i < HFD_CHECK_RULE_COUNT; i++) {
        const struct hfd_check_rule_text *rule = &hfd_check_rules[i];
        char source[120];

        if (!s->choice->of[i])
            continue;
        (void)snprintf(source, sizeof(source), API "%s", rule->source);
        hfd_buf_addf(b, "%s\n  {\"id\": \"%s\"", first ? "" : ",", rule->id);
        add_member(b, "level", hfd_check_level_name(rule->level));
        add_member(b, "result", verdicts[s->report->of[i].verdict]);
        add_member(b, "text", rule->text);
        add_member(b, "source", source);
        add_member(b, "seen", s->report->of[i].seen);
        hfd_buf_addc(b, '}');
        first = false;
    }
    hfd_buf_addf(b, "\n], \"passed\": %zu, \"failed\": %zu, \"skipped\": %zu, \"left\": [",
                 n.passed, n.failed, n.skipped);
    for (size_t i = 0; i < s->report->left_count; i++) {
        hfd_buf_add(b, i > 0 ? HFD_SLICE(", ") : HFD_SLICE(""));
        hfd_buf_json_str(b, hfd_slice_of(s->report->left[i]));
    }
    hfd_buf_lit(b, "]}\n");
}

/* ---- JUnit ---- */

/* Adds text for XML. Bytes that XML cannot have become "?". */
static void add_xml(struct hfd_buf *b, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '&')
            hfd_buf_lit(b, "&amp;");
        else if (*p == '<')
            hfd_buf_lit(b, "&lt;");
        else if (*p == '>')
            hfd_buf_lit(b, "&gt;");
        else if (*p == '"')
            hfd_buf_lit(b, "&quot;");
        else
            hfd_buf_addc(b, *p >= ' ' && *p <= '~' ? *p : '?');
    }
}

static void write_case(const struct hfd_check_rule_text *rule, const struct hfd_check_result *r,
                       struct hfd_buf *b)
{
    hfd_buf_addf(b, "  <testcase classname=\"%s\" name=\"%s ", hfd_check_level_name(rule->level),
                 rule->id);
    add_xml(b, rule->text);
    hfd_buf_lit(b, "\">");
    if (r->verdict == HFD_CHECK_FAIL && rule->level != HFD_CHECK_MAY) {
        hfd_buf_lit(b, "<failure message=\"");
        add_xml(b, r->seen);
        hfd_buf_lit(b, "\"/>");
    } else if (r->verdict != HFD_CHECK_PASS) {
        hfd_buf_lit(b, "<skipped message=\"");
        add_xml(b, r->seen);
        hfd_buf_lit(b, "\"/>");
    }
    hfd_buf_lit(b, "</testcase>\n");
}

void hfd_check_write_junit(const struct hfd_check_summary *s, struct hfd_buf *b)
{
    const struct hfd_check_counts n = hfd_check_count(s);
    size_t all = 0;

    for (size_t i = 0; i < HFD_CHECK_RULE_COUNT; i++)
        all += s->choice->of[i];
    hfd_buf_addf(b,
                 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"Humanitec Driver "
                 "API 0.9.3\" tests=\"%zu\" failures=\"%zu\" skipped=\"%zu\">\n",
                 all, n.failed, all - n.passed - n.failed);
    for (size_t i = 0; i < HFD_CHECK_RULE_COUNT; i++)
        if (s->choice->of[i])
            write_case(&hfd_check_rules[i], &s->report->of[i], b);
    hfd_buf_lit(b, "</testsuite>\n");
}
