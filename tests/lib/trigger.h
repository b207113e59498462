/*
 * Makes a chosen call fail, once or from then on. Code that can fail asks it at each call. Thread:
 * any.
 */
#ifndef HFD_TESTS_TRIGGER_H
#define HFD_TESTS_TRIGGER_H

#include <pthread.h>
#include <stdbool.h>

struct trigger {
    pthread_mutex_t lock;
    unsigned left; /* 0 = not armed */
    unsigned fired;
    bool for_ever;
};

#define TRIGGER_INIT                                                                               \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }

/** @param nth  1 = the next call; 0 = none */
void trigger_arm(struct trigger *t, unsigned nth, bool for_ever);
/** @return whether this call is to fail */
bool trigger_fires(struct trigger *t);
/** @return how many calls failed since arming */
unsigned trigger_disarm(struct trigger *t);

#endif
