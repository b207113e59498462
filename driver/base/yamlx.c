/* Reads YAML into jansson, event by event. See yamlx.h. */
#include "driver/base/yamlx.h"

#include "driver/base/jsonx.h"
#include "driver/base/yaml_event.h"

#define NUMBER_MAX_BYTES 40

struct reader {
    const char *name;
    yaml_parser_t parser;
    yaml_event_t event; /* the current event */
    size_t nodes;
    int depth;
    struct hfd_err *err;
};

static hfd_rc read_node(struct reader *r, json_t **out);

static hfd_rc fail_here(const struct reader *r, const char *what)
{
    return hfd_fail(r->err, HFD_INVALID, "%s:%zu: %s", r->name, r->event.start_mark.line + 1, what);
}

static hfd_rc parser_failed(const struct reader *r)
{
    const char *problem = r->parser.problem != NULL ? r->parser.problem : "unreadable";

    if (r->parser.error == YAML_MEMORY_ERROR)
        return hfd_fail_nomem(r->err, "read a YAML document");
    if (r->parser.error == YAML_READER_ERROR)
        return hfd_fail(r->err, HFD_INVALID, "%s: not text in UTF-8 (byte %zu): %s", r->name,
                        r->parser.problem_offset, problem);
    return hfd_fail(r->err, HFD_INVALID, "%s:%zu: not valid YAML: %s", r->name,
                    r->parser.problem_mark.line + 1, problem);
}

const char *hfd_yaml_refusal(const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;

    if (event->type == YAML_ALIAS_EVENT)
        return "aliases (*name) are not supported";
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    } else if (event->type == YAML_DOCUMENT_START_EVENT &&
               event->data.document_start.tag_directives.start !=
                   event->data.document_start.tag_directives.end) {
        return "tags (%TAG) are not supported";
    }
    if (anchor != NULL)
        return "anchors (&name) are not supported";
    return tag != NULL ? "tags (!name) are not supported" : NULL;
}

static hfd_rc next_event(struct reader *r)
{
    const char *refusal;

    yaml_event_delete(&r->event);
    if (!yaml_parser_parse(&r->parser, &r->event))
        return parser_failed(r);
    refusal = hfd_yaml_refusal(&r->event);
    return refusal == NULL ? HFD_OK : fail_here(r, refusal);
}

static hfd_slice scalar_text(const struct reader *r)
{
    return (hfd_slice){(const char *)r->event.data.scalar.value, r->event.data.scalar.length};
}

/*
 * Gives the value of a plain scalar that is not a string; *out stays NULL for a string.
 * @return HFD_OK, HFD_NOMEM
 */
static hfd_rc resolve_plain(hfd_slice s, json_t **out)
{
    static const struct {
        const char *text;
        json_t *(*make)(void);
    } words[] = {
        {"", json_null},       {"~", json_null},      {"null", json_null},   {"Null", json_null},
        {"NULL", json_null},   {"true", json_true},   {"True", json_true},   {"TRUE", json_true},
        {"false", json_false}, {"False", json_false}, {"FALSE", json_false},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (hfd_slice_is(s, words[i].text)) {
            *out = words[i].make();
            return HFD_OK;
        }
    }
    if (s.len > NUMBER_MAX_BYTES || (s.p[0] != '-' && (s.p[0] < '0' || s.p[0] > '9')))
        return HFD_OK;
    return hfd_json_parse(s, out, NULL) == HFD_NOMEM ? HFD_NOMEM : HFD_OK;
}

static hfd_rc read_scalar(struct reader *r, json_t **out)
{
    const hfd_slice s = scalar_text(r);

    if (r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE && resolve_plain(s, out) != HFD_OK)
        return hfd_fail_nomem(r->err, "read a YAML document");
    if (*out == NULL)
        *out = json_stringn(s.p, s.len);
    return *out != NULL ? HFD_OK : hfd_fail_nomem(r->err, "read a YAML document");
}

static hfd_rc read_sequence(struct reader *r, json_t *list)
{
    for (;;) {
        json_t *item = NULL;
        hfd_rc rc = next_event(r);

        if (rc != HFD_OK || r->event.type == YAML_SEQUENCE_END_EVENT)
            return rc;
        rc = read_node(r, &item);
        if (rc != HFD_OK)
            return rc;
        if (json_array_append_new(list, item) != 0)
            return hfd_fail_nomem(r->err, "read a YAML document");
    }
}

/* Reads the value behind a key; the current event is the key. */
static hfd_rc read_member(struct reader *r, json_t *map)
{
    const hfd_slice s = scalar_text(r);
    json_t *value = NULL;
    char *key;
    hfd_rc rc;

    if (r->event.type != YAML_SCALAR_EVENT)
        return fail_here(r, "expected a key, got a list or a map");
    if (memchr(s.p, '\0', s.len) != NULL)
        return fail_here(r, "the key contains a NUL");
    if (json_object_getn(map, s.p, s.len) != NULL)
        return fail_here(r, "the key is given twice");
    key = strndup(s.p, s.len);
    if (key == NULL)
        return hfd_fail_nomem(r->err, "read a YAML document");
    rc = next_event(r);
    if (rc == HFD_OK)
        rc = read_node(r, &value);
    if (rc == HFD_OK && json_object_set_new(map, key, value) != 0)
        rc = hfd_fail_nomem(r->err, "read a YAML document");
    free(key);
    return rc;
}

static hfd_rc read_mapping(struct reader *r, json_t *map)
{
    hfd_rc rc;

    do {
        rc = next_event(r);
        if (rc != HFD_OK || r->event.type == YAML_MAPPING_END_EVENT)
            return rc;
        rc = read_member(r, map);
    } while (rc == HFD_OK);
    return rc;
}

/* Reads the value that begins with the current event. Gives. */
static hfd_rc read_node(struct reader *r, json_t **out)
{
    const bool is_map = r->event.type == YAML_MAPPING_START_EVENT;
    hfd_rc rc;

    *out = NULL;
    if (++r->nodes > HFD_YAML_NODES_MAX || r->depth >= HFD_YAML_DEPTH_MAX)
        return fail_here(r, "the document is too large or too deep");
    if (r->event.type == YAML_SCALAR_EVENT)
        return read_scalar(r, out);
    *out = is_map ? json_object() : json_array();
    if (*out == NULL)
        return hfd_fail_nomem(r->err, "read a YAML document");
    r->depth++;
    rc = is_map ? read_mapping(r, *out) : read_sequence(r, *out);
    r->depth--;
    if (rc != HFD_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return rc;
}

/* Reads the whole stream: no document, or one. */
static hfd_rc read_stream(struct reader *r, json_t **out)
{
    hfd_rc rc = next_event(r); /* the start of the stream */

    if (rc == HFD_OK)
        rc = next_event(r);
    if (rc != HFD_OK)
        return rc;
    if (r->event.type == YAML_STREAM_END_EVENT) {
        *out = json_null();
        return HFD_OK;
    }
    rc = next_event(r);
    if (rc == HFD_OK)
        rc = read_node(r, out);
    if (rc == HFD_OK)
        rc = next_event(r); /* the end of the document */
    if (rc == HFD_OK)
        rc = next_event(r);
    if (rc == HFD_OK && r->event.type != YAML_STREAM_END_EVENT)
        rc = fail_here(r, "expected one document, got a second one");
    return rc;
}

/*
 * Reads a text that looks like JSON as JSON. YAML reads almost all JSON, but not a character in two
 * halves ("\ud83d\ude00"). When this fails, the YAML reader decides, because it knows more and
 * explains more.
 */
static hfd_rc read_json(hfd_slice text, json_t **out)
{
    size_t i = 0;

    *out = NULL;
    while (i < text.len && strchr(" \t\r\n", text.p[i]) != NULL && text.p[i] != '\0')
        i++;
    return i < text.len && text.p[i] == '{' ? hfd_json_parse(text, out, NULL) : HFD_MALFORMED;
}

hfd_rc hfd_yaml_parse(hfd_slice text, const char *name, json_t **out, struct hfd_err *err)
{
    struct reader r = {.name = name, .err = err};
    hfd_rc rc = read_json(text, out);

    if (rc == HFD_OK)
        return rc;
    if (!yaml_parser_initialize(&r.parser))
        return hfd_fail_nomem(r.err, "read a YAML document");
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.p != NULL ? text.p : ""),
                                 text.len);
    rc = read_stream(&r, out);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    if (rc != HFD_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return rc;
}
