/*
 * The flags of the commands of the client: a table of each command, read from the arguments and the
 * environment. Thread: main.
 */
#ifndef HFD_CLIENT_FLAGS_H
#define HFD_CLIENT_FLAGS_H

#include "driver/base/buf.h"

enum hfd_flag_kind {
    HFD_FLAG_TEXT,     /* const char ** */
    HFD_FLAG_SWITCH,   /* bool * */
    HFD_FLAG_DURATION, /* int64_t *, microseconds */
    HFD_FLAG_LIST      /* struct hfd_flag_list *: it may be given several times */
};

#define HFD_FLAG_LIST_MAX 16
struct hfd_flag_list {
    const char *values[HFD_FLAG_LIST_MAX];
    size_t count;
};

struct hfd_flag {
    const char *name; /* "--url" */
    const char *env;  /* the variable that stands for it; NULL = none */
    enum hfd_flag_kind kind;
    void *out;
    const char *arg, *text; /* for the help */
};

#define HFD_FLAG_PLACES_MAX 2

/** The arguments of a command, and what is left of them beside flags. */
struct hfd_flags {
    const struct hfd_flag *table;
    size_t count;
    const char *places[HFD_FLAG_PLACES_MAX]; /* results: the arguments that are no flags */
    size_t place_count;
    /*
     * Takes flags that are not in the table, with their values: settings. NULL = they are an error.
     * In: room for all arguments; out: rest_count.
     */
    const char **rest;
    int rest_count;
};

/**
 * Reads the variables, then the arguments: `--name value`, `--name=value`. Results borrow from
 * both.
 * @return HFD_OK, HFD_INVALID (an unknown flag, a missing or bad value, too many arguments)
 */
HFD_MUST_CHECK hfd_rc hfd_flags_read(struct hfd_flags *flags, int argc, const char *const *argv,
                                     struct hfd_err *err);

/** Adds a line for each flag. */
void hfd_flags_help(const struct hfd_flags *flags, struct hfd_buf *b);

#endif
