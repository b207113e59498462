/* Numbers that a document spells as strings. See spelled_int.h. */
#include "schemas/spelled_int.h"

#include "driver/base/jsonx.h"

/*
 * Parses the number that a string spells, in JSON's form.
 * @param out NULL when it spells none
 * @return HFD_OK, HFD_NOMEM
 */
static hfd_rc parse_number(const json_t *v, json_t **out)
{
    const char *text = json_string_value(v);
    size_t len = json_string_length(v);

    *out = NULL;
    if (len == 0 || len > 40 || strspn(text, "+-.0123456789eE") != len)
        return HFD_OK;
    return hfd_json_parse((hfd_slice){text, len}, out, NULL) == HFD_NOMEM ? HFD_NOMEM : HFD_OK;
}

void hfd_spelled_note(struct hfd_walk *w, const struct hfd_place *at)
{
    struct hfd_spelled *s;

    if (at->in == NULL)
        return;
    s = hfd_arena_alloc(w->mem, sizeof(*s));
    if (s == NULL) {
        hfd_walk_give_up(w, HFD_NOMEM);
        return;
    }
    *s = (struct hfd_spelled){
        .earlier = w->spelled, .in = at->in, .key = at->key, .index = at->index};
    w->spelled = s;
}

json_t *hfd_spelled_number(struct hfd_walk *w, const struct hfd_schema_node *n, const json_t *v)
{
    const unsigned numbers = HFD_TYPE_INTEGER | HFD_TYPE_NUMBER;
    json_t *number;

    if (!w->use->lenient_numbers || !json_is_string(v) || (n->types & numbers) == 0 ||
        (n->types & HFD_TYPE_STRING) != 0)
        return NULL;
    if (parse_number(v, &number) != HFD_OK)
        hfd_walk_give_up(w, HFD_NOMEM);
    return number;
}

hfd_rc hfd_spelled_store(const struct hfd_spelled *s)
{
    json_t *in = (json_t *)(uintptr_t)s->in; /* of the caller's own document */
    const json_t *v = s->key != NULL ? json_object_get(in, s->key) : json_array_get(in, s->index);
    json_t *number;

    if (!json_is_string(v))
        return HFD_OK;
    if (parse_number(v, &number) != HFD_OK || number == NULL) /* it was a number before */
        return HFD_NOMEM;
    if ((s->key != NULL ? json_object_set_new(in, s->key, number)
                        : json_array_set_new(in, s->index, number)) != 0)
        return HFD_NOMEM;
    return HFD_OK;
}
