/* See compare.h. */
#include "handlers/register/compare.h"

#include <stdio.h>

#define PATH_MAX_BYTES 512
#define SHOWN_MAX 5

/* A comparison under way. */
struct differ {
    struct hfd_buf *out;
    size_t count;
    bool exact; /* a member that only `have` has is a difference */
};

static void note(struct differ *d, const char *path)
{
    if (d->count < SHOWN_MAX)
        hfd_buf_addf(d->out, "%s%s", d->count == 0 ? ": " : ", ", path);
    else if (d->count == SHOWN_MAX)
        hfd_buf_lit(d->out, " and more");
    d->count++;
}

static void differ_at(struct differ *d, const json_t *have, const json_t *want, const char *path);

static void members(struct differ *d, const json_t *have, const json_t *want, const char *path)
{
    char below[PATH_MAX_BYTES];
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)want, key, value) {
        (void)snprintf(below, sizeof(below), "%s%s%s", path, path[0] != '\0' ? "." : "", key);
        differ_at(d, json_object_get(have, key), value, below);
    }
    if (!d->exact)
        return;
    json_object_foreach ((json_t *)(uintptr_t)have, key, value) {
        (void)snprintf(below, sizeof(below), "%s%s%s", path, path[0] != '\0' ? "." : "", key);
        if (json_object_get(want, key) == NULL)
            note(d, below);
    }
}

static void differ_at(struct differ *d, const json_t *have, const json_t *want, const char *path)
{
    if (json_is_object(want) && json_is_object(have) && strlen(path) < PATH_MAX_BYTES / 2)
        members(d, have, want, path);
    else if (!d->exact && json_is_array(want) && json_array_size(want) == 0 && json_is_array(have))
        return; /* the organisation's own */
    else if (!json_equal(have, want))
        note(d, path);
}

/* Compares the members that are named. */
static void compare_named(struct differ *d, const json_t *have, const json_t *want,
                          const char *const *names)
{
    for (; *names != NULL; names++)
        differ_at(d, json_object_get(have, *names), json_object_get(want, *names), *names);
}

static bool has_member(const json_t *have, const json_t *one)
{
    struct hfd_buf none;
    bool found = false;

    hfd_buf_init(&none, 4096);
    for (size_t i = 0; !found && i < json_array_size(have); i++) {
        struct differ d = {.out = &none};

        members(&d, json_array_get(have, i), one, "");
        found = d.count == 0;
    }
    hfd_buf_fini(&none);
    return found;
}

size_t hfd_register_compare(enum hfd_register_thing thing, const json_t *have, const json_t *want,
                            struct hfd_buf *b)
{
    static const char *const type_names[] = {"use", "inputs_schema", "outputs_schema", NULL};
    static const char *const driver_names[] = {"type", "account_types", "inputs_schema", "target",
                                               NULL};
    static const char *const definition_names[] = {"type", "driver_type", "driver_inputs", NULL};
    struct differ d = {.out = b, .exact = thing != HFD_REGISTER_DEFINITION};
    const json_t *criteria = json_object_get(want, "criteria");

    compare_named(&d, have, want,
                  thing == HFD_REGISTER_TYPE     ? type_names
                  : thing == HFD_REGISTER_DRIVER ? driver_names
                                                 : definition_names);
    for (size_t i = 0; i < json_array_size(criteria); i++)
        if (!has_member(json_object_get(have, "criteria"), json_array_get(criteria, i)))
            note(&d, "criteria");
    return d.count;
}
