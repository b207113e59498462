/* See mark.h. */
#include "driver/core/mark.h"

#include <sodium.h>

static void add_text(crypto_generichash_state *hash, hfd_slice text)
{
    const uint64_t len = text.len; /* in front, so that no two lists read the same */

    (void)crypto_generichash_update(hash, (const unsigned char *)&len, sizeof(len));
    if (text.len > 0)
        (void)crypto_generichash_update(hash, (const unsigned char *)text.p, text.len);
}

static void add_texts(crypto_generichash_state *hash, const hfd_slice *texts, size_t count)
{
    const uint64_t n = count;

    add_text(hash, (hfd_slice){(const char *)&n, sizeof(n)});
    for (size_t i = 0; i < count; i++)
        add_text(hash, texts[i]);
}

static void add_rules(crypto_generichash_state *hash, const struct hfd_output_rule *rules,
                      size_t count)
{
    const uint64_t n = count;

    add_text(hash, (hfd_slice){(const char *)&n, sizeof(n)});
    for (size_t i = 0; i < count; i++)
        add_texts(hash, (const hfd_slice[]){rules[i].name, rules[i].adapter, rules[i].pointer}, 3);
}

int64_t hfd_driver_mark(const struct hfd_driver *d)
{
    unsigned char out[crypto_generichash_BYTES];
    crypto_generichash_state hash;
    int64_t mark;

    (void)crypto_generichash_init(&hash, NULL, 0, sizeof(out));
    add_texts(&hash,
              (const hfd_slice[]){HFD_SLICE(HFD_VERSION), d->backend,
                                  d->demo ? HFD_SLICE("demo") : HFD_SLICE("")},
              3);
    for (int kind = HFD_KIND_CLUSTER; kind <= HFD_KIND_NODEPOOL; kind++)
        add_texts(&hash, d->fleet.required[kind].items, d->fleet.required[kind].count);
    add_texts(&hash, d->terminal_reasons, d->terminal_reason_count);
    add_rules(&hash, d->output_values, d->output_value_count);
    add_rules(&hash, d->output_secrets, d->output_secret_count);
    (void)crypto_generichash_final(&hash, out, sizeof(out));
    memcpy(&mark, out, sizeof(mark));
    return mark != 0 ? mark : 1;
}
