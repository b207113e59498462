/* See options.h. */
#include "tests/fault/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/base/slice.h"

_Noreturn static void usage(const struct fault_options *o)
{
    (void)fprintf(stderr, "usage: %s [--stride N] [--seed S] [--again NAME:once|ever:N]\n",
                  o->program);
    exit(2);
}

static int64_t number(const struct fault_options *o, const char *text)
{
    int64_t value = 0;

    if (hfd_parse_i64(hfd_slice_of(text), 0, INT32_MAX, &value, NULL) != HFD_OK)
        usage(o);
    return value;
}

static void parse_again(struct fault_options *o, const char *text)
{
    char *which, *nth;

    o->again = strdup(text);
    which = o->again != NULL ? strchr(o->again, ':') : NULL;
    nth = which != NULL ? strchr(which + 1, ':') : NULL;
    if (nth == NULL)
        usage(o);
    *which = *nth = '\0';
    o->again_ever = strcmp(which + 1, "ever") == 0;
    o->again_nth = (unsigned)number(o, nth + 1);
}

void fault_options_parse(struct fault_options *o, int argc, char **argv, unsigned stride)
{
    *o =
        (struct fault_options){.program = argv[0],
                               .stride = stride,
                               .seed = (uint64_t)(hfd_clock_wall_us(&hfd_clock_system) & 0xffffff)};
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            usage(o);
        if (strcmp(argv[i], "--stride") == 0)
            o->stride = (unsigned)number(o, argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            o->seed = (uint64_t)number(o, argv[i + 1]);
        else if (strcmp(argv[i], "--again") == 0)
            parse_again(o, argv[i + 1]);
        else
            usage(o);
    }
    if (o->stride == 0)
        usage(o);
    if (o->stride > 1)
        (void)printf("--stride %u --seed %" PRIu64 "\n", o->stride, o->seed);
}

bool fault_wanted(const struct fault_options *o, const char *name, bool ever)
{
    return o->again == NULL || (strcmp(o->again, name) == 0 && o->again_ever == ever);
}

void fault_walk_init(struct fault_walk *w, const struct fault_options *o, const char *name,
                     bool ever)
{
    uint64_t seed = o->seed * 2 + (ever ? 1 : 0);

    for (const char *p = name; *p != '\0'; p++)
        seed = seed * 31 + (unsigned char)*p;
    *w = (struct fault_walk){.options = o};
    test_rng_init(&w->rng, seed);
}

bool fault_walk_next(struct fault_walk *w)
{
    const struct fault_options *o = w->options;

    if (o->again != NULL) {
        w->nth = w->nth == 0 ? o->again_nth : 0;
        return w->nth != 0;
    }
    w->nth += 1 + (unsigned)test_rng_below(&w->rng, 2 * (uint64_t)o->stride - 1);
    return true;
}
