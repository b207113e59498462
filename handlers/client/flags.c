/* See flags.h. */
#include "handlers/client/flags.h"

#include "driver/base/nearest.h"

#include <stdlib.h>

static hfd_rc take_value(const struct hfd_flag *f, const char *name, const char *value,
                         struct hfd_err *err)
{
    if (f->kind == HFD_FLAG_TEXT) {
        *(const char **)f->out = value;
        return HFD_OK;
    }
    if (f->kind == HFD_FLAG_DURATION) {
        struct hfd_err why;

        return hfd_parse_duration_us(hfd_slice_of(value), f->out, &why) == HFD_OK
                   ? HFD_OK
                   : hfd_fail(err, HFD_INVALID, "%s: %s", name, why.msg);
    }
    if (f->kind == HFD_FLAG_LIST) {
        struct hfd_flag_list *list = f->out;

        if (list->count == HFD_FLAG_LIST_MAX)
            return hfd_fail(err, HFD_INVALID, "%s: expected at most %d of them", name,
                            HFD_FLAG_LIST_MAX);
        list->values[list->count++] = value;
        return HFD_OK;
    }
    if (f->kind == HFD_FLAG_CALL) {
        const struct hfd_flag_call *call = f->out;
        struct hfd_err why;
        const hfd_rc rc = call->fn(call->ctx, value, &why);

        return rc == HFD_OK ? rc : hfd_fail(err, rc, "%s: %s", name, why.msg);
    }
    return hfd_fail(err, HFD_INVALID, "%s takes no value", name);
}

static hfd_rc read_environment(const struct hfd_flags *flags, struct hfd_err *err)
{
    for (size_t i = 0; i < flags->count; i++) {
        const struct hfd_flag *f = &flags->table[i];
        const char *value = f->env != NULL ? getenv(f->env) : NULL;
        const hfd_rc rc =
            value != NULL && value[0] != '\0' ? take_value(f, f->env, value, err) : HFD_OK;

        if (rc != HFD_OK)
            return rc;
    }
    return HFD_OK;
}

/* Finds the flag of an argument, and its value behind "=", if it has one. */
static const struct hfd_flag *find(const struct hfd_flags *flags, const char *arg,
                                   const char **value)
{
    const char *eq = strchr(arg, '=');
    const hfd_slice name = {arg, eq != NULL ? (size_t)(eq - arg) : strlen(arg)};

    *value = eq != NULL ? eq + 1 : NULL;
    for (size_t i = 0; i < flags->count; i++)
        if (hfd_slice_is(name, flags->table[i].name))
            return &flags->table[i];
    return NULL;
}

static hfd_rc take_place(struct hfd_flags *flags, const char *arg, struct hfd_err *err)
{
    if (flags->place_count == HFD_FLAG_PLACES_MAX)
        return hfd_fail(err, HFD_INVALID, "unexpected argument %.60s", arg);
    flags->places[flags->place_count++] = arg;
    return HFD_OK;
}

/* A setting takes the next argument too, unless it has its value or a flag follows. */
static int take_rest(struct hfd_flags *flags, int at, int argc, const char **argv)
{
    flags->rest[flags->rest_count++] = argv[at];
    if (strchr(argv[at], '=') == NULL && at + 1 < argc && argv[at + 1][0] != '-')
        flags->rest[flags->rest_count++] = argv[++at];
    return at;
}

static const char *nearest(const struct hfd_flags *flags, hfd_slice name, bool shown)
{
    struct hfd_nearest n = hfd_nearest_to(name);
    const char *near = NULL;

    for (size_t i = 0; i < flags->count; i++)
        if ((flags->table[i].text != NULL || !shown) &&
            hfd_nearest_consider(&n, hfd_slice_of(flags->table[i].name)))
            near = flags->table[i].name;
    return near;
}

const char *hfd_flags_nearest(const struct hfd_flags *flags, hfd_slice name)
{
    return nearest(flags, name, true);
}

static hfd_rc unknown_flag(const struct hfd_flags *flags, const char *arg, struct hfd_err *err)
{
    const hfd_slice name = {arg, strcspn(arg, "=")};
    const char *near = nearest(flags, name, false);

    return hfd_fail(
        err, HFD_INVALID, "unknown flag %.*s%s%s%s", (int)(name.len < 60 ? name.len : 60), arg,
        near != NULL ? "; did you mean " : "", near != NULL ? near : "", near != NULL ? "?" : "");
}

/* Takes the flag at argv[*at], with its value. */
static hfd_rc take_flag(struct hfd_flags *flags, int *at, int argc, const char **argv,
                        struct hfd_err *err)
{
    const char *value;
    const struct hfd_flag *f = find(flags, argv[*at], &value);

    if (f == NULL && flags->others == HFD_FLAG_REFUSED)
        return unknown_flag(flags, argv[*at], err);
    if (f == NULL) {
        *at = take_rest(flags, *at, argc, argv);
    } else if (f->kind == HFD_FLAG_SETTING) {
        flags->rest[flags->rest_count++] = *(const char *const *)f->out;
        if (value != NULL)
            flags->rest[flags->rest_count++] = value;
    } else if (f->kind == HFD_FLAG_SWITCH && value == NULL) {
        *(bool *)f->out = true;
    } else {
        if (value == NULL && ++*at == argc)
            return hfd_fail(err, HFD_INVALID,
                            f->kind == HFD_FLAG_CALL ? "%s: expected a value"
                                                     : "%s: expected %s behind it",
                            f->name, f->arg);
        return take_value(f, f->name, value != NULL ? value : argv[*at], err);
    }
    return HFD_OK;
}

hfd_rc hfd_flags_read(struct hfd_flags *flags, int argc, const char **argv, struct hfd_err *err)
{
    hfd_rc rc = read_environment(flags, err);

    flags->place_count = 0;
    flags->rest_count = 0;
    if (flags->rest == NULL)
        flags->rest = argv;
    for (int i = 0; rc == HFD_OK && i < argc; i++) {
        if (argv[i][0] == '-' && argv[i][1] != '\0')
            rc = take_flag(flags, &i, argc, argv, err);
        else if (flags->others == HFD_FLAG_ALL)
            flags->rest[flags->rest_count++] = argv[i];
        else
            rc = take_place(flags, argv[i], err);
    }
    if (rc == HFD_OK && flags->place_count > flags->place_max)
        rc = hfd_fail(err, HFD_INVALID, "unexpected argument %.60s",
                      flags->places[flags->place_max]);
    return rc;
}

void hfd_flags_help(const struct hfd_flags *flags, struct hfd_buf *b)
{
    for (size_t i = 0; i < flags->count; i++) {
        const struct hfd_flag *f = &flags->table[i];
        char head[40];

        if (f->text == NULL)
            continue;
        (void)snprintf(head, sizeof(head), "%s%s%s", f->name, f->arg != NULL ? " " : "",
                       f->arg != NULL ? f->arg : "");
        hfd_buf_addf(b, "  %-22s %s", head, f->text);
        if (f->env != NULL && strstr(f->text, f->env) == NULL)
            hfd_buf_addf(b, " (%s)", f->env);
        hfd_buf_addc(b, '\n');
    }
}
