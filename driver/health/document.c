/* See document.h. */
#include "driver/health/document.h"

#include "driver/base/check.h"
#include "driver/base/clock.h"
#include "driver/base/jsonx.h"
#include "driver/fleet/keys.h"

#include <arpa/inet.h>
#include <stdio.h>

/* ---- forms: single texts; lengths are the business of the table ---- */

/* Letters, digits and the others, at least one of them all. */
static bool is_made_of(hfd_slice text, const char *others)
{
    for (size_t i = 0; i < text.len; i++)
        if (!hfd_is_alnum(text.p[i]) && (text.p[i] == '\0' || strchr(others, text.p[i]) == NULL))
            return false;
    return text.len > 0;
}

/* The type of a condition: a qualified name, "Ready" or "example.com/Ready". */
static bool is_condition_type(hfd_slice text)
{
    return hfd_is_qualified_name(text, SIZE_MAX, SIZE_MAX);
}

/* The reason of a condition, "AsExpected": begins with a letter, ends in none of ',' and ':'. */
static bool is_reason(hfd_slice text)
{
    return is_made_of(text, "_,:") && hfd_is_alnum(text.p[0]) && text.p[0] > '9' &&
           strchr(",:", text.p[text.len - 1]) == NULL;
}

/* The name of a fencing agent. */
static bool is_agent_name(hfd_slice text)
{
    return is_made_of(text, "._-");
}

/* 0.0.0.0, 127/8, 169.254/16, 224/4 and 255.255.255.255 are no address of a node. */
static bool v4_is_unicast(uint32_t a)
{
    return a != INADDR_ANY && a >> 24 != IN_LOOPBACKNET && a >> 16 != 0xa9fe && !IN_MULTICAST(a) &&
           a != INADDR_BROADCAST;
}

/* ::, ::1, ::ffff:0:0/96, fe80::/10 and ff00::/8 are no address of a node. */
static bool v6_is_unicast(const struct in6_addr *a)
{
    return !IN6_IS_ADDR_UNSPECIFIED(a) && !IN6_IS_ADDR_LOOPBACK(a) && !IN6_IS_ADDR_V4MAPPED(a) &&
           !IN6_IS_ADDR_LINKLOCAL(a) && !IN6_IS_ADDR_MULTICAST(a);
}

/* The longest canonical address: eight groups of four digits. */
#define HFD_HEALTH_ADDRESS_MAX 39

/*
 * Tells if the text is a global unicast IPv4 or IPv6 address in canonical form. Private and
 * documentation addresses are; unspecified, loopback, link-local, multicast and broadcast ones are
 * not, and neither are zones, prefixes and IPv4 addresses mapped into IPv6.
 *
 * The canonical form is that of Kubernetes' ip.isCanonical() and isGlobalUnicast(), which are Go's
 * net/netip. They print "::102:304" where inet_ntop of glibc prints "::1.2.3.4".
 */
static bool address_ok(hfd_slice text)
{
    char given[HFD_HEALTH_ADDRESS_MAX + 1] = "", canonical[INET6_ADDRSTRLEN] = "";
    struct in6_addr v6;
    struct in_addr v4;

    if (text.len == 0 || text.len > HFD_HEALTH_ADDRESS_MAX)
        return false;
    memcpy(given, text.p, text.len);
    if (inet_pton(AF_INET, given, &v4) == 1)
        return strlen(given) == text.len && v4_is_unicast(ntohl(v4.s_addr));
    if (inet_pton(AF_INET6, given, &v6) != 1 || !v6_is_unicast(&v6))
        return false;
    (void)inet_ntop(AF_INET6, &v6, canonical, sizeof(canonical));
    if (strchr(canonical, '.') != NULL) /* netip never prints a dotted tail */
        (void)snprintf(canonical, sizeof(canonical), "::%x:%x",
                       v6.s6_addr[12] << 8 | v6.s6_addr[13], v6.s6_addr[14] << 8 | v6.s6_addr[15]);
    return hfd_slice_is(text, canonical);
}

/* ---- rules ---- */

/*
 * The validation rules of a PacemakerCluster. The walk goes down the document by the
 * table. At each object it applies the rows of that place. The order of the rows is the order of
 * the document.
 */

/* Where in the document a rule's field stands. NOWHERE: nothing below the field has rules. */
enum place {
    NOWHERE,
    ROOT,
    METADATA,
    STATUS,
    NODE,
    ADDRESS,
    RESOURCE,
    AGENT,
    CONDITION,
    PLACES
};

static const char *const place_names[PLACES] = {
    [NOWHERE] = "",
    [ROOT] = "",
    [METADATA] = "metadata",
    [STATUS] = "status",
    [NODE] = "status.nodes[]",
    [ADDRESS] = "status.nodes[].addresses[]",
    [RESOURCE] = "status.nodes[].resources[]",
    [AGENT] = "status.nodes[].fencingAgents[]",
    [CONDITION] = "conditions[]",
};

struct walk;
struct rule;
/* Applies a rule to the value of its field, which is there and not null. */
typedef void (*check_fn)(struct walk *w, const struct rule *r, json_t *value);

struct rule {
    const char *number;
    enum place place;
    const char *field;
    check_fn check; /* NULL: the rule needs the stored document, see intake.c */
    const char *text;
    bool optional;
    enum place into;          /* the place of the items, or of the object */
    size_t min, max;          /* characters of a text, items of a list */
    const char *const *words; /* of which a text is one, up to NULL */
    bool (*fits)(hfd_slice);  /* the form of a text */
    const char *key;          /* the member in which the items of a list differ */
    const char *unique;       /* what is said when two do not */
    const char *noun;         /* "condition of type", before a key in a message */
    const char *const *needs; /* values of the key that must be there, up to NULL */
};

#define PATH_MAX_BYTES 256

struct walk {
    char path[PATH_MAX_BYTES];
    size_t path_len;
    struct hfd_arena *mem;
    struct hfd_health_violations *out;
    size_t room; /* of out->items */
    hfd_rc rc;
};

/* ---- violations ---- */

static bool make_room(struct walk *w)
{
    const size_t room = w->room == 0 ? 16 : w->room * 2;
    struct hfd_health_violation *items;

    if (w->out->count < w->room)
        return true;
    items = hfd_arena_array(w->mem, room, sizeof(*items));
    if (items == NULL)
        return false;
    if (w->out->count > 0)
        memcpy(items, w->out->items, w->out->count * sizeof(*items));
    w->out->items = items;
    w->room = room;
    return true;
}

/* Lists a violation at the path of the walk. message.p == NULL: memory is short. */
static void violate(struct walk *w, const struct rule *r, hfd_slice message)
{
    const hfd_slice path = {w->path, w->path_len};
    hfd_slice field;

    w->out->total++;
    if (w->rc == HFD_NOMEM || w->out->total > HFD_HEALTH_VIOLATIONS_MAX)
        return;
    field = hfd_arena_dup(w->mem, path);
    w->rc = message.p != NULL && field.p != NULL && make_room(w) ? HFD_INVALID : HFD_NOMEM;
    if (w->rc == HFD_INVALID)
        w->out->items[w->out->count++] = (struct hfd_health_violation){field, r->number, message};
}

static void expected(struct walk *w, const struct rule *r, const char *what, const json_t *got)
{
    violate(w, r, hfd_arena_printf(w->mem, "expected %s, got %s", what, hfd_json_type_name(got)));
}

/* Appends a member or an index to the path. @return the length to go back to */
static size_t go_to(struct walk *w, const char *member)
{
    const size_t before = w->path_len;
    const int n = snprintf(w->path + before, sizeof(w->path) - before, "%s%s",
                           before > 0 && member[0] != '[' ? "." : "", member);

    HFD_ASSERT(n > 0 && (size_t)n < sizeof(w->path) - before);
    w->path_len = before + (size_t)n;
    return before;
}

static size_t go_to_item(struct walk *w, size_t index)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "[%zu]", index);
    return go_to(w, text);
}

static void go_back(struct walk *w, size_t before)
{
    w->path_len = before;
}

/* A member of an object; NULL when it is absent or null, or when there is no object. */
static json_t *member_of(const json_t *obj, const char *name)
{
    json_t *v = json_object_get(obj, name);

    return json_is_null(v) ? NULL : v;
}

static hfd_slice text_of(const json_t *v)
{
    return json_is_string(v) ? (hfd_slice){json_string_value(v), json_string_length(v)}
                             : HFD_SLICE_NONE;
}

/* ---- the functions of the table ---- */

static bool is_one_of(hfd_slice text, const char *const *words)
{
    for (; *words != NULL; words++)
        if (hfd_slice_is(text, *words))
            return true;
    return false;
}

/* A text of min to max characters (max 0: any) that fits. */
static void check_text(struct walk *w, const struct rule *r, json_t *value)
{
    const hfd_slice text = text_of(value);
    const size_t length = hfd_slice_characters(text);

    if (!json_is_string(value))
        expected(w, r, "a string", value);
    else if (length < r->min)
        violate(w, r, HFD_SLICE("must not be empty"));
    else if (r->max > 0 && length > r->max)
        violate(
            w, r,
            hfd_arena_printf(w->mem, "must be at most %zu characters, has %zu", r->max, length));
    else if (r->words != NULL ? !is_one_of(text, r->words) : r->fits != NULL && !r->fits(text))
        violate(w, r, hfd_slice_of(r->text));
}

static void check_time(struct walk *w, const struct rule *r, json_t *value)
{
    int64_t ignored;

    if (!json_is_string(value))
        expected(w, r, "a string", value);
    else if (hfd_time_parse_any(text_of(value), &ignored, NULL) != HFD_OK)
        violate(w, r, HFD_SLICE("must be an RFC 3339 date-time"));
}

static void check_generation(struct walk *w, const struct rule *r, json_t *value)
{
    if (!json_is_integer(value))
        expected(w, r, "an integer", value);
    else if (json_integer_value(value) < 0)
        violate(w, r, HFD_SLICE("must be at least 0"));
}

static void check_object(struct walk *w, const struct rule *r, json_t *value)
{
    if (!json_is_object(value))
        expected(w, r, "an object", value);
}

/* An object of strings, as labels are. */
static void check_strings(struct walk *w, const struct rule *r, json_t *value)
{
    const size_t count = json_object_size(value);
    bool all = true;

    if (!json_is_object(value)) {
        expected(w, r, "an object", value);
        return;
    }
    if (count > r->max) {
        violate(w, r,
                hfd_arena_printf(w->mem, "must have at most %zu members, has %zu", r->max, count));
        return;
    }
    for (void *at = json_object_iter(value); at != NULL; at = json_object_iter_next(value, at))
        all = all && json_is_string(json_object_iter_value(at));
    if (!all)
        violate(w, r, hfd_slice_of(r->text));
}

static size_t items_looked_at(const struct rule *r, const json_t *list)
{
    const size_t count = json_array_size(list);

    return count < r->max ? count : r->max;
}

/* Each item that has the key of an earlier one. Looks at no more items than are allowed. */
static void check_unique(struct walk *w, const struct rule *r, json_t *list)
{
    const size_t count = items_looked_at(r, list);

    for (size_t i = 1; i < count; i++) {
        const hfd_slice key = text_of(member_of(json_array_get(list, i), r->key));
        size_t first = 0, before;

        while (first < i &&
               (key.p == NULL ||
                !hfd_slice_eq(key, text_of(member_of(json_array_get(list, first), r->key)))))
            first++;
        if (first == i)
            continue;
        before = go_to_item(w, i);
        violate(w, r,
                hfd_arena_printf(w->mem, "%s: item %zu has the same %s", r->unique, first, r->key));
        go_back(w, before);
    }
}

static bool has_item(const json_t *list, const char *key, const char *value)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (hfd_slice_is(text_of(member_of(json_array_get(list, i), key)), value))
            return true;
    return false;
}

/* Everything that the list must contain. */
static void check_contains(struct walk *w, const struct rule *r, json_t *list)
{
    if (!json_is_array(list))
        return; /* the row before told */
    for (const char *const *need = r->needs; *need != NULL; need++)
        if (!has_item(list, r->key, *need))
            violate(w, r,
                    hfd_arena_printf(w->mem, "%s must contain a %s %s", r->field, r->noun, *need));
}

/* A list of min to max items that differ in the key, with all that it must contain. */
static void check_list(struct walk *w, const struct rule *r, json_t *value)
{
    const size_t count = json_array_size(value);

    if (!json_is_array(value)) {
        expected(w, r, "an array", value);
        return;
    }
    if (count < r->min)
        violate(w, r,
                hfd_arena_printf(w->mem, "must have at least %zu items, has %zu", r->min, count));
    if (count > r->max)
        violate(w, r,
                hfd_arena_printf(w->mem, "must have at most %zu items, has %zu", r->max, count));
    if (r->key != NULL)
        check_unique(w, r, value);
    if (r->needs != NULL)
        check_contains(w, r, value);
}

/* ---- the table ---- */

/* clang-format off */
static const char *const cluster_types[] = {"Healthy", "InService", "NodeCountAsExpected", NULL};
static const char *const node_types[] = {"Healthy", "Online", "InService", "Active", "Ready", "Clean", "Member",
                                         "FencingAvailable", "FencingHealthy", NULL};
static const char *const unit_types[] = {"Healthy", "InService", "Managed", "Enabled", "Operational", "Active", "Started",
                                         "Schedulable", NULL};
static const char *const resource_names[] = {"Kubelet", "Etcd", NULL};

#define WORDS(...) (const char *const[]){__VA_ARGS__, NULL}
#define DUPLICATE "duplicate value"
#define CONDITION_OF "condition of type"

static const struct rule rules[] = {
    {.number = "R22", .place = ROOT, .field = "apiVersion", .check = check_text, .words = WORDS("etcd.openshift.io/v1alpha1", "etcd.openshift.io/v1"),
     .text = "must be etcd.openshift.io/v1alpha1 or etcd.openshift.io/v1"},
    {.number = "R22", .place = ROOT, .field = "kind", .check = check_text, .words = WORDS("PacemakerCluster"),
     .text = "must be PacemakerCluster"},
    {.number = "R22", .place = ROOT, .field = "metadata", .check = check_object, .into = METADATA,
     .text = "must be an object"},
    {.number = "R1", .place = METADATA, .field = "name", .check = check_text, .words = WORDS("cluster"),
     .text = "PacemakerCluster must be named 'cluster'"},
    {.number = "R22", .place = METADATA, .field = "labels", .check = check_strings, .optional = true, .max = 64,
     .text = "must be an object of at most 64 strings"},
    {.number = "R22", .place = METADATA, .field = "annotations", .check = check_strings, .optional = true, .max = 64,
     .text = "must be an object of at most 64 strings"},
    {.number = "R2", .place = ROOT, .field = "status", .check = check_object, .optional = true, .into = STATUS,
     .text = "status may not be removed once set"},
    {.number = "R3", .place = ROOT, .field = "status",
     .text = "a create through the sub-resource drops the status; PUT .../pacemaker/status sets it"},
    {.number = "R4", .place = ROOT, .field = "status",
     .text = "PUT of the main resource leaves the status; PUT of the status leaves everything else"},
    {.number = "R5", .place = STATUS, .field = "conditions", .check = check_list, .min = 3, .max = 8, .key = "type", .unique = DUPLICATE,
     .text = "must have 3 to 8 conditions, each type once"},
    {.number = "R6", .place = STATUS, .field = "conditions", .check = check_contains, .optional = true, .max = 8, .key = "type", .unique = DUPLICATE,
     .noun = CONDITION_OF, .needs = cluster_types, .into = CONDITION,
     .text = "must contain Healthy, InService and NodeCountAsExpected"},
    {.number = "R7", .place = STATUS, .field = "lastUpdated", .check = check_time,
     .text = "must be an RFC 3339 date-time, at most 5 minutes ahead of the server's clock, and may not be set to an earlier timestamp"},
    {.number = "R8", .place = STATUS, .field = "nodes", .check = check_list, .max = 5, .key = "nodeName", .unique = DUPLICATE, .into = NODE,
     .text = "must have 0 to 5 nodes, each nodeName once; an empty list is allowed"},
    {.number = "R9", .place = NODE, .field = "nodeName", .check = check_text, .min = 1, .max = 253, .fits = hfd_is_subdomain,
     .text = "nodeName must be a lowercase RFC 1123 subdomain consisting of lowercase alphanumeric characters, '-' or '.', "
             "and must start and end with an alphanumeric character"},
    {.number = "R10", .place = NODE, .field = "addresses", .check = check_list, .min = 1, .max = 8, .into = ADDRESS,
     .text = "must have 1 to 8 addresses; equal ones are allowed"},
    {.number = "R11", .place = ADDRESS, .field = "type", .check = check_text, .words = WORDS("InternalIP"),
     .text = "must be InternalIP"},
    {.number = "R12", .place = ADDRESS, .field = "address", .check = check_text, .min = 1, .max = HFD_HEALTH_ADDRESS_MAX,
     .fits = address_ok,
     .text = "must be a valid global unicast IPv4 or IPv6 address in canonical form"},
    {.number = "R13", .place = NODE, .field = "conditions", .check = check_list, .min = 9, .max = 16, .key = "type", .unique = DUPLICATE,
     .noun = CONDITION_OF, .needs = node_types, .into = CONDITION,
     .text = "must have 9 to 16 conditions, each type once, with Healthy, Online, InService, Active, Ready, Clean, Member, "
             "FencingAvailable and FencingHealthy"},
    {.number = "R14", .place = NODE, .field = "resources", .check = check_list, .min = 2, .max = 8, .key = "name", .unique = DUPLICATE,
     .noun = "resource named", .needs = resource_names, .into = RESOURCE,
     .text = "must have 2 to 8 resources, each name once, with Kubelet and Etcd"},
    {.number = "R15", .place = RESOURCE, .field = "name", .check = check_text, .words = resource_names,
     .text = "must be Kubelet or Etcd"},
    {.number = "R16", .place = RESOURCE, .field = "conditions", .check = check_list, .min = 8, .max = 16, .key = "type", .unique = DUPLICATE,
     .noun = CONDITION_OF, .needs = unit_types, .into = CONDITION,
     .text = "must have 8 to 16 conditions, each type once, with Healthy, InService, Managed, Enabled, Operational, Active, "
             "Started and Schedulable"},
    {.number = "R17", .place = NODE, .field = "fencingAgents", .check = check_list, .min = 1, .max = 8, .key = "name",
     .unique = "fencing agent names must be unique", .into = AGENT,
     .text = "must have 1 to 8 agents; fencing agent names must be unique"},
    {.number = "R18", .place = AGENT, .field = "name", .check = check_text, .min = 1, .max = 300, .fits = is_agent_name,
     .text = "name must contain only alphanumeric characters, dots, hyphens, and underscores"},
    {.number = "R19", .place = AGENT, .field = "method", .check = check_text, .words = WORDS("Redfish", "IPMI"),
     .text = "must be Redfish or IPMI"},
    {.number = "R20", .place = AGENT, .field = "conditions", .check = check_list, .min = 8, .max = 16, .key = "type", .unique = DUPLICATE,
     .noun = CONDITION_OF, .needs = unit_types, .into = CONDITION,
     .text = "must have 8 to 16 conditions, each type once, with those of a resource"},
    {.number = "R21", .place = CONDITION, .field = "type", .check = check_text, .min = 1, .max = 316,
     .fits = is_condition_type,
     .text = "must be a qualified name such as Healthy or example.com/Healthy"},
    {.number = "R21", .place = CONDITION, .field = "status", .check = check_text, .words = WORDS("True", "False", "Unknown"),
     .text = "must be True, False or Unknown"},
    {.number = "R21", .place = CONDITION, .field = "observedGeneration", .check = check_generation, .optional = true,
     .text = "must be at least 0"},
    {.number = "R21", .place = CONDITION, .field = "lastTransitionTime", .check = check_time,
     .text = "must be an RFC 3339 date-time"},
    {.number = "R21", .place = CONDITION, .field = "reason", .check = check_text, .min = 1, .max = 1024,
     .fits = is_reason,
     .text = "must begin with a letter, contain letters, digits, '_', ',' and ':', and end in a letter, a digit or '_'; "
             "any such reason is accepted"},
    {.number = "R21", .place = CONDITION, .field = "message", .check = check_text, .max = 32768,
     .text = "must be at most 32768 characters; may be empty"},
};
/* clang-format on */

#define RULES (sizeof(rules) / sizeof(rules[0]))

/* ---- the walk ---- */

static void walk_object(struct walk *w, enum place place, const json_t *obj);

static void walk_items(struct walk *w, const struct rule *r, json_t *list)
{
    const size_t count = items_looked_at(r, list);

    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        const size_t before = go_to_item(w, i);

        if (json_is_object(item))
            walk_object(w, r->into, item);
        else
            expected(w, r, "an object", item);
        go_back(w, before);
    }
}

static void apply(struct walk *w, const struct rule *r, json_t *value)
{
    if (value == NULL) {
        if (!r->optional)
            violate(w, r, HFD_SLICE("is required"));
        return;
    }
    r->check(w, r, value);
    if (r->into == NOWHERE)
        return;
    if (json_is_array(value))
        walk_items(w, r, value);
    else if (json_is_object(value) && r->key == NULL)
        walk_object(w, r->into, value);
}

/* As deep as the table, which has no cycle: five levels. */
static void walk_object(struct walk *w, enum place place, const json_t *obj)
{
    for (size_t i = 0; i < RULES; i++) {
        const struct rule *r = &rules[i];
        size_t before;

        if (r->place != place || r->check == NULL)
            continue;
        before = go_to(w, r->field);
        apply(w, r, member_of(obj, r->field));
        go_back(w, before);
    }
}

static hfd_rc fail_first(const struct hfd_health_violations *found, struct hfd_err *err)
{
    const struct hfd_health_violation *v = &found->items[0];
    char more[48] = "";

    if (found->total > 1)
        (void)snprintf(more, sizeof(more), " (and %zu more)", found->total - 1);
    return hfd_fail(err, HFD_INVALID, "%.*s: %.*s%s", HFD_SLICE_FMT(v->field),
                    HFD_SLICE_FMT(v->message), more);
}

/*
 * Finds every violation of the rules in one document.
 *
 * @param doc   the PacemakerCluster object; borrows
 * @param root  its path for the fields of violations, "data.pacemakerCluster"; "" = none
 * @param mem   keeps what out points to
 * @param out   the violations; empty unless the answer is HFD_INVALID
 * @return HFD_OK, HFD_INVALID (err names the first violation), HFD_NOMEM
 */
static hfd_rc check(const json_t *doc, const char *root, struct hfd_arena *mem,
                    struct hfd_health_violations *out, struct hfd_err *err)
{
    struct walk w = {.mem = mem, .out = out, .rc = HFD_OK};

    *out = (struct hfd_health_violations){NULL, 0, 0};
    HFD_ASSERT(strlen(root) < PATH_MAX_BYTES / 2);
    if (root[0] != '\0')
        (void)go_to(&w, root);
    if (json_is_object(doc))
        walk_object(&w, ROOT, doc);
    else
        expected(&w, &rules[0], "an object", doc);
    if (w.rc == HFD_INVALID)
        return fail_first(out, err);
    *out = (struct hfd_health_violations){NULL, 0, 0};
    if (w.rc != HFD_OK)
        return hfd_fail_nomem(err, "check a PacemakerCluster document");
    return HFD_OK;
}

/* ---- pruning and the manual ---- */

static const struct rule *rule_of(enum place place, const char *field)
{
    const struct rule *found = NULL;

    for (size_t i = 0; i < RULES; i++)
        if (rules[i].place == place && strcmp(rules[i].field, field) == 0 &&
            (found == NULL || found->into == NOWHERE))
            found = &rules[i];
    return found;
}

static void prune_object(json_t *obj, enum place place)
{
    const char *key;
    json_t *value;
    void *next;

    json_object_foreach_safe (obj, next, key, value) {
        const struct rule *r = rule_of(place, key);

        if (r == NULL || json_is_null(value)) {
            (void)json_object_del(obj, key);
            continue;
        }
        if (r->into != NOWHERE && json_is_object(value))
            prune_object(value, r->into);
        for (size_t i = 0; r->into != NOWHERE && i < json_array_size(value); i++)
            prune_object(json_array_get(value, i), r->into);
    }
}

/*
 * Drops the fields that the rules do not name, as a Kubernetes API server does, and null members.
 * @param doc  one that check accepted; changed in place
 */
static void prune(json_t *doc)
{
    prune_object(doc, ROOT);
}

bool hfd_health_rule_at(size_t index, struct hfd_health_rule_text *out)
{
    const struct rule *r = &rules[index];

    if (index >= RULES)
        return false;
    *out = (struct hfd_health_rule_text){r->number, place_names[r->place], r->field, r->text};
    return true;
}

/* ---- a document as plain structs ---- */

/* The reading of one document. The first failure stays. */
struct reading {
    struct hfd_arena *mem;
    hfd_rc rc;
};

static hfd_slice read_text(struct reading *r, const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);
    hfd_slice text = HFD_SLICE_NONE;

    if (!json_is_string(v))
        r->rc = r->rc == HFD_OK ? HFD_CORRUPT : r->rc;
    else
        text = hfd_arena_dup(r->mem, (hfd_slice){json_string_value(v), json_string_length(v)});
    if (json_is_string(v) && text.p == NULL)
        r->rc = HFD_NOMEM;
    return text;
}

static int64_t read_time(struct reading *r, const json_t *obj, const char *key)
{
    const hfd_slice text = read_text(r, obj, key);
    int64_t at_us = 0;

    if (r->rc == HFD_OK && hfd_time_parse_any(text, &at_us, NULL) != HFD_OK)
        r->rc = HFD_CORRUPT;
    return at_us;
}

/* Room for the items of a list of at most max. @return NULL when there is none, or no item */
static void *read_list(struct reading *r, const json_t *list, size_t max, size_t size_bytes)
{
    const size_t count = json_array_size(list);
    void *items;

    if (!json_is_array(list) || count > max) {
        r->rc = r->rc == HFD_OK ? HFD_CORRUPT : r->rc;
        return NULL;
    }
    if (count == 0 || r->rc != HFD_OK)
        return NULL;
    items = hfd_arena_array(r->mem, count, size_bytes);
    if (items == NULL)
        r->rc = HFD_NOMEM;
    return items;
}

#define CONDITIONS_MAX 16

static struct hfd_conditions read_conditions(struct reading *r, const json_t *obj)
{
    const json_t *list = json_object_get(obj, "conditions");
    struct hfd_conditions cs = {NULL, 0};

    cs.items = read_list(r, list, CONDITIONS_MAX, sizeof(*cs.items));
    for (size_t i = 0; cs.items != NULL && i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);

        cs.items[i] = (struct hfd_condition){
            .type = read_text(r, one, "type"),
            .reason = read_text(r, one, "reason"),
            .message = read_text(r, one, "message"),
            .last_transition_us = read_time(r, one, "lastTransitionTime"),
        };
        if (!hfd_status_parse(read_text(r, one, "status"), &cs.items[i].status) && r->rc == HFD_OK)
            r->rc = HFD_CORRUPT;
        cs.count++;
    }
    return cs;
}

static struct hfd_health_units read_units(struct reading *r, const json_t *node, const char *key,
                                          bool has_method)
{
    const json_t *list = json_object_get(node, key);
    struct hfd_health_units units = {NULL, 0};

    units.items = read_list(r, list, HFD_HEALTH_UNITS_MAX, sizeof(*units.items));
    for (size_t i = 0; units.items != NULL && i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);

        units.items[i] = (struct hfd_health_unit){
            .name = read_text(r, one, "name"),
            .method = has_method ? read_text(r, one, "method") : HFD_SLICE_NONE,
            .conditions = read_conditions(r, one),
        };
        units.count++;
    }
    return units;
}

static void read_node(struct reading *r, const json_t *node, struct hfd_health_node *out)
{
    const json_t *addresses = json_object_get(node, "addresses");

    *out = (struct hfd_health_node){
        .name = read_text(r, node, "nodeName"),
        .address = read_text(r, json_array_get(addresses, 0), "address"),
        .conditions = read_conditions(r, node),
        .resources = read_units(r, node, "resources", false),
        .agents = read_units(r, node, "fencingAgents", true),
    };
}

static void read_status(struct reading *r, const json_t *status, struct hfd_health_document *out)
{
    const json_t *nodes = json_object_get(status, "nodes");

    out->has_status = true;
    out->updated_us = read_time(r, status, "lastUpdated");
    out->conditions = read_conditions(r, status);
    out->nodes = read_list(r, nodes, HFD_HEALTH_NODES_MAX, sizeof(*out->nodes));
    for (size_t i = 0; out->nodes != NULL && i < json_array_size(nodes); i++) {
        read_node(r, json_array_get(nodes, i), &out->nodes[i]);
        out->node_count++;
    }
}

hfd_rc hfd_health_parse(const json_t *doc, struct hfd_arena *mem, struct hfd_health_document *out,
                        struct hfd_err *err)
{
    const json_t *status = json_object_get(doc, "status");
    struct reading r = {mem, HFD_OK};

    *out = (struct hfd_health_document){.has_status = false};
    if (status != NULL && !json_is_null(status))
        read_status(&r, status, out);
    if (r.rc == HFD_OK)
        return HFD_OK;
    *out = (struct hfd_health_document){.has_status = false};
    if (r.rc == HFD_NOMEM)
        return hfd_fail_nomem(err, "read a PacemakerCluster document");
    return hfd_fail(err, HFD_CORRUPT, "the stored PacemakerCluster document is damaged");
}

/* ---- documents as they come in ---- */

static hfd_rc keep_text(const json_t *doc, struct hfd_arena *mem, hfd_slice *out,
                        struct hfd_err *err)
{
    struct hfd_buf b;
    hfd_rc rc;

    hfd_buf_init(&b, HFD_HEALTH_DOCUMENT_MAX_BYTES);
    hfd_json_dump_for_store(&b, doc);
    rc = hfd_buf_to_arena(&b, mem, out, err);
    return rc == HFD_LIMIT ? hfd_fail(err, HFD_TOO_LARGE,
                                      "the PacemakerCluster document is larger than %zu bytes",
                                      HFD_HEALTH_DOCUMENT_MAX_BYTES)
                           : rc;
}

hfd_rc hfd_health_read(json_t *doc, const char *root, struct hfd_arena *mem,
                       struct hfd_health_reading *out, struct hfd_err *err)
{
    hfd_rc rc;

    *out = (struct hfd_health_reading){.present = true};
    rc = check(doc, root, mem, &out->violations, err);
    if (rc != HFD_OK)
        return rc;
    prune(doc);
    rc = keep_text(doc, mem, &out->text, err);
    return rc == HFD_OK ? hfd_health_parse(doc, mem, &out->document, err) : rc;
}

hfd_rc hfd_health_read_report(hfd_slice data, struct hfd_arena *mem, struct hfd_health_reading *out,
                              struct hfd_err *err)
{
    json_t *all, *doc;
    hfd_rc rc = hfd_json_parse(data, &all, err);

    *out = (struct hfd_health_reading){.present = false};
    if (rc != HFD_OK)
        return rc;
    doc = json_object_get(all, HFD_HEALTH_MEMBER);
    if (doc != NULL && !json_is_null(doc))
        rc = hfd_health_read(doc, "data." HFD_HEALTH_MEMBER, mem, out, err);
    json_decref(all);
    return rc;
}

/* ---- objects ---- */

static bool is_true(const json_t *entry, const char *type)
{
    const json_t *list = json_object_get(entry, "conditions"), *one;
    size_t i;

    json_array_foreach (list, i, one)
        if (hfd_slice_is(hfd_json_text(one, "type"), type))
            return hfd_slice_is(hfd_json_text(one, "status"), "True");
    return false;
}

static enum hfd_presence presence(bool present)
{
    return present ? HFD_PRESENCE_PRESENT : HFD_PRESENCE_NOT_PRESENT;
}

static void add(struct hfd_health_objects *out, const struct hfd_object *object,
                const json_t *entry)
{
    if (out->count < HFD_HEALTH_OBJECTS_MAX)
        out->items[out->count++] = (struct hfd_health_object){*object, entry};
}

/* The resources run on the node; its agents run elsewhere, and their conditions count. */
static void add_units(struct hfd_health_objects *out, const json_t *node, struct hfd_object object)
{
    const json_t *one;
    size_t i;

    object.kind = HFD_SLICE("Resource");
    json_array_foreach (json_object_get(node, "resources"), i, one) {
        object.name = hfd_json_text(one, "name");
        add(out, &object, one);
    }
    object.kind = HFD_SLICE("FencingAgent");
    json_array_foreach (json_object_get(node, "fencingAgents"), i, one) {
        object.name = hfd_json_text(one, "name");
        object.presence = presence(is_true(one, "Active") && is_true(one, "Started"));
        add(out, &object, one);
    }
}

static void add_node(struct hfd_health_objects *out, const json_t *node)
{
    struct hfd_object object = {
        .group = HFD_SLICE("etcd.openshift.io"),
        .version = HFD_SLICE("v1alpha1"),
        .kind = HFD_SLICE("Node"),
        .name = hfd_json_text(node, "nodeName"),
        .presence = presence(is_true(node, "Online")),
    };

    add(out, &object, node);
    object.node = object.name;
    add_units(out, node, object);
}

void hfd_health_objects(const json_t *doc, struct hfd_health_objects *out)
{
    const json_t *nodes = json_object_get(json_object_get(doc, "status"), "nodes"), *node;
    size_t i;

    out->count = 0;
    json_array_foreach (nodes, i, node) {
        add_node(out, node);
    }
}

void hfd_health_count_objects(const json_t *data, struct hfd_object_counts *counts)
{
    struct hfd_health_objects found;

    hfd_objects_count(data, counts);
    hfd_health_objects(json_object_get(data, HFD_HEALTH_MEMBER), &found);
    for (size_t i = 0; i < found.count; i++)
        hfd_object_count(&found.items[i].object, counts);
}

/* ---- two documents ---- */

enum hfd_health_follows hfd_health_follows(const struct hfd_health_document *stored,
                                           const struct hfd_health_document *next)
{
    if (stored == NULL || !stored->has_status)
        return HFD_HEALTH_NEWER;
    if (!next->has_status)
        return HFD_HEALTH_REMOVED;
    if (next->updated_us < stored->updated_us)
        return HFD_HEALTH_EARLIER;
    return next->updated_us == stored->updated_us ? HFD_HEALTH_SAME : HFD_HEALTH_NEWER;
}

hfd_rc hfd_health_join(const json_t *main, const json_t *status, json_t **out, struct hfd_err *err)
{
    json_t *of = json_object_get(status, "status"), *doc = hfd_json_copy(main);
    bool ok = doc != NULL;

    (void)json_object_del(doc, "status");
    if (ok && of != NULL && !json_is_null(of))
        ok = json_object_set(doc, "status", of) == 0;
    *out = ok ? doc : NULL;
    if (ok)
        return HFD_OK;
    json_decref(doc);
    return hfd_fail_nomem(err, "put a PacemakerCluster document together");
}
