/* See form.h. */
#include "handlers/client/form.h"

#include <stdlib.h>

#define INDENT 2
#define DEPTH_MAX 64

hfd_rc hfd_form_read(const char *text, enum hfd_form *out, struct hfd_err *err)
{
    static const char *const names[] = {"json", "yaml", "name"};

    *out = HFD_FORM_JSON;
    for (size_t i = 0; text != NULL && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (enum hfd_form)i;
            return HFD_OK;
        }
    return text == NULL ? HFD_OK : hfd_fail(err, HFD_INVALID, "-o: expected json, yaml or name");
}

static void add_json(struct hfd_buf *b, const json_t *doc)
{
    char *text = json_dumps(doc, JSON_INDENT(INDENT) | JSON_ENCODE_ANY);

    if (text == NULL) {
        b->rc = b->rc == HFD_OK ? HFD_NOMEM : b->rc;
        return;
    }
    hfd_buf_add(b, hfd_slice_of(text));
    hfd_buf_addc(b, '\n');
    free(text);
}

static void start_line(struct hfd_buf *b, int depth)
{
    hfd_buf_addc(b, '\n');
    for (int i = 0; i < depth * INDENT; i++)
        hfd_buf_addc(b, ' ');
}

/* True for a key that YAML reads as a text without quotes. */
static bool is_plain(const char *key)
{
    static const char *const words[] = {"y",   "n",    "yes",   "no",  "on",
                                        "off", "true", "false", "null"};
    const hfd_slice s = hfd_slice_of(key);

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (hfd_slice_ieq(s, hfd_slice_of(words[i])))
            return false;
    for (size_t i = 0; i < s.len; i++)
        if (!hfd_is_alnum(s.p[i]) && s.p[i] != '_' && (i == 0 || strchr("-./", s.p[i]) == NULL))
            return false;
    return s.len > 0 && (s.p[0] < '0' || s.p[0] > '9');
}

static void add_value(struct hfd_buf *b, const json_t *v, int depth);

static void add_object(struct hfd_buf *b, const json_t *v, int depth, bool in_list)
{
    const char *key;
    json_t *member;
    bool first = in_list;

    json_object_foreach ((json_t *)(uintptr_t)v, key, member) {
        if (!first)
            start_line(b, depth);
        first = false;
        if (is_plain(key))
            hfd_buf_add(b, hfd_slice_of(key));
        else
            hfd_buf_json_str(b, hfd_slice_of(key));
        hfd_buf_addc(b, ':');
        add_value(b, member, depth + 1);
    }
}

static void add_list(struct hfd_buf *b, const json_t *v, int depth)
{
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *item = json_array_get(v, i);

        start_line(b, depth - 1);
        hfd_buf_addc(b, '-');
        if (json_is_object(item) && json_object_size(item) > 0) {
            hfd_buf_addc(b, ' ');
            add_object(b, item, depth, true);
        } else {
            add_value(b, item, depth + 1);
        }
    }
}

/* Scalars and empty lists have JSON's form, which is YAML too. */
static void add_value(struct hfd_buf *b, const json_t *v, int depth)
{
    char *text;

    if (depth < DEPTH_MAX && json_is_object(v) && json_object_size(v) > 0) {
        add_object(b, v, depth, false);
        return;
    }
    if (depth < DEPTH_MAX && json_is_array(v) && json_array_size(v) > 0) {
        add_list(b, v, depth);
        return;
    }
    text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
    if (text == NULL) {
        b->rc = b->rc == HFD_OK ? HFD_NOMEM : b->rc;
        return;
    }
    hfd_buf_addc(b, ' ');
    hfd_buf_add(b, hfd_slice_of(text));
    free(text);
}

void hfd_form_write(struct hfd_buf *b, enum hfd_form form, const json_t *doc, const char *name)
{
    switch (form) {
    case HFD_FORM_JSON:
        add_json(b, doc);
        break;
    case HFD_FORM_YAML:
        if (json_is_object(doc) && json_object_size(doc) > 0)
            add_object(b, doc, 0, true);
        else
            add_value(b, doc, 0);
        hfd_buf_addc(b, '\n');
        break;
    case HFD_FORM_NAME:
        hfd_buf_show(b, hfd_slice_of(name));
        hfd_buf_addc(b, '\n');
        break;
    }
}
