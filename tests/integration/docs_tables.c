/*
 * Prints a table of the manual that stands in C: docs_tables NAME. `./dev docs` puts the tables
 * into the pages, and test_docs.py compares.
 */
#include <stdio.h>
#include <string.h>

#include "driver/base/metrics.h"
#include "driver/core/life.h"
#include "driver/health/document.h"
#include "handlers/auth/decide.h"
#include "handlers/cli/cli.h"
#include "handlers/http/route.h"
#include "handlers/http/routes.h"
#include "handlers/settings/settings_show.h"

/* ---- the life cycle ---- */

static void print_states(const char *corner)
{
    printf("| %s |", corner);
    for (int s = 0; s < HFD_STATE_COUNT; s++)
        printf(" %s |", hfd_state_name((enum hfd_state)s));
    printf("\n|---|");
    for (int s = 0; s < HFD_STATE_COUNT; s++)
        printf("---|");
    printf("\n");
}

static const char *get_text(enum hfd_answer answer)
{
    static const char *const texts[] = {
        [HFD_ANSWER_OUTPUT] = "200", [HFD_ANSWER_HINT] = "202",   [HFD_ANSWER_BUSY] = "409",
        [HFD_ANSWER_FAILED] = "400", [HFD_ANSWER_ABSENT] = "404",
    };

    return texts[answer];
}

static const char *put_text(enum hfd_state state, bool same)
{
    switch (hfd_life_put(state, same)) {
    case HFD_PUT_CREATE:
        return "202: creation";
    case HFD_PUT_CONFLICT:
        return "409";
    case HFD_PUT_UPDATE:
        return state == HFD_STATE_UPDATING ? "202: new target" : "202: update";
    case HFD_PUT_RETRY:
        return "202: new attempt";
    case HFD_PUT_ANSWER:
        break;
    }
    return get_text(hfd_life_get(state, false));
}

/* DELETE has no table in life.c; test_docs.py compares this row with what the program does. */
static const char *delete_text(enum hfd_state state)
{
    if (state == HFD_STATE_ABSENT)
        return "204";
    return state == HFD_STATE_DELETING ? "202" : "202: deletion";
}

static void print_decisions(void)
{
    print_states("request");
    printf("| GET |");
    for (int s = 0; s < HFD_STATE_COUNT; s++)
        printf(" %s |", get_text(hfd_life_get((enum hfd_state)s, false)));
    printf("\n| GET, deadline passed |");
    for (int s = 0; s < HFD_STATE_COUNT; s++)
        printf(" %s |", get_text(hfd_life_get((enum hfd_state)s, true)));
    printf("\n| PUT, same input |");
    for (int s = 0; s < HFD_STATE_COUNT; s++)
        printf(" %s%s |", put_text((enum hfd_state)s, true),
               s == HFD_STATE_READY ? "; 202: update, if it drifted" : "");
    printf("\n| PUT, other input |");
    for (int s = 0; s < HFD_STATE_COUNT; s++)
        printf(" %s |", put_text((enum hfd_state)s, false));
    printf("\n| DELETE |");
    for (int s = 0; s < HFD_STATE_COUNT; s++)
        printf(" %s |", delete_text((enum hfd_state)s));
    printf("\n");
}

static void print_arrows(void)
{
    printf("| from | to |\n|---|---|\n");
    for (int from = 0; from < HFD_STATE_COUNT; from++) {
        const char *comma = "";

        printf("| %s | ", hfd_state_name((enum hfd_state)from));
        for (int to = 0; to < HFD_STATE_COUNT; to++) {
            if (!hfd_state_may((enum hfd_state)from, (enum hfd_state)to))
                continue;
            printf("%s%s", comma, hfd_state_name((enum hfd_state)to));
            comma = ", ";
        }
        printf(" |\n");
    }
}

/* ---- metrics ---- */

static void print_metrics(void)
{
    struct hfd_buf b;

    hfd_buf_init(&b, 1 << 20);
    hfd_metrics_table(&b);
    printf("%.*s", HFD_SLICE_FMT(hfd_buf_slice(&b)));
    hfd_buf_fini(&b);
}

/* ---- exit statuses ---- */

static void print_exits(void)
{
#define ROW_(name, status, text) {status, text},
    static const struct {
        int status;
        const char *text;
    } rows[] = {HFD_EXIT_LIST(ROW_)};
#undef ROW_

    printf("| status | meaning |\n|---|---|\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        printf("| %d | %s |\n", rows[i].status, rows[i].text);
}

/* ---- PacemakerCluster ---- */

static void print_pacemaker_rules(void)
{
    struct hfd_health_rule_text rule;

    printf("| rule | field | text |\n|---|---|---|\n");
    for (size_t i = 0; hfd_health_rule_at(i, &rule); i++)
        printf("| %s | `%s%s%s` | %s |\n", rule.number, rule.place,
               rule.place[0] != '\0' ? "." : "", rule.field, rule.text);
}

/* ---- scopes ---- */

#define ROW_(name, text, may) {text, may},
static const struct {
    const char *scope, *may;
} scopes[] = {HFD_SCOPE_LIST(ROW_)};
#undef ROW_

static void print_scopes(void)
{
    printf("| scope | may |\n|---|---|\n");
    for (size_t i = 0; i < HFD_SCOPE_COUNT; i++)
        printf("| %s | %s |\n", scopes[i].scope, scopes[i].may);
}

static void print_need(enum hfd_need need)
{
    const char *comma = "";

    if (need == HFD_NEED_OPEN)
        printf("open to all");
    for (unsigned i = 0; need != HFD_NEED_OPEN && i < HFD_SCOPE_COUNT; i++) {
        if (!hfd_need_is_met(need, 1u << i))
            continue;
        printf("%s%s", comma, scopes[i].scope);
        comma = ", ";
    }
}

/* Methods of one path with the same need share a row. */
static void print_routes(void)
{
    printf("| listener | path | scopes | methods |\n|---|---|---|---|");
    for (size_t i = 0; i < hfd_route_count; i++) {
        const struct hfd_route *r = &hfd_routes[i], *last = i > 0 ? r - 1 : NULL;
        const char *method = hfd_method_name(r->method);

        if (last != NULL && last->listener == r->listener && last->need == r->need &&
            strcmp(last->pattern, r->pattern) == 0) {
            printf(", %s", method);
            continue;
        }
        printf("%s\n| %s | `%s` | ", last != NULL ? " |" : "",
               r->listener == HFD_LISTENER_OPS ? "ops" : "main", r->pattern);
        print_need(r->need);
        printf(" | %s", method);
    }
    printf(" |\n");
}

/* ---- files that settings name ---- */

static void print_files(void)
{
    struct hfd_buf b;

    hfd_buf_init(&b, 65536);
    hfd_settings_files(&b);
    printf("%.*s", (int)b.len, b.p);
    hfd_buf_fini(&b);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } tables[] = {{"decisions", print_decisions},
                  {"arrows", print_arrows},
                  {"metrics", print_metrics},
                  {"exits", print_exits},
                  {"pacemaker-rules", print_pacemaker_rules},
                  {"scopes", print_scopes},
                  {"routes", print_routes},
                  {"files", print_files}};

    for (size_t i = 0; argc == 2 && i < sizeof(tables) / sizeof(tables[0]); i++) {
        if (strcmp(argv[1], tables[i].name) == 0) {
            tables[i].print();
            return fflush(stdout) == 0 ? 0 : 1;
        }
    }
    (void)fprintf(stderr, "usage: docs_tables decisions|arrows|metrics|exits|pacemaker-rules|"
                          "scopes|routes|files\n");
    return 2;
}
