/* See kept.h. An object is seven texts, each with its length before it, and a number. */
#include "driver/status/kept.h"

#define TEXTS 7

static hfd_slice *text_at(struct hfd_object *o, unsigned i)
{
    hfd_slice *const texts[TEXTS] = {&o->provider, &o->cluster, &o->group, &o->version,
                                     &o->kind,     &o->name,    &o->node};

    return texts[i];
}

#define NO_RSYNC HFD_RSYNC_COUNT

void hfd_kept_add(struct hfd_buf *b, const struct hfd_object *object)
{
    struct hfd_object o = *object;
    const unsigned rsync = o.has_rsync ? (unsigned)o.rsync : NO_RSYNC;

    for (unsigned i = 0; i < TEXTS; i++) {
        const hfd_slice text = *text_at(&o, i);

        hfd_buf_addf(b, "%zu:", text.len);
        hfd_buf_add(b, text);
    }
    hfd_buf_addf(b, "%u;", rsync * 10 + (unsigned)o.presence * 2 + (o.observed_only ? 1 : 0));
}

/* Takes a number off, and the character behind it. */
static bool take_number(hfd_slice *rest, char end, int64_t max, int64_t *out)
{
    const char *at = rest->len > 0 ? memchr(rest->p, end, rest->len) : NULL;
    const size_t len = at != NULL ? (size_t)(at - rest->p) : 0;

    if (at == NULL || hfd_parse_i64((hfd_slice){rest->p, len}, 0, max, out, NULL) != HFD_OK)
        return false;
    *rest = (hfd_slice){at + 1, rest->len - len - 1};
    return true;
}

bool hfd_kept_next(hfd_slice *rest, struct hfd_object *out)
{
    int64_t n;

    *out = (struct hfd_object){.has_rsync = false};
    for (unsigned i = 0; i < TEXTS; i++) {
        if (!take_number(rest, ':', (int64_t)rest->len, &n) || (size_t)n > rest->len)
            return false;
        *text_at(out, i) = (hfd_slice){rest->p, (size_t)n};
        *rest = (hfd_slice){rest->p + n, rest->len - (size_t)n};
    }
    if (!take_number(rest, ';', NO_RSYNC * 10 + 9, &n) || n % 10 / 2 >= HFD_PRESENCE_COUNT)
        return false;
    out->has_rsync = n / 10 < NO_RSYNC;
    if (out->has_rsync)
        out->rsync = (enum hfd_rsync)(n / 10);
    out->presence = (enum hfd_presence)(n % 10 / 2);
    out->observed_only = n % 2 == 1;
    return true;
}

int64_t hfd_kept_verdict_format(const struct hfd_status_verdict *v)
{
    return (int64_t)(v->removed ? 1 : 0) + (v->own ? 2 : 0) + (v->spent ? 4 : 0) +
           (v->seen ? 8 : 0) + (int64_t)v->presence * 16 + (int64_t)v->rsync * 64;
}

void hfd_kept_verdict_parse(int64_t stored, struct hfd_status_verdict *out)
{
    *out = (struct hfd_status_verdict){
        .removed = (stored & 1) != 0,
        .own = (stored & 2) != 0,
        .spent = (stored & 4) != 0,
        .seen = (stored & 8) != 0,
        .presence = (enum hfd_presence)(stored / 16 % 4 % HFD_PRESENCE_COUNT),
        .rsync = (enum hfd_rsync)(stored / 64 % HFD_RSYNC_COUNT),
    };
}
