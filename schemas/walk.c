/* Places, violations and patterns of a validation. See walk_int.h. */
#include "schemas/walk_int.h"

#include "driver/base/buf.h"
#include "driver/base/jsonx.h"

#define KEY_SHOWN_MAX 80
#define VALUE_SHOWN_MAX 80

bool hfd_walk_give_up(struct hfd_walk *w, hfd_rc rc)
{
    if (w->rc == HFD_OK)
        w->rc = rc;
    return false;
}

static void add_place(struct hfd_buf *b, const struct hfd_place *at)
{
    if (at->up == NULL) {
        hfd_buf_add(b, hfd_slice_of(at->key));
        return;
    }
    add_place(b, at->up);
    if (at->key == NULL) {
        hfd_buf_addf(b, "[%zu]", at->index);
        return;
    }
    if (b->len > 0)
        hfd_buf_addc(b, '.');
    hfd_buf_addf(b, "%.*s", KEY_SHOWN_MAX, at->key);
}

/* The value at a place as JSON text; none where it is long, an object or an array. */
static hfd_slice value_at(const struct hfd_place *at, struct hfd_arena *mem)
{
    const json_t *v = NULL;
    hfd_slice text;
    struct hfd_buf b;

    if (at->in != NULL)
        v = at->key != NULL ? json_object_get(at->in, at->key) : json_array_get(at->in, at->index);
    if (v == NULL || json_is_object(v) || json_is_array(v) ||
        json_string_length(v) > VALUE_SHOWN_MAX)
        return HFD_SLICE_NONE;
    hfd_buf_init(&b, VALUE_SHOWN_MAX * 6 + 2);
    hfd_json_dump(&b, v);
    return hfd_buf_to_arena(&b, mem, &text, NULL) == HFD_OK ? text : HFD_SLICE_NONE;
}

bool hfd_walk_violated(struct hfd_walk *w, const struct hfd_place *at, const char *constraint,
                       const char *fmt, ...)
{
    struct hfd_violation *x;
    char text[HFD_WALK_TEXT_MAX];
    struct hfd_buf b;
    va_list ap;
    int n;

    if (w->out == NULL || w->out->count == HFD_VIOLATIONS_MAX)
        return false;
    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    x = &w->out->items[w->out->count];
    hfd_buf_init(&b, HFD_WALK_DEPTH_MAX * (KEY_SHOWN_MAX + 24));
    add_place(&b, at);
    x->field = hfd_arena_dup(w->mem, hfd_buf_slice(&b));
    x->message =
        hfd_arena_dup(w->mem, (hfd_slice){text, n < 0                      ? 0
                                                : (size_t)n < sizeof(text) ? (size_t)n
                                                                           : sizeof(text) - 1});
    x->constraint = constraint;
    x->value = value_at(at, w->mem);
    if (b.rc != HFD_OK || x->field.p == NULL || x->message.p == NULL)
        hfd_walk_give_up(w, HFD_NOMEM);
    else
        w->out->count++;
    hfd_buf_fini(&b);
    return false;
}

bool hfd_walk_matches(struct hfd_walk *w, const struct hfd_schema_regex *regex, const char *text,
                      size_t len)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    int rc;

    if (data == NULL)
        return hfd_walk_give_up(w, HFD_NOMEM);
    rc = pcre2_match(regex->code, (PCRE2_SPTR)text, len, 0, 0, data, w->use->schema->match);
    pcre2_match_data_free(data);
    w->work -= (int64_t)(len / 16);
    if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH)
        return rc >= 0;
    return hfd_walk_give_up(w, rc == PCRE2_ERROR_NOMEMORY ? HFD_NOMEM : HFD_LIMIT);
}

const char *hfd_walk_plural(size_t n)
{
    return n == 1 ? "" : "s";
}
