/*
 * hyperfleet-driver token: makes, lists and revokes bearer tokens. A new token is printed once,
 * alone on stdout; only its hash is kept. Thread: main.
 */
#include "driver/base/base.h"
#include "driver/base/jsonx.h"
#include "handlers/auth/token.h"
#include "handlers/cli/ask.h"
#include "store/migrate.h"
#include "store/postgres/facts.h"
#include "store/rows_replica.h"
#include "store/sqlite/folder.h"

#include <jansson.h>

#include <errno.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTPUT_MAX ((size_t)4 * 1024 * 1024)
#define SCOPES_MAX 4096
#define CELL_COLUMNS 24
#define REQUEST_TIMEOUT_US (INT64_C(60) * HFD_US_PER_S)
#define LIST_MAX_BYTES ((size_t)64 * 1024 * 1024)

/* The flags of this command; the others are settings. */
struct request {
    hfd_slice name, expires;
    struct hfd_grant grant;         /* borrows from scopes */
    struct hfd_buf scopes;          /* of all flags */
    bool is_new;                    /* create: for a server that has not started yet */
    struct hfd_cli_address address; /* list: of a server elsewhere */
    struct hfd_settings *settings;  /* NULL with an address */
};

static enum hfd_exit exit_of(hfd_rc rc, const struct hfd_err *err)
{
    return hfd_cli_fail(rc == HFD_NOMEM     ? HFD_EXIT_INTERNAL
                        : rc == HFD_INVALID ? HFD_EXIT_USAGE
                                            : HFD_EXIT_DATA,
                        "token", "%s", err->msg);
}

/* ---- flags ---- */

static hfd_rc take_name(void *ctx, const char *value, struct hfd_err *err)
{
    struct request *r = ctx;

    r->name = hfd_slice_of(value);
    return hfd_token_name_check(r->name, err);
}

static hfd_rc take_scope(void *ctx, const char *value, struct hfd_err *err)
{
    struct request *r = ctx;

    if (r->scopes.len > 0)
        hfd_buf_addc(&r->scopes, ',');
    hfd_buf_add(&r->scopes, hfd_slice_of(value));
    return r->scopes.rc == HFD_OK
               ? hfd_grant_parse(hfd_buf_slice(&r->scopes), &r->grant, err)
               : hfd_fail(err, r->scopes.rc, "expected at most %d bytes", SCOPES_MAX);
}

static hfd_rc take_expires(void *ctx, const char *value, struct hfd_err *err)
{
    struct request *r = ctx;
    int64_t us;
    hfd_rc rc;

    r->expires = hfd_slice_of(value);
    rc = hfd_parse_duration_us(r->expires, &us, err);
    return rc == HFD_OK && us == 0 ? hfd_fail(err, HFD_INVALID, "expected a duration above 0") : rc;
}

/* ---- create and revoke ---- */

struct creation {
    const struct request *request;
    char text[HFD_TOKEN_CHARS + 1];
};

static hfd_rc add_token(struct hfd_token_list *list, struct hfd_arena *mem, void *arg,
                        struct hfd_err *err)
{
    const struct creation *c = arg;
    const struct request *r = c->request;
    struct hfd_token *items = hfd_arena_array(mem, list->count + 1, sizeof(*items));
    struct hfd_token *token;
    int64_t us = 0;

    if (items == NULL)
        return hfd_fail_nomem(err, "make a token");
    for (size_t i = 0; i < list->count; i++) {
        if (hfd_slice_eq(list->items[i].name, r->name))
            return hfd_fail(
                err, HFD_CONFLICT,
                "there is a token named %.*s already: revoke it first, or give another name",
                HFD_SLICE_FMT(r->name));
        items[i] = list->items[i];
    }
    if (list->count >= HFD_TOKENS_MAX)
        return hfd_fail(err, HFD_CONFLICT, "there are %d tokens already: revoke some",
                        HFD_TOKENS_MAX);
    token = &items[list->count];
    *token = (struct hfd_token){
        .name = r->name, .grant = r->grant, .created_us = hfd_clock_wall_us(&hfd_clock_system)};
    token->created_us -= token->created_us % HFD_US_PER_S;
    if (r->expires.len > 0 && hfd_parse_duration_us(r->expires, &us, err) == HFD_OK)
        token->expires_us = token->created_us + us;
    hfd_token_hash((hfd_slice){c->text, HFD_TOKEN_CHARS}, token->hash);
    *list = (struct hfd_token_list){items, list->count + 1};
    return HFD_OK;
}

static enum hfd_exit create_token(struct request *r, struct hfd_buf *b)
{
    struct creation c = {.request = r};
    struct hfd_token_edit edit = {
        .path = hfd_cli_tokens_path(r->settings), .change = add_token, .arg = &c, .create = true};
    struct hfd_err err = {0};
    hfd_rc rc = HFD_OK;

    if (r->name.len == 0 || r->grant.scopes == 0)
        return hfd_cli_fail(HFD_EXIT_USAGE, "token create",
                            "expected --name NAME and --scope SCOPE[,SCOPE]");
    if (edit.path == NULL)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "token create", "out of memory");
    if (r->settings->auth_tokens_file.len == 0 && !hfd_settings_has_postgres(r->settings)) {
        if (!r->is_new && access(edit.path, F_OK) != 0) /* a file of tokens is one in use */
            rc = hfd_cli_need_store(r->settings, true, &err);
        if (rc == HFD_OK)
            rc = hfd_cli_make_data(r->settings, &err);
    }
    hfd_token_make(&hfd_rng_system, c.text);
    if (rc == HFD_OK)
        rc = hfd_token_file_edit(&edit, &err);
    if (rc == HFD_OK)
        hfd_buf_addf(b, "%s\n", c.text);
    sodium_memzero(&c.text, sizeof(c.text));
    return rc == HFD_OK ? HFD_EXIT_OK : exit_of(rc, &err);
}

static hfd_rc drop_token(struct hfd_token_list *list, struct hfd_arena *mem, void *arg,
                         struct hfd_err *err)
{
    const hfd_slice name = *(const hfd_slice *)arg;

    (void)mem;
    for (size_t i = 0; i < list->count; i++) {
        if (!hfd_slice_eq(list->items[i].name, name))
            continue;
        list->count--;
        memmove(&list->items[i], &list->items[i + 1], (list->count - i) * sizeof(list->items[0]));
        return HFD_OK;
    }
    return hfd_fail(err, HFD_NOT_FOUND, "there is no token named %.*s",
                    (int)(name.len < 70 ? name.len : 70), name.p);
}

static enum hfd_exit revoke_token(struct request *r, struct hfd_buf *b)
{
    struct hfd_token_edit edit = {
        .path = hfd_cli_tokens_path(r->settings), .change = drop_token, .arg = &r->name};
    struct hfd_err err = {0};
    hfd_rc rc;

    if (edit.path == NULL)
        return hfd_cli_fail(HFD_EXIT_INTERNAL, "token revoke", "out of memory");
    rc = hfd_token_file_edit(&edit, &err);
    if (rc != HFD_OK)
        return exit_of(rc, &err);
    hfd_buf_addf(b, "revoked the token %.*s\n", HFD_SLICE_FMT(r->name));
    return HFD_EXIT_OK;
}

/* ---- list ---- */

/* The last uses that are known, from the store or from the running server. */
struct known {
    struct hfd_token_uses uses;
    struct hfd_arena mem;
};

static hfd_rc txn_uses(struct hfd_txn *tx, void *arg, struct hfd_err *err)
{
    struct known *known = arg;

    return hfd_token_use_list(tx, &known->mem, &known->uses, err);
}

static hfd_slice text_of(const json_t *object, const char *key)
{
    return hfd_slice_of(hfd_json_cstr(object, key));
}

static bool read_answer(struct known *known, hfd_slice body)
{
    json_t *doc = json_loadb(body.p, body.len, 0, NULL), *items = json_object_get(doc, "items"),
           *item;
    const size_t count = json_array_size(items);
    bool ok = json_is_array(items);
    size_t i;

    known->uses.rows = hfd_arena_array(&known->mem, count + 1, sizeof(*known->uses.rows));
    ok = ok && known->uses.rows != NULL;
    json_array_foreach (items, i, item) {
        struct hfd_token_use_row use = {.name = text_of(item, "name"),
                                        .from = text_of(item, "last_used_from")};

        if (!ok || hfd_time_parse(text_of(item, "last_used_time"), &use.used_us, NULL) != HFD_OK ||
            hfd_time_parse(text_of(item, "created_time"), &use.created_us, NULL) != HFD_OK)
            continue;
        use.name = hfd_arena_dup(&known->mem, use.name);
        use.from = hfd_arena_dup(&known->mem, use.from);
        if (use.name.p != NULL && use.from.p != NULL)
            known->uses.rows[known->uses.count++] = use;
    }
    json_decref(doc);
    return ok;
}

static const char *ask_server(struct hfd_settings *s, struct known *known)
{
    const char *why = "it is not the list of tokens";
    struct hfd_buf body;

    hfd_buf_init(&body, HFD_CLI_ANSWER_MAX_BYTES);
    if (hfd_cli_ask(s, "/admin/tokens", false, &body, &why) &&
        read_answer(known, hfd_buf_slice(&body)))
        why = NULL;
    hfd_buf_fini(&body);
    return why;
}

/* A list does not change the schema under servers of another version. */
static hfd_rc may_open(const struct hfd_store_place *place, struct hfd_err *err)
{
    int64_t schema = (int64_t)hfd_migrations_count;
    hfd_rc rc = place->url != NULL ? hfd_pg_schema_read(place, &schema, err) : HFD_OK;

    if (rc == HFD_OK && schema != (int64_t)hfd_migrations_count)
        return hfd_fail(err, HFD_INVALID, "the database has schema %lld, this program knows %zu",
                        (long long)schema, hfd_migrations_count);
    return rc;
}

/* Finds the last uses. A server that runs is asked; of one that does not, the store is read. */
static void find_uses(struct hfd_settings *s, struct known *known)
{
    const struct hfd_store_config config = {.place = hfd_cli_place(s), .readers = 1};
    struct hfd_store *store = NULL;
    struct hfd_err err = {0};
    const char *why = NULL;
    char path[4200];
    hfd_rc rc;

    (void)snprintf(path, sizeof(path), "%s/" HFD_FOLDER_DB_NAME, s->data.p);
    if (config.place.url == NULL && access(path, F_OK) != 0)
        return;
    rc = may_open(&config.place, &err);
    if (rc == HFD_OK)
        rc = hfd_store_open(&config, &store, &err);
    if (rc == HFD_OK) {
        rc = hfd_store_update_wait(store, txn_uses, known, &err);
        hfd_store_close(&store);
        why = rc == HFD_OK ? NULL : err.msg;
    } else {
        why = rc == HFD_CONFLICT ? ask_server(s, known) : err.msg;
    }
    if (why != NULL)
        hfd_cli_say("hyperfleet-driver token list: last uses are not known: %s", why);
}

static void add_head(struct hfd_buf *b)
{
    hfd_buf_addf(b, "%-24s  %-24s  %-20s  %-20s  %-20s  %s\n", "NAME", "SCOPES", "CREATED",
                 "EXPIRES", "LAST USED", "FROM");
}

/* A token, as the list shows it. */
struct row {
    hfd_slice name, scopes, from;
    int64_t created_us, expires_us, used_us; /* 0 = never */
};

static void add_time(struct hfd_buf *b, int64_t at_us)
{
    char text[HFD_TIME_TEXT_MAX] = "-";

    if (at_us != 0)
        (void)hfd_time_format_s(at_us, text);
    hfd_buf_addf(b, "  %-20s", text);
}

static void add_cell(struct hfd_buf *b, hfd_slice text)
{
    const size_t end = b->len + CELL_COLUMNS;

    hfd_buf_show(b, text);
    while (b->rc == HFD_OK && b->len < end)
        hfd_buf_addc(b, ' ');
}

static void add_row(struct hfd_buf *b, const struct row *row)
{
    const hfd_slice from = row->from.len > 0 ? row->from : HFD_SLICE("-");

    add_cell(b, row->name);
    hfd_buf_lit(b, "  ");
    add_cell(b, row->scopes);
    add_time(b, row->created_us);
    add_time(b, row->expires_us);
    add_time(b, row->used_us);
    hfd_buf_lit(b, "  ");
    hfd_buf_show(b, from);
    hfd_buf_addc(b, '\n');
}

static void list_one(struct hfd_buf *b, const struct hfd_token *t, const struct known *known)
{
    struct row row = {.name = t->name, .created_us = t->created_us, .expires_us = t->expires_us};
    struct hfd_buf scopes;

    for (size_t i = 0; i < known->uses.count; i++) {
        const struct hfd_token_use_row *use = &known->uses.rows[i];

        if (!hfd_slice_eq(use->name, t->name) || use->created_us != t->created_us)
            continue;
        row.used_us = use->used_us;
        row.from = use->from;
    }
    hfd_buf_init(&scopes, SCOPES_MAX);
    hfd_grant_format(&scopes, &t->grant, false);
    row.scopes = hfd_buf_slice(&scopes);
    add_row(b, &row);
    hfd_buf_fini(&scopes);
}

static enum hfd_exit list_tokens(struct request *r, struct hfd_buf *b)
{
    const char *path = hfd_cli_tokens_path(r->settings);
    struct hfd_token_list tokens;
    struct known known = {.uses = {.count = 0}};
    struct hfd_err err = {0};
    hfd_rc rc = HFD_NOMEM;

    hfd_arena_init(&known.mem, LIST_MAX_BYTES);
    if (path == NULL)
        (void)hfd_fail_nomem(&err, "list the tokens");
    else
        rc = hfd_token_file_read(path, &known.mem, &tokens, &err);
    if (rc == HFD_NOT_FOUND) /* there are no tokens, or this is not the folder */
        rc = hfd_cli_need_store(r->settings, false, &err);
    if (rc == HFD_OK && tokens.count > 0)
        find_uses(r->settings, &known);
    if (rc == HFD_OK)
        add_head(b);
    for (size_t i = 0; rc == HFD_OK && i < tokens.count; i++)
        list_one(b, &tokens.items[i], &known);
    hfd_arena_fini(&known.mem);
    return rc == HFD_OK ? HFD_EXIT_OK : exit_of(rc, &err);
}

/* ---- list, of a server elsewhere ---- */

/* The time of a member; 0 if there is none. */
static int64_t time_of(const json_t *item, const char *key)
{
    int64_t us = 0;

    return hfd_time_parse(text_of(item, key), &us, NULL) == HFD_OK ? us : 0;
}

static void add_item(struct hfd_buf *b, const json_t *item)
{
    const struct row row = {.name = text_of(item, "name"),
                            .from = text_of(item, "last_used_from"),
                            .created_us = time_of(item, "created_time"),
                            .expires_us = time_of(item, "expires_time"),
                            .used_us = time_of(item, "last_used_time")};
    struct row shown = row;
    struct hfd_buf scopes;
    const json_t *scope;
    size_t i;

    hfd_buf_init(&scopes, SCOPES_MAX);
    json_array_foreach (json_object_get(item, "scopes"), i, scope) {
        if (json_is_string(scope))
            hfd_buf_addf(&scopes, "%s%s", i > 0 ? "," : "", json_string_value(scope));
    }
    shown.scopes = hfd_buf_slice(&scopes);
    add_row(b, &shown);
    hfd_buf_fini(&scopes);
}

static enum hfd_exit take_answer(const struct request *r, const struct hfd_http_answer *a,
                                 struct hfd_buf *b)
{
    const hfd_slice body = hfd_buf_slice(&a->body);
    json_t *doc = a->status != 0 ? json_loadb(body.p, body.len, 0, NULL) : NULL;
    const json_t *items = json_object_get(doc, "items");
    enum hfd_exit status = HFD_EXIT_OK;

    if (a->status == 0) {
        status = hfd_cli_fail(HFD_EXIT_ADDRESS, "token list", "%s: %s", r->address.ops_url, a->why);
    } else if (a->status != 200 || !json_is_array(items)) {
        status = hfd_cli_refused("token list", a, r->address.token_file != NULL);
    } else {
        add_head(b);
        for (size_t i = 0; i < json_array_size(items); i++)
            add_item(b, json_array_get(items, i));
    }
    json_decref(doc);
    return status;
}

static enum hfd_exit list_elsewhere(const struct request *r, struct hfd_buf *b)
{
    const struct hfd_client_config config = {.url = r->address.ops_url,
                                             .token_file = r->address.token_file,
                                             .ca_file = r->address.ca_file,
                                             .timeout_us = REQUEST_TIMEOUT_US};
    const struct hfd_client_request get = {.method = "GET", .path = "admin/tokens"};
    struct hfd_client_http *http = NULL;
    struct hfd_http_answer answer;
    struct hfd_err err = {0};
    enum hfd_exit status;
    const hfd_rc rc = hfd_client_open(&config, &http, &err);

    if (rc != HFD_OK)
        return hfd_cli_fail_rc(rc, "token list", &err);
    hfd_client_send(http, &get, &answer, 1);
    status = take_answer(r, &answer, b);
    hfd_http_answer_fini(&answer);
    hfd_client_close(&http);
    return status;
}

/* ---- the whole ---- */

typedef enum hfd_exit sub_fn(struct request *r, struct hfd_buf *b);

static enum hfd_exit run(struct request *r, sub_fn *fn, const struct hfd_flags *flags)
{
    struct hfd_err err = {0};
    struct hfd_buf b;
    const bool elsewhere = r->address.ops_url != NULL;
    enum hfd_exit status = elsewhere ? HFD_EXIT_OK : hfd_cli_settings(flags, &r->settings);

    if (status != HFD_EXIT_OK)
        return status;
    hfd_log_set_level(HFD_LOG_ERROR);
    (void)umask(077);
    hfd_buf_init(&b, OUTPUT_MAX);
    if (hfd_base_init(&err) != HFD_OK)
        status = hfd_cli_fail(HFD_EXIT_INTERNAL, "token", "%s", err.msg);
    else if (!elsewhere && hfd_cli_need(r->settings, HFD_SETTING_auth_tokens_file, &err) != HFD_OK)
        status = hfd_cli_fail(HFD_EXIT_USAGE, "token", "%s", err.msg);
    else
        status = elsewhere ? list_elsewhere(r, &b) : fn(r, &b);
    hfd_settings_free(r->settings);
    if (status == HFD_EXIT_OK)
        return hfd_cli_print("token", &b);
    hfd_buf_fini(&b);
    return status;
}

#define CREATE_FLAGS 4 /* the first ones of the table; the others belong to list */

/* Takes the address of a server elsewhere out of the arguments that are left. */
static enum hfd_exit take_address(struct request *r, struct hfd_flags *flags)
{
    struct hfd_cli_address *a = &r->address;
    struct hfd_flags own = {.command = "token list",
                            .table = flags->table + CREATE_FLAGS,
                            .count = flags->count - CREATE_FLAGS,
                            .others = HFD_FLAG_SETTINGS};
    struct hfd_err err = {0};
    enum hfd_exit status;
    bool main_only;

    if (!hfd_cli_read(&own, flags->rest_count, flags->rest, &status))
        return status;
    flags->rest_count = own.rest_count;
    main_only = a->url != NULL;
    if (!hfd_cli_address_complete(a, flags, &err))
        return hfd_cli_fail(HFD_EXIT_USAGE, "token list", "%s", err.msg);
    if (a->ops_url == NULL && main_only)
        return hfd_cli_fail(HFD_EXIT_USAGE, "token list",
                            "--url: the ops listener has the list of tokens: give --ops-url");
    return HFD_EXIT_OK;
}

static enum hfd_exit prepare(struct request *r, sub_fn *fn, struct hfd_flags *flags, int argc,
                             const char **argv)
{
    const bool named = fn == revoke_token;
    const size_t count = flags->count;
    enum hfd_exit status;

    if (named && (argc < 1 || argv[0][0] == '-'))
        return hfd_cli_fail(HFD_EXIT_USAGE, "token revoke", "expected the name of a token");
    flags->count = CREATE_FLAGS;
    if (!hfd_cli_read(flags, argc - named, argv + named, &status))
        return status;
    flags->count = count;
    if (fn != create_token &&
        (r->name.len > 0 || r->grant.scopes != 0 || r->expires.len > 0 || r->is_new))
        return hfd_cli_fail(HFD_EXIT_USAGE, "token",
                            "--name, --scope, --expires and --new belong to create");
    if (named)
        r->name = hfd_slice_of(argv[0]);
    return fn == list_tokens ? take_address(r, flags) : HFD_EXIT_OK;
}

enum hfd_exit hfd_cmd_token(int argc, const char **argv)
{
    static const struct {
        const char *name;
        sub_fn *fn;
    } subs[] = {{"create", create_token}, {"list", list_tokens}, {"revoke", revoke_token}};
    struct request r = {.is_new = false};
    struct hfd_flag_call name = {take_name, &r}, scope = {take_scope, &r},
                         expires = {take_expires, &r};
    const struct hfd_flag table[] = {
        {"--name", NULL, HFD_FLAG_CALL, &name, "NAME", "create: the name of the caller"},
        {"--scope", NULL, HFD_FLAG_CALL, &scope, "SCOPE[,SCOPE]",
         "create: driver, fleet-read, adapter, fleet-write, view or admin; adapter=NAME for one "
         "adapter"},
        {"--expires", NULL, HFD_FLAG_CALL, &expires, "DURATION",
         "create: the token is not valid after this time"},
        {"--new", NULL, HFD_FLAG_SWITCH, &r.is_new, NULL,
         "create: before the first start of the server, in a new data folder"},
        {"--url", NULL, HFD_FLAG_TEXT, &r.address.url, "URL", NULL},
        {"--ops-url", NULL, HFD_FLAG_TEXT, &r.address.ops_url, "URL",
         "list: the ops listener of a server elsewhere (HFD_OPS_URL)"},
        {"--token-file", "HFD_TOKEN_FILE", HFD_FLAG_TEXT, &r.address.token_file, "FILE",
         "list: a bearer token with the scope admin"},
        {"--ca-file", NULL, HFD_FLAG_TEXT, &r.address.ca_file, "FILE",
         "list: certificates to trust"},
    };
    struct hfd_flags flags = {.command = "token", HFD_FLAG_TABLE(table), .others = HFD_FLAG_ALL};
    enum hfd_exit status;
    sub_fn *fn = NULL;

    if (argc == 1 && strcmp(argv[0], "--help") == 0) {
        (void)hfd_cli_read(&flags, argc, argv, &status);
        return status;
    }
    hfd_buf_init(&r.scopes, SCOPES_MAX);
    for (size_t i = 0; argc > 0 && i < sizeof(subs) / sizeof(subs[0]); i++)
        if (strcmp(argv[0], subs[i].name) == 0)
            fn = subs[i].fn;
    status = fn != NULL ? prepare(&r, fn, &flags, argc - 1, argv + 1)
                        : hfd_cli_fail(HFD_EXIT_USAGE, "token",
                                       "expected create, list or revoke, got %.60s",
                                       argc > 0 ? argv[0] : "nothing");
    if (status == HFD_EXIT_OK && fn != NULL)
        status = run(&r, fn, &flags);
    hfd_buf_fini(&r.scopes);
    return status;
}
