/* See failures.h. */
#include "handlers/auth/failures.h"

#include "driver/base/clock.h"

#include <arpa/inet.h>

void hfd_failures_init(struct hfd_failures *f)
{
    memset(f->items, 0, sizeof(f->items));
    f->second_us = f->lines = f->silent = 0;
    pthread_mutex_init(&f->lock, NULL);
}

void hfd_failures_fini(struct hfd_failures *f)
{
    pthread_mutex_destroy(&f->lock);
}

/* Returns what stands for an address. A host has at least 2^64 addresses of IPv6: they are one. */
static uint64_t network_of(const char *from)
{
    unsigned char bytes[sizeof(struct in6_addr)] = {0};
    uint64_t network = HFD_HASH_START;
    size_t len = 0;

    if (inet_pton(AF_INET, from, bytes) == 1)
        len = sizeof(struct in_addr);
    else if (inet_pton(AF_INET6, from, bytes) == 1)
        len = sizeof(struct in6_addr) / 2;
    if (len > 0)
        network = hfd_slice_hash(network, (hfd_slice){(const char *)bytes, len});
    else
        network = hfd_slice_hash(network, hfd_slice_of(from));
    return network != 0 ? network : 1;
}

static unsigned count_now(const struct hfd_failure *item, int64_t now_us)
{
    const int64_t faded = (now_us - item->at_us) / HFD_FAILURE_FADES_US;

    return faded >= (int64_t)item->count ? 0 : item->count - (unsigned)faded;
}

/* Finds the place of an address: its own, a free one, or that with the fewest failures. */
static struct hfd_failure *place_of(struct hfd_failures *f, uint64_t network, int64_t now_us)
{
    struct hfd_failure *set =
        &f->items[network % (HFD_FAILURES_MAX / HFD_FAILURES_WAYS) * HFD_FAILURES_WAYS];
    struct hfd_failure *best = set;

    for (size_t i = 0; i < HFD_FAILURES_WAYS; i++) {
        if (set[i].network == network)
            return &set[i];
        if (count_now(&set[i], now_us) < count_now(best, now_us))
            best = &set[i];
    }
    *best = (struct hfd_failure){.network = network, .at_us = now_us};
    return best;
}

static int64_t add(struct hfd_failures *f, const char *from, int64_t now_us)
{
    struct hfd_failure *item = place_of(f, network_of(from), now_us);

    item->count = count_now(item, now_us);
    item->at_us = now_us;
    if (item->count < HFD_FAILURES_FULL)
        item->count++;
    return (int64_t)item->count * HFD_FAILURE_DELAY_US;
}

static void take_line(struct hfd_failures *f, int64_t now_us, struct hfd_failure_note *note)
{
    if (now_us - f->second_us >= HFD_US_PER_S || now_us < f->second_us) {
        f->second_us = now_us;
        f->lines = 0;
    }
    note->log = f->lines < HFD_FAILURE_LINES_PER_S;
    if (!note->log) {
        f->silent++;
        return;
    }
    f->lines++;
    note->silent = f->silent;
    f->silent = 0;
}

struct hfd_failure_note hfd_failures_add(struct hfd_failures *f, const char *from, int64_t now_us)
{
    struct hfd_failure_note note = {.log = false};

    pthread_mutex_lock(&f->lock);
    note.delay_us = add(f, from, now_us);
    take_line(f, now_us, &note);
    pthread_mutex_unlock(&f->lock);
    return note;
}

struct hfd_failure_note hfd_failures_line(struct hfd_failures *f, int64_t now_us)
{
    struct hfd_failure_note note = {.log = false};

    pthread_mutex_lock(&f->lock);
    take_line(f, now_us, &note);
    pthread_mutex_unlock(&f->lock);
    return note;
}
