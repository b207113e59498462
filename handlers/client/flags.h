/*
 * The flags of the commands: a table of each command, read from the arguments and the environment.
 * Thread: main.
 */
#ifndef HFD_CLIENT_FLAGS_H
#define HFD_CLIENT_FLAGS_H

#include "driver/base/buf.h"

enum hfd_flag_kind {
    HFD_FLAG_TEXT,     /* const char ** */
    HFD_FLAG_SWITCH,   /* bool * */
    HFD_FLAG_DURATION, /* int64_t *, microseconds */
    HFD_FLAG_LIST,     /* struct hfd_flag_list *: it may be given several times */
    HFD_FLAG_CALL,     /* struct hfd_flag_call *: it may be given several times */
    HFD_FLAG_SETTING   /* const char **: the flag of the setting that it stands for */
};

#define HFD_FLAG_LIST_MAX 16
struct hfd_flag_list {
    const char *values[HFD_FLAG_LIST_MAX];
    size_t count;
};

/* Takes a value. @return HFD_OK, or why the value is refused */
struct hfd_flag_call {
    hfd_rc (*fn)(void *ctx, const char *value, struct hfd_err *err);
    void *ctx;
};

struct hfd_flag {
    const char *name; /* "--url" */
    const char *env;  /* the variable that stands for it; NULL = none */
    enum hfd_flag_kind kind;
    void *out;
    const char *arg, *text; /* for the help; text: NULL = it is not in the help */
};

#define HFD_FLAG_PLACES_MAX 2

/** The arguments that are neither in the table nor the value of a flag in the table. */
enum hfd_flag_others {
    HFD_FLAG_REFUSED,  /* flags are refused; other arguments are places */
    HFD_FLAG_SETTINGS, /* flags, with their values, are settings; other arguments are places */
    HFD_FLAG_ALL       /* all are settings, which refuse what is no flag */
};

/** The arguments of a command, and what is left of them beside flags. */
struct hfd_flags {
    const char *command;      /* "token list", for messages */
    const char *usage, *tail; /* of its help; NULL = that of the table of commands */
    const struct hfd_flag *table;
    size_t count, place_max;
    enum hfd_flag_others others;
    const char *places[HFD_FLAG_PLACES_MAX]; /* results: the arguments that are no flags */
    size_t place_count;
    /* Results: the settings. NULL = there is room in the arguments; else room for twice as many. */
    const char **rest;
    int rest_count;
};
#define HFD_FLAG_TABLE(t) .table = (t), .count = sizeof(t) / sizeof((t)[0])

/**
 * Reads the variables, then the arguments: `--name value`, `--name=value`. Results borrow from
 * both.
 * @return HFD_OK, HFD_INVALID (an unknown flag, a missing or bad value, too many arguments)
 */
HFD_MUST_CHECK hfd_rc hfd_flags_read(struct hfd_flags *flags, int argc, const char **argv,
                                     struct hfd_err *err);

/** Returns the flag with a line in the help that is nearest to a name; NULL if none is near. */
const char *hfd_flags_nearest(const struct hfd_flags *flags, hfd_slice name);

/** Adds a line for each flag. */
void hfd_flags_help(const struct hfd_flags *flags, struct hfd_buf *b);

#endif
