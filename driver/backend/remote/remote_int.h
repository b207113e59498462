/* The remote thread's memory, which its sources share. See remote.h. */
#ifndef HFD_REMOTE_REMOTE_INT_H
#define HFD_REMOTE_REMOTE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "driver/backend/remote/breaker.h"
#include "driver/backend/remote/polls.h"
#include "driver/backend/remote/rate.h"
#include "driver/backend/remote/rules.h"
#include "driver/backend/remote/set_aside.h"
#include "driver/backend/remote/slots.h"

/* The thread reads what is due this often at least: the wall clock may be set. */
#define HFD_REMOTE_READ_EVERY_US (10 * HFD_US_PER_S)

struct hfd_remote {
    unsigned magic;
#define HFD_REMOTE_MAGIC 0x4e707e11u
    struct hfd_sink sink;
    struct hfd_remote_config config;
    const struct hfd_remote_rules *rules;
    struct hfd_remote_http *http;
    struct hfd_asked *asked;
    pthread_t thread;
    atomic_bool stop, woken; /* any thread */

    pthread_mutex_t lock;     /* of finished and state */
    struct hfd_job *finished; /* jobs that the store has done, the newest list first */
    struct hfd_remote_state state;

    /* Only the thread uses the rest. */
    struct hfd_store_reader *reader;
    struct hfd_remote_slot *slots;
    size_t slot_count, busy_slots;
    size_t jobs_out; /* with the store */
    struct hfd_remote_polls polls;
    struct hfd_remote_call greeting; /* the request at the start */
    struct hfd_hold hold;            /* of all shards that this replica holds */
    struct hfd_rate rate;
    struct hfd_breaker breaker;
    int bad; /* answers in a row that were not well */
    bool ever_well;
    bool may_be_due; /* something may be due */
    int64_t due_us;  /* wall clock: when something will be due */
    int64_t read_us; /* monotonic: when that was last read */
    int64_t order;   /* of the last slot that became READY */
    struct hfd_set_aside aside;
    int64_t pause_until_us; /* monotonic: no work is begun before */
    bool counted;
    int64_t counted_us; /* monotonic */
    bool cannot_read;   /* logged: what is due cannot be read */
};

/* With other replicas it reads as often as this: they make work due without a word. */
#define HFD_REMOTE_READ_WITH_OTHERS_US HFD_US_PER_S

int64_t hfd_remote_read_every_us(const struct hfd_remote *r);
int64_t hfd_remote_mono_us(const struct hfd_remote *r);
int64_t hfd_remote_wall_us(const struct hfd_remote *r);

#endif
