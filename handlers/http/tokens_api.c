/* See tokens_api.h. */
#include "handlers/http/tokens_api.h"

#include "handlers/http/api.h"

#define LIST_MAX_BYTES ((size_t)4 * 1024 * 1024)

static void add_time(struct hfd_buf *b, const char *lead, int64_t at_us)
{
    if (at_us != 0)
        hfd_buf_member_time(b, lead, at_us);
}

static void add_scopes(struct hfd_buf *b, hfd_scopes scopes)
{
    const char *lead = "";

    hfd_buf_lit(b, ",\"scopes\":[");
    for (unsigned i = 0; i < HFD_SCOPE_COUNT; i++) {
        if ((scopes & (1u << i)) == 0)
            continue;
        hfd_buf_addf(b, "%s\"%s\"", lead, hfd_scope_text((enum hfd_scope)i));
        lead = ",";
    }
    hfd_buf_addc(b, ']');
}

static void add_token(struct hfd_buf *b, const struct hfd_guard_token *t)
{
    hfd_buf_member_str(b, "{\"name\":", t->name);
    add_scopes(b, t->scopes);
    add_time(b, ",\"created_time\":", t->created_us);
    add_time(b, ",\"expires_time\":", t->expires_us);
    add_time(b, ",\"last_used_time\":", t->used_us);
    if (t->from.len > 0)
        hfd_buf_member_str(b, ",\"last_used_from\":", t->from);
    hfd_buf_addc(b, '}');
}

void hfd_tokens_api_list(struct hfd_exchange *x)
{
    struct hfd_guard *guard = hfd_exchange_app(x)->guard;
    struct hfd_guard_tokens tokens = {.count = 0};
    struct hfd_reply reply = {.status = 200};
    struct hfd_err err;
    struct hfd_buf b;

    if (guard != NULL && hfd_guard_list(guard, hfd_exchange_mem(x), &tokens, &err) != HFD_OK) {
        hfd_exchange_fail(x, HFD_NOMEM, &err);
        return;
    }
    hfd_buf_init(&b, LIST_MAX_BYTES);
    hfd_buf_lit(&b, "{\"items\":[");
    for (size_t i = 0; i < tokens.count; i++) {
        if (i > 0)
            hfd_buf_addc(&b, ',');
        add_token(&b, &tokens.items[i]);
    }
    hfd_buf_lit(&b, "]}");
    hfd_api_send(x, &reply, "application/json", &b);
}
