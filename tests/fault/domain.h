/*
 * The domain starts, works and stops while something fails at its n-th use, for every n, once and
 * from then on.
 *
 * A call then gives an error, or the store reports that it is broken. No failed call is answered as
 * done, and no read shows a false state. A start on what is left finds every answered call. A
 * failure prints how to see it again, and ends the program.
 */
#ifndef HFD_TESTS_FAULT_DOMAIN_H
#define HFD_TESTS_FAULT_DOMAIN_H

#include "tests/fault/load.h"
#include "tests/fault/options.h"

struct fault {
    const char *name;
    void (*arm)(const struct fault *f, unsigned nth, bool ever);
    unsigned (*disarm)(void); /* how many uses failed */
    unsigned kinds;           /* for arm */
    int code;
    unsigned fewest; /* uses that the run must have, so that the fault is one */
    bool ever;       /* also from then on */
};

/** The plan that is run. */
void fault_domain_begin(size_t batches, size_t together);
void fault_domain_end(void);
void fault_domain_walk(const struct fault *f, const struct fault_options *options);

#endif
