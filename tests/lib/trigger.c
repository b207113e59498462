#include "tests/lib/trigger.h"

void trigger_arm(struct trigger *t, unsigned nth, bool for_ever)
{
    pthread_mutex_lock(&t->lock);
    t->left = nth;
    t->for_ever = for_ever;
    t->fired = 0;
    pthread_mutex_unlock(&t->lock);
}

bool trigger_fires(struct trigger *t)
{
    bool now = false;

    pthread_mutex_lock(&t->lock);
    if (t->left == 1) {
        now = true;
        t->fired++;
        if (!t->for_ever)
            t->left = 0;
    } else if (t->left > 1) {
        t->left--;
    }
    pthread_mutex_unlock(&t->lock);
    return now;
}

unsigned trigger_disarm(struct trigger *t)
{
    unsigned fired;

    pthread_mutex_lock(&t->lock);
    t->left = 0;
    fired = t->fired;
    pthread_mutex_unlock(&t->lock);
    return fired;
}
