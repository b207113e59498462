/* See trouble.h. */
#include "driver/base/trouble.h"

#include "driver/base/clock.h"
#include "driver/base/metrics.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* clang-format off */
#define HFD_TROUBLE_ROW_(name, text, head, runbook) [HFD_TROUBLE_##name] = {text, head, runbook},
static const struct { const char *name, *head, *runbook; } kinds[HFD_TROUBLE_KINDS] = {
    HFD_TROUBLE_LIST(HFD_TROUBLE_ROW_)
};
/* clang-format on */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list; none is taken under it */
static struct hfd_trouble list[HFD_TROUBLES_MAX];        /* in order */
static size_t count;
static atomic_uint present; /* a bit for each kind in the list; read without the lock */

const char *hfd_trouble_head(enum hfd_trouble_kind kind)
{
    return kinds[kind].head;
}

const char *hfd_trouble_runbook(enum hfd_trouble_kind kind)
{
    return kinds[kind].runbook;
}

/* Cuts between two characters. */
static void copy_text(char *out, size_t size, hfd_slice text)
{
    size_t len = text.len < size ? text.len : size - 1;

    while (len < text.len && len > 0 && ((unsigned char)text.p[len] & 0xc0) == 0x80)
        len--;
    if (len > 0)
        memcpy(out, text.p, len);
    out[len] = '\0';
}

/* The place of a problem, or of its kind's end. Under the lock. */
static size_t find(enum hfd_trouble_kind kind, const char *name, bool *found)
{
    size_t i = 0;

    while (i < count && list[i].kind <= kind &&
           (list[i].kind < kind || strcmp(list[i].name, name) != 0))
        i++;
    *found = i < count && list[i].kind == kind;
    return i;
}

/* Notes which kinds are in the list. Under the lock. */
static void note_present(void)
{
    unsigned bits = 0;

    for (size_t i = 0; i < count; i++)
        bits |= 1u << list[i].kind;
    atomic_store_explicit(&present, bits, memory_order_relaxed);
}

static void remove_at(size_t i)
{
    count--;
    memmove(&list[i], &list[i + 1], (count - i) * sizeof(list[0]));
    note_present();
}

static void set_metric(enum hfd_trouble_kind kind, const char *name, int64_t value)
{
    hfd_metric_set(HFD_METRIC_PROBLEM, HFD_LABELS(kinds[kind].name, name), value);
}

bool hfd_trouble_note(enum hfd_trouble_kind kind, hfd_slice name, int64_t now_us, hfd_slice words)
{
    struct hfd_trouble p = {.kind = kind, .since_us = now_us};
    bool found, kept;
    size_t i;

    copy_text(p.name, sizeof(p.name), name);
    (void)pthread_mutex_lock(&lock);
    i = find(kind, p.name, &found);
    if (!found && count < HFD_TROUBLES_MAX) {
        memmove(&list[i + 1], &list[i], (count - i) * sizeof(list[0]));
        list[i] = p;
        count++;
        note_present();
    }
    kept = i < count && list[i].kind == kind;
    if (kept) {
        list[i].noted_us = now_us;
        copy_text(list[i].words, sizeof(list[i].words), words);
    }
    (void)pthread_mutex_unlock(&lock);
    if (kept && !found)
        set_metric(kind, p.name, 1);
    return kept && !found;
}

void hfd_trouble_set_waiting(enum hfd_trouble_kind kind, const hfd_slice *name, int64_t waiting)
{
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++)
        if (list[i].kind == kind && (name == NULL || hfd_slice_is(*name, list[i].name)))
            list[i].waiting = waiting;
    (void)pthread_mutex_unlock(&lock);
}

bool hfd_trouble_end(enum hfd_trouble_kind kind, hfd_slice name)
{
    struct hfd_trouble p;
    bool found;
    size_t i;

    copy_text(p.name, sizeof(p.name), name);
    (void)pthread_mutex_lock(&lock);
    i = find(kind, p.name, &found);
    if (found)
        remove_at(i);
    (void)pthread_mutex_unlock(&lock);
    if (found)
        set_metric(kind, p.name, 0);
    return found;
}

void hfd_trouble_end_before(enum hfd_trouble_kind kind, int64_t at_us)
{
    char name[sizeof(list[0].name)];
    bool found;

    do {
        found = false;
        (void)pthread_mutex_lock(&lock);
        for (size_t i = 0; i < count && !found; i++)
            if (list[i].kind == kind && list[i].noted_us < at_us) {
                memcpy(name, list[i].name, sizeof(name));
                remove_at(i);
                found = true;
            }
        (void)pthread_mutex_unlock(&lock);
        if (found)
            set_metric(kind, name, 0);
    } while (found);
}

size_t hfd_troubles_copy(struct hfd_trouble out[HFD_TROUBLES_MAX])
{
    size_t n;

    (void)pthread_mutex_lock(&lock);
    n = count;
    memcpy(out, list, n * sizeof(list[0]));
    (void)pthread_mutex_unlock(&lock);
    return n;
}

void hfd_troubles_tell(enum hfd_trouble_kind kind, int64_t before_us, struct hfd_buf *b)
{
    if ((atomic_load_explicit(&present, memory_order_relaxed) & 1u << kind) == 0)
        return;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++)
        if (list[i].kind == kind && list[i].since_us < before_us)
            hfd_buf_addf(b, "; %s %s", list[i].name, list[i].words);
    (void)pthread_mutex_unlock(&lock);
}

bool hfd_troubles_degrade(const struct hfd_trouble *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (all[i].kind != HFD_TROUBLE_STRANGER &&
            (all[i].kind != HFD_TROUBLE_SILENT || all[i].waiting > 0))
            return true;
    return false;
}

void hfd_troubles_json(const struct hfd_trouble *all, size_t n, struct hfd_buf *b)
{
    hfd_buf_addc(b, '[');
    for (size_t i = 0; i < n; i++) {
        char since[HFD_TIME_TEXT_MAX];

        (void)hfd_time_format_s(all[i].since_us, since);
        hfd_buf_member_str(
            b, i > 0 ? ",{\"kind\":" : "{\"kind\":", hfd_slice_of(kinds[all[i].kind].name));
        hfd_buf_member_str(b, ",\"name\":", hfd_slice_of(all[i].name));
        hfd_buf_member_str(b, ",\"since\":", hfd_slice_of(since));
        hfd_buf_member_str(b, ",\"message\":", hfd_slice_of(all[i].words));
        hfd_buf_addf(b, ",\"waiting\":%lld", (long long)all[i].waiting);
        hfd_buf_addf(b, ",\"runbook\":\"/docs/runbook.html#%s\"}", kinds[all[i].kind].runbook);
    }
    hfd_buf_addc(b, ']');
}
