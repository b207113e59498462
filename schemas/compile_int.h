/* A compiled schema: compile.c makes it, validate.c walks it. */
#ifndef HFD_SCHEMAS_COMPILE_INT_H
#define HFD_SCHEMAS_COMPILE_INT_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "schemas/validate.h"

#include <jansson.h>

/* The bits of a type. An integer is also a number. */
enum {
    HFD_TYPE_OBJECT = 1,
    HFD_TYPE_ARRAY = 2,
    HFD_TYPE_STRING = 4,
    HFD_TYPE_INTEGER = 8,
    HFD_TYPE_NUMBER = 16,
    HFD_TYPE_BOOLEAN = 32,
    HFD_TYPE_NULL = 64,
};

struct hfd_schema_regex {
    struct hfd_schema_regex *next; /* all patterns of a schema, for freeing */
    pcre2_code *code;
    const char *text;
};

struct hfd_schema_node;

struct hfd_schema_list {
    struct hfd_schema_node **items;
    size_t count;
};

struct hfd_schema_pattern {
    const struct hfd_schema_regex *regex;
    struct hfd_schema_node *node;
};

struct hfd_schema_member {
    const char *key;
    struct hfd_schema_node *node;
};

/*
 * A node of a schema. NULL, 0 and false mean that the keyword is absent; for the maxima SIZE_MAX
 * does.
 */
struct hfd_schema_node {
    bool never; /* the schema `false` */
    struct hfd_schema_node *ref;

    unsigned types;
    bool nullable;
    const json_t *enumeration;
    const json_t *constant;

    size_t min_length, max_length;
    const struct hfd_schema_regex *pattern;
    bool date_time;

    const json_t *minimum, *maximum, *exclusive_minimum, *exclusive_maximum, *multiple_of;

    const json_t *properties; /* the keyword itself, for finding a name */
    struct hfd_schema_member *members;
    size_t member_count;
    struct hfd_schema_pattern *patterns;
    size_t pattern_count;
    const json_t *required;
    struct hfd_schema_node *additional_properties, *property_names;
    size_t min_properties, max_properties;

    struct hfd_schema_node *items, *additional_items, *contains;
    struct hfd_schema_list tuple;
    size_t min_items, max_items;
    bool unique;

    struct hfd_schema_list all_of, any_of, one_of;
    struct hfd_schema_node *negated, *condition, *consequence, *alternative;
};

struct hfd_schema {
    struct hfd_arena mem;
    json_t *doc; /* keys, enumerations and numbers borrow from it */
    struct hfd_schema_regex *regexes;
    pcre2_match_context *match; /* limits; only read while matching */
    struct hfd_schema_node *root;
};

#endif
