/* See data.h. */
#include "driver/adapters/hypershift/data.h"

#include "driver/adapters/hypershift/names.h"

struct build {
    bool failed;
};

static void put(struct build *b, json_t *obj, const char *key, json_t *value)
{
    if (value == NULL || json_object_set_new(obj, key, value) != 0)
        b->failed = true;
}

static void copy(struct build *b, json_t *to, const json_t *from, const char *key)
{
    const json_t *v = json_object_get(from, key);

    if (v != NULL)
        put(b, to, key, hfd_json_deep_copy(v));
}

/* The conditions of an object, with what a reader needs of them. */
static json_t *conditions_of(struct build *b, const json_t *object)
{
    static const char *const members[] = {"type", "status", "reason", "message"};
    const json_t *all = json_object_get(json_object_get(object, "status"), "conditions");
    json_t *list = json_array();

    for (size_t i = 0; list != NULL && i < json_array_size(all); i++) {
        json_t *one = json_object();

        for (size_t k = 0; one != NULL && k < sizeof(members) / sizeof(members[0]); k++)
            copy(b, one, json_array_get(all, i), members[k]);
        if (one == NULL || json_array_append_new(list, one) != 0)
            b->failed = true;
    }
    return list;
}

/* The entry of an object for the status query. */
static json_t *entry_of(struct build *b, const struct hfd_hs_work *w, const char *rsync)
{
    const struct hfd_hs_object *o = &w->object;
    const hfd_slice version = hfd_hs_metadata(o->doc, "resourceVersion");
    json_t *entry = json_object(), *detail;

    if (entry == NULL) {
        b->failed = true;
        return NULL;
    }
    put(b, entry, "GVK", hfd_hs_gvk(o->name.type));
    put(b, entry, "name", json_stringn(o->name.name.p, o->name.name.len));
    put(b, entry, "namespace", json_stringn(o->name.namespace.p, o->name.namespace.len));
    put(b, entry, "rsync-status", json_string(rsync));
    put(b, entry, "present", json_boolean(o->doc != NULL));
    if (o->doc == NULL)
        return entry;
    put(b, entry, "resourceVersion", json_stringn(version.p != NULL ? version.p : "", version.len));
    detail = json_object();
    put(b, entry, "detail", detail);
    if (!b->failed)
        put(b, detail, "conditions", conditions_of(b, o->doc));
    if (!b->failed && w->tree != NULL)
        put(b, detail, "tree", json_incref(w->tree));
    return entry;
}

static void put_update(struct build *b, json_t *data, const struct hfd_hs_progress *p)
{
    json_t *update = json_pack("{s:I,s:i,s:s,s:s}", "generation", (json_int_t)p->updating_to,
                               "progress", p->percent, "step", p->step != NULL ? p->step : "",
                               "message", p->message != NULL ? p->message : "");

    put(b, data, "update", update);
}

/* Outputs that were not read this time stay as they were reported. */
static void put_outputs(struct build *b, const struct hfd_hs_work *w, json_t *data,
                        hfd_slice *secrets)
{
    static const char *const members[] = {"endpoint", "version", "cluster_type", "cluster_data",
                                          "kubeconfig_secret"};
    const json_t *from = w->outputs != NULL ? w->outputs : w->prev_data;
    const json_t *plain = json_object_get(w->outputs, "secrets");
    json_t *redacted, *names = NULL;
    const char *key;
    const json_t *value;

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        copy(b, data, from, members[i]);
    *secrets = w->prev_secrets;
    if (json_object_size(plain) > 0)
        *secrets = hfd_json_dump_arena(w->mem, plain);
    if (secrets->p == NULL)
        b->failed = true;
    if (secrets->len == 0 || b->failed)
        return;
    if (hfd_json_parse(*secrets, &names, NULL) != HFD_OK) {
        *secrets = HFD_SLICE("");
        return;
    }
    redacted = json_object();
    json_object_foreach (names, key, value) {
        put(b, redacted, key, json_string("[redacted]"));
    }
    json_decref(names);
    put(b, data, "secrets", redacted);
}

hfd_rc hfd_hs_data_make(const struct hfd_hs_work *w, const struct hfd_hs_progress *p,
                        struct hfd_hs_data *out)
{
    json_t *doc = json_object(), *objects = json_array();
    struct build b = {doc == NULL || objects == NULL};

    *out = (struct hfd_hs_data){.secrets = HFD_SLICE("")};
    if (!b.failed && json_array_append_new(objects, entry_of(&b, w, p->rsync)) != 0)
        b.failed = true;
    put(&b, doc, "objects", objects);
    put(&b, doc, "progress", json_integer(p->updating_to != 0 ? 100 : p->percent));
    if (p->serves > 0)
        put(&b, doc, "serves", json_integer(p->serves));
    if (p->step != NULL && p->updating_to == 0)
        put(&b, doc, "step", json_string(p->step));
    if (p->updating_to != 0)
        put_update(&b, doc, p);
    if (w->row.kind == HFD_KIND_CLUSTER)
        put_outputs(&b, w, doc, &out->secrets);
    if (!b.failed)
        out->text = hfd_json_dump_arena(w->mem, doc);
    hfd_objects_count(doc, &out->objects);
    json_decref(doc);
    return !b.failed && out->text.p != NULL ? HFD_OK : HFD_NOMEM;
}

int hfd_hs_percent(const struct hfd_hs_work *w, int64_t generation, int percent)
{
    const json_t *update = json_object_get(w->prev_data, "update");
    json_int_t before = 0;

    if (json_integer_value(json_object_get(update, "generation")) == generation)
        before = json_integer_value(json_object_get(update, "progress"));
    else if (w->prev.adapter.len > 0 && w->prev.observed_generation == generation)
        before = json_integer_value(json_object_get(w->prev_data, "progress"));
    return before > percent && before <= 100 ? (int)before : percent;
}
