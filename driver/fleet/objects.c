/* See objects.h. */
#include "driver/fleet/objects.h"

#include <stdio.h>

static const char *const rsync_names[HFD_RSYNC_COUNT] = {
    [HFD_RSYNC_PENDING] = "Pending",       [HFD_RSYNC_APPLIED] = "Applied",
    [HFD_RSYNC_FAILED] = "Failed",         [HFD_RSYNC_RETRYING] = "Retrying",
    [HFD_RSYNC_TERMINATED] = "Terminated",
};

static const char *const presence_names[HFD_PRESENCE_COUNT] = {
    [HFD_PRESENCE_UNKNOWN] = "Unknown",
    [HFD_PRESENCE_NOT_PRESENT] = "NotPresent",
    [HFD_PRESENCE_PRESENT] = "Present",
};

const char *hfd_rsync_name(enum hfd_rsync s)
{
    return rsync_names[s];
}

static bool rsync_parse(hfd_slice text, enum hfd_rsync *out)
{
    if (hfd_slice_is(text, "Instantiated")) /* the words of EMCO's table and example */
        text = hfd_slice_of(rsync_names[HFD_RSYNC_APPLIED]);
    else if (hfd_slice_is(text, "Deleted"))
        text = hfd_slice_of(rsync_names[HFD_RSYNC_TERMINATED]);
    for (unsigned i = 0; i < HFD_RSYNC_COUNT; i++)
        if (hfd_slice_is(text, rsync_names[i])) {
            *out = (enum hfd_rsync)i;
            return true;
        }
    return false;
}

const char *hfd_presence_name(enum hfd_presence p)
{
    return presence_names[p];
}

/* A member that is a string; an empty slice for anything else. */
static hfd_slice text_of(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    return json_is_string(v) ? (hfd_slice){json_string_value(v), json_string_length(v)}
                             : HFD_SLICE("");
}

/* Splits "apps/v1"; the group of "v1" is empty. */
static void split_version(hfd_slice text, struct hfd_object *out)
{
    const char *slash = text.len > 0 ? memchr(text.p, '/', text.len) : NULL;
    const size_t at = slash != NULL ? (size_t)(slash - text.p) : 0;

    out->group = (hfd_slice){text.p, at};
    out->version = slash != NULL ? (hfd_slice){slash + 1, text.len - at - 1} : text;
}

/* The kind is in GVK, or in apiVersion and kind of the entry or of its detail. */
static void read_kind(const json_t *entry, struct hfd_object *out)
{
    const json_t *gvk = json_object_get(entry, "GVK"), *from = entry;

    if (json_is_object(gvk)) {
        out->group = text_of(gvk, "Group");
        out->version = text_of(gvk, "Version");
        out->kind = text_of(gvk, "Kind");
        return;
    }
    if (text_of(entry, "kind").len == 0)
        from = json_object_get(entry, "detail");
    out->kind = text_of(from, "kind");
    split_version(text_of(from, "apiVersion"), out);
}

bool hfd_object_read(const json_t *entry, struct hfd_object *out)
{
    const json_t *present;

    *out = (struct hfd_object){.name = text_of(entry, "name")};
    if (out->name.len == 0)
        return false;
    read_kind(entry, out);
    out->provider = text_of(entry, "cluster-provider");
    out->cluster = text_of(entry, "cluster");
    out->has_rsync = rsync_parse(text_of(entry, "rsync-status"), &out->rsync);
    out->observed_only = json_is_true(json_object_get(entry, "observed-only"));
    present = json_object_get(entry, "present");
    if (json_is_boolean(present))
        out->presence = json_is_true(present) ? HFD_PRESENCE_PRESENT : HFD_PRESENCE_NOT_PRESENT;
    return true;
}

void hfd_object_count(const struct hfd_object *object, struct hfd_object_counts *counts)
{
    counts->presence[object->presence]++;
    if (object->observed_only)
        return;
    if (object->has_rsync)
        counts->own[object->rsync]++;
    else
        counts->other++;
}

void hfd_objects_count(const json_t *data, struct hfd_object_counts *counts)
{
    const json_t *list = json_object_get(data, "objects"), *entry;
    struct hfd_object object;
    size_t i;

    json_array_foreach (list, i, entry)
        if (hfd_object_read(entry, &object))
            hfd_object_count(&object, counts);
}

hfd_rc hfd_objects_check(const json_t *data, struct hfd_err *err)
{
    const json_t *list = json_object_get(data, "objects"), *entry;
    enum hfd_rsync read;
    char field[64];
    size_t i;

    json_array_foreach (list, i, entry) {
        const json_t *word = json_object_get(entry, "rsync-status");

        if (word == NULL || json_is_null(word) ||
            rsync_parse(text_of(entry, "rsync-status"), &read))
            continue;
        (void)snprintf(field, sizeof(field), "data.objects[%zu].rsync-status", i);
        return hfd_fail_field(err, HFD_INVALID, field,
                              "rsync-status must be one of Pending, Applied (or Instantiated), "
                              "Failed, Retrying, Terminated (or Deleted)");
    }
    return HFD_OK;
}

bool hfd_object_counts_none(const struct hfd_object_counts *counts)
{
    int64_t all = 0;

    for (unsigned i = 0; i < HFD_PRESENCE_COUNT; i++)
        all += counts->presence[i];
    return all == 0;
}

#define NUMBERS (HFD_RSYNC_COUNT + 1 + HFD_PRESENCE_COUNT)

static int64_t *number_at(struct hfd_object_counts *counts, unsigned i)
{
    if (i < HFD_RSYNC_COUNT)
        return &counts->own[i];
    return i == HFD_RSYNC_COUNT ? &counts->other : &counts->presence[i - HFD_RSYNC_COUNT - 1];
}

hfd_rc hfd_object_counts_format(const struct hfd_object_counts *counts, struct hfd_arena *mem,
                                hfd_slice *out)
{
    struct hfd_object_counts copy = *counts;
    struct hfd_buf b;

    *out = HFD_SLICE("");
    if (hfd_object_counts_none(counts))
        return HFD_OK;
    hfd_buf_init(&b, NUMBERS * 24);
    for (unsigned i = 0; i < NUMBERS; i++) {
        if (i > 0)
            hfd_buf_addc(&b, ' ');
        hfd_buf_i64(&b, *number_at(&copy, i));
    }
    return hfd_buf_to_arena(&b, mem, out, NULL);
}

void hfd_object_counts_parse(hfd_slice stored, struct hfd_object_counts *out)
{
    struct hfd_object_counts read = {.other = 0};

    *out = read;
    for (unsigned i = 0; i < NUMBERS; i++) {
        const char *space = stored.len > 0 ? memchr(stored.p, ' ', stored.len) : NULL;
        const size_t len = space != NULL ? (size_t)(space - stored.p) : stored.len;

        if ((space == NULL) != (i == NUMBERS - 1) ||
            hfd_parse_i64((hfd_slice){stored.p, len}, 0, INT32_MAX, number_at(&read, i), NULL) !=
                HFD_OK)
            return;
        stored = (hfd_slice){stored.p + len + 1, space != NULL ? stored.len - len - 1 : 0};
    }
    *out = read;
}
