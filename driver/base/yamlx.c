/* YAML, event by event, into jansson. See yamlx.h. */
#include "driver/base/yamlx.h"

#include "driver/base/jsonx.h"
#include "driver/base/yaml_event.h"

#define NUMBER_MAX_BYTES 40

struct reader {
    const char *name;
    yaml_parser_t parser;
    yaml_event_t event; /* the one at hand */
    size_t nodes;
    int depth;
    struct hfd_err *err;
};

static hfd_rc read_node(struct reader *r, json_t **out);

static hfd_rc no_memory(const struct reader *r)
{
    return hfd_fail(r->err, HFD_NOMEM, "out of memory");
}

static hfd_rc wrong(const struct reader *r, const char *what)
{
    return hfd_fail(r->err, HFD_INVALID, "%s:%zu: %s", r->name, r->event.start_mark.line + 1, what);
}

static hfd_rc parser_failed(const struct reader *r)
{
    const char *problem = r->parser.problem != NULL ? r->parser.problem : "unreadable";

    if (r->parser.error == YAML_MEMORY_ERROR)
        return no_memory(r);
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
        return "aliases (*name) are not read here";
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
        return "tags (%TAG) are not read here";
    }
    if (anchor != NULL)
        return "anchors (&name) are not read here";
    return tag != NULL ? "tags (!name) are not read here" : NULL;
}

static hfd_rc next(struct reader *r)
{
    const char *refusal;

    yaml_event_delete(&r->event);
    if (!yaml_parser_parse(&r->parser, &r->event))
        return parser_failed(r);
    refusal = hfd_yaml_refusal(&r->event);
    return refusal == NULL ? HFD_OK : wrong(r, refusal);
}

static hfd_slice scalar_text(const struct reader *r)
{
    return (hfd_slice){(const char *)r->event.data.scalar.value, r->event.data.scalar.length};
}

/*
 * What a plain scalar is when it is no string; *out stays NULL when it is one. @return HFD_OK,
 * HFD_NOMEM
 */
static hfd_rc resolve(hfd_slice s, json_t **out)
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

    if (r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE && resolve(s, out) != HFD_OK)
        return no_memory(r);
    if (*out == NULL)
        *out = json_stringn(s.p, s.len);
    return *out != NULL ? HFD_OK : no_memory(r);
}

static hfd_rc read_sequence(struct reader *r, json_t *list)
{
    for (;;) {
        json_t *item = NULL;
        hfd_rc rc = next(r);

        if (rc != HFD_OK || r->event.type == YAML_SEQUENCE_END_EVENT)
            return rc;
        rc = read_node(r, &item);
        if (rc != HFD_OK)
            return rc;
        if (json_array_append_new(list, item) != 0)
            return no_memory(r);
    }
}

/* The value behind a key; the event at hand is the key. */
static hfd_rc read_member(struct reader *r, json_t *map)
{
    const hfd_slice s = scalar_text(r);
    json_t *value = NULL;
    char *key;
    hfd_rc rc;

    if (r->event.type != YAML_SCALAR_EVENT)
        return wrong(r, "expected a key, got a list or a map");
    if (memchr(s.p, '\0', s.len) != NULL)
        return wrong(r, "a key contains a NUL");
    if (json_object_getn(map, s.p, s.len) != NULL)
        return wrong(r, "the key is given twice");
    key = strndup(s.p, s.len);
    if (key == NULL)
        return no_memory(r);
    rc = next(r);
    if (rc == HFD_OK)
        rc = read_node(r, &value);
    if (rc == HFD_OK && json_object_set_new(map, key, value) != 0)
        rc = no_memory(r);
    free(key);
    return rc;
}

static hfd_rc read_mapping(struct reader *r, json_t *map)
{
    hfd_rc rc;

    do {
        rc = next(r);
        if (rc != HFD_OK || r->event.type == YAML_MAPPING_END_EVENT)
            return rc;
        rc = read_member(r, map);
    } while (rc == HFD_OK);
    return rc;
}

/* The value that the event at hand begins. Gives. */
static hfd_rc read_node(struct reader *r, json_t **out)
{
    const bool is_map = r->event.type == YAML_MAPPING_START_EVENT;
    hfd_rc rc;

    *out = NULL;
    if (++r->nodes > HFD_YAML_NODES_MAX || r->depth >= HFD_YAML_DEPTH_MAX)
        return wrong(r, "the document is too large or too deep");
    if (r->event.type == YAML_SCALAR_EVENT)
        return read_scalar(r, out);
    *out = is_map ? json_object() : json_array();
    if (*out == NULL)
        return no_memory(r);
    r->depth++;
    rc = is_map ? read_mapping(r, *out) : read_sequence(r, *out);
    r->depth--;
    if (rc != HFD_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return rc;
}

/* The whole stream: nothing, or one document. */
static hfd_rc read_stream(struct reader *r, json_t **out)
{
    hfd_rc rc = next(r); /* the start of the stream */

    if (rc == HFD_OK)
        rc = next(r);
    if (rc != HFD_OK)
        return rc;
    if (r->event.type == YAML_STREAM_END_EVENT) {
        *out = json_null();
        return HFD_OK;
    }
    rc = next(r);
    if (rc == HFD_OK)
        rc = read_node(r, out);
    if (rc == HFD_OK)
        rc = next(r); /* the end of the document */
    if (rc == HFD_OK)
        rc = next(r);
    if (rc == HFD_OK && r->event.type != YAML_STREAM_END_EVENT)
        rc = wrong(r, "expected one document, got a second one");
    return rc;
}

/*
 * What JSON writes as two halves of a character ("\ud83d\ude00") YAML cannot read, though it reads
 * all else of JSON. So what looks like JSON is read as that first; if it is too much, or wrong,
 * YAML's reader has the last word, which knows more and says more.
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
        return no_memory(&r);
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
