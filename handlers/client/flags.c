/* See flags.h. */
#include "handlers/client/flags.h"

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

/* A flag of others takes the next argument too, unless it has its value or a flag follows. */
static int take_rest(struct hfd_flags *flags, int at, int argc, const char *const *argv)
{
    flags->rest[flags->rest_count++] = argv[at];
    if (strchr(argv[at], '=') == NULL && at + 1 < argc && argv[at + 1][0] != '-')
        flags->rest[flags->rest_count++] = argv[++at];
    return at;
}

hfd_rc hfd_flags_read(struct hfd_flags *flags, int argc, const char *const *argv,
                      struct hfd_err *err)
{
    hfd_rc rc = read_environment(flags, err);

    flags->place_count = 0;
    flags->rest_count = 0;
    for (int i = 0; rc == HFD_OK && i < argc; i++) {
        const struct hfd_flag *f;
        const char *value;

        if (argv[i][0] != '-' || argv[i][1] == '\0') {
            rc = take_place(flags, argv[i], err);
            continue;
        }
        f = find(flags, argv[i], &value);
        if (f == NULL && flags->rest != NULL) {
            i = take_rest(flags, i, argc, argv);
            continue;
        }
        if (f == NULL)
            return hfd_fail(err, HFD_INVALID, "unknown flag %.60s", argv[i]);
        if (f->kind == HFD_FLAG_SWITCH && value == NULL) {
            *(bool *)f->out = true;
            continue;
        }
        if (value == NULL && ++i == argc)
            return hfd_fail(err, HFD_INVALID, "%s: expected %s behind it", f->name, f->arg);
        rc = take_value(f, f->name, value != NULL ? value : argv[i], err);
    }
    return rc;
}

void hfd_flags_help(const struct hfd_flags *flags, struct hfd_buf *b)
{
    for (size_t i = 0; i < flags->count; i++) {
        const struct hfd_flag *f = &flags->table[i];
        char head[40];

        (void)snprintf(head, sizeof(head), "%s%s%s", f->name, f->arg != NULL ? " " : "",
                       f->arg != NULL ? f->arg : "");
        hfd_buf_addf(b, "  %-22s %s", head, f->text);
        if (f->env != NULL)
            hfd_buf_addf(b, " (%s)", f->env);
        hfd_buf_addc(b, '\n');
    }
}
