/* See event.h. */
#include "driver/events/event.h"

#include "driver/base/clock.h"
#include "driver/base/jsonx.h"
#include "driver/fleet/fleet.h"

/* FNV-1a. */
static uint64_t hash_of(hfd_slice text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < text.len; i++)
        h = (h ^ (unsigned char)text.p[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* 48 bits of milliseconds; 12 of the resource; 53 of the number, and 9 more of the resource. */
void hfd_event_id(const struct hfd_event_key *key, char out[HFD_EVENT_ID_LEN + 1])
{
    const uint64_t hash = hash_of(key->subject), ms = (uint64_t)(key->at_us / 1000);
    const uint64_t tail = UINT64_C(2) << 62 |
                          ((uint64_t)key->seq << 9 & UINT64_C(0x3fffffffffffffff)) |
                          (hash >> 12 & 0x1ff);

    (void)snprintf(out, HFD_EVENT_ID_LEN + 1, "%08x-%04x-7%03x-%04x-%012llx",
                   (unsigned)(ms >> 16 & 0xffffffff), (unsigned)(ms & 0xffff),
                   (unsigned)(hash & 0xfff), (unsigned)(tail >> 48),
                   (unsigned long long)(tail & UINT64_C(0xffffffffffff)));
}

static void add_reference(struct hfd_buf *b, const struct hfd_fleet_row *row)
{
    hfd_buf_lit(b, "\"href\":\"");
    hfd_fleet_href(b, row);
    hfd_buf_member_str(b, "\",\"id\":", row->id);
    hfd_buf_addf(b, ",\"kind\":\"%s\"", hfd_kind_name(row->kind));
}

void hfd_event_format(struct hfd_buf *b, const struct hfd_due_row *row)
{
    const struct hfd_fleet_row self = {.id = row->id, .kind = row->kind, .owner_id = row->owner_id};
    char id[HFD_EVENT_ID_LEN + 1];

    hfd_event_id(&(struct hfd_event_key){row->id, row->seq, row->at_us}, id);
    hfd_buf_addf(b,
                 "{\"specversion\":\"1.0\",\"id\":\"%s\",\"source\":\"hyperfleet-sentinel\","
                 "\"type\":\"com.redhat.hyperfleet.%s.reconcile\","
                 "\"datacontenttype\":\"application/json\",\"data\":{\"generation\":%lld,",
                 id, hfd_kind_word(row->kind), (long long)row->generation);
    add_reference(b, &self);
    if (row->kind == HFD_KIND_NODEPOOL) {
        hfd_buf_lit(b, ",\"owner_references\":{");
        add_reference(b, &(struct hfd_fleet_row){.id = row->owner_id, .kind = HFD_KIND_CLUSTER});
        hfd_buf_addc(b, '}');
    }
    hfd_buf_addc(b, '}');
    if (row->trace.len > 0)
        hfd_buf_member_str(b, ",\"traceparent\":", row->trace);
    hfd_buf_addc(b, '}');
}

void hfd_event_format_state(struct hfd_buf *b, const struct hfd_feed_entry *entry)
{
    const struct hfd_history_row *row = &entry->row;
    const char *state = hfd_slice_is(row->what, "degraded")  ? "degraded"
                        : hfd_slice_is(row->what, "drifted") ? "drifted"
                        : hfd_slice_is(row->what, "mended")
                            ? "mended"
                            : hfd_state_name(hfd_state_known(row->to));
    char id[HFD_EVENT_ID_LEN + 1];

    hfd_event_id(&(struct hfd_event_key){row->id, row->seq, row->at_us}, id);
    hfd_buf_addf(b,
                 "{\"specversion\":\"1.0\",\"id\":\"%s\",\"source\":\"hyperfleet-driver\","
                 "\"type\":\"hyperfleet-driver.resource.%s\"",
                 id, state);
    hfd_buf_member_str(b, ",\"subject\":", row->id);
    hfd_buf_member_time(b, ",\"time\":", row->at_us);
    hfd_buf_lit(b, ",\"datacontenttype\":\"application/json\",\"data\":");
    hfd_feed_entry_format(b, entry);
    hfd_buf_addc(b, '}');
}

bool hfd_event_passes(const struct hfd_event_filter *filter, const struct hfd_due_row *row)
{
    json_t *labels = NULL;
    bool passes = filter->kind == 0 || filter->kind == row->kind;

    if (!passes || filter->label_count == 0)
        return passes;
    if (hfd_json_parse(row->labels, &labels, NULL) != HFD_OK)
        return false;
    for (size_t i = 0; passes && i < filter->label_count; i++) {
        const hfd_slice key = filter->labels[i].key;
        const json_t *value = json_object_getn(labels, key.p, key.len);

        const hfd_slice wanted = filter->labels[i].value;

        passes = json_is_string(value) && json_string_length(value) == wanted.len &&
                 memcmp(json_string_value(value), wanted.p, wanted.len) == 0;
    }
    json_decref(labels);
    return passes;
}
