/* See refusal.h. */
#include "driver/kube/refusal.h"

#include "driver/base/foreign.h"

#include <stdio.h>

#define NO_FIELD "<nil>"

static hfd_slice text_in(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);

    return (hfd_slice){json_string_value(v), json_string_length(v)};
}

/* Causes with the field "<nil>" speak of checks that were left out, or of the object as a whole. */
static const json_t *cause_at(const json_t *doc, size_t *at)
{
    const json_t *causes = json_object_get(json_object_get(doc, "details"), "causes");

    for (; *at < json_array_size(causes); (*at)++) {
        const json_t *c = json_array_get(causes, *at);

        if (!hfd_slice_is(text_in(c, "field"), NO_FIELD))
            return json_array_get(causes, (*at)++);
    }
    return NULL;
}

static bool has_cause(const json_t *doc, const char *reason)
{
    const json_t *c;

    for (size_t at = 0; (c = cause_at(doc, &at)) != NULL;)
        if (hfd_slice_is(text_in(c, "reason"), reason))
            return true;
    return false;
}

/* An apply with an unknown field or a wrong JSON type: 500, but it can never be accepted. */
static bool is_typed_patch(const json_t *doc)
{
    return hfd_slice_starts(text_in(doc, "message"),
                            HFD_SLICE("failed to create typed patch object"));
}

/* ---- whose word it is ---- */

static bool is_object(const json_t *doc)
{
    return text_in(json_object_get(doc, "metadata"), "name").len > 0;
}

static bool is_list(const json_t *doc)
{
    const json_t *items = json_object_get(doc, "items");

    return json_is_array(items) || json_is_null(items);
}

static bool is_status(const json_t *doc)
{
    const hfd_slice version = text_in(doc, "apiVersion");

    return hfd_slice_is(text_in(doc, "kind"), "Status") &&
           (version.len == 0 || hfd_slice_is(version, "v1"));
}

/* A Status of another code than the answer's is what was said to a proxy, not to us. */
static bool is_error(const struct hfd_kube_answer *a)
{
    const json_t *code = json_object_get(a->doc, "code");

    return is_status(a->doc) && (code == NULL || json_integer_value(code) == a->status);
}

static bool is_result(const struct hfd_kube_answer *a)
{
    switch (a->asked) {
    case HFD_KUBE_OBJECT:
        return is_object(a->doc);
    case HFD_KUBE_OBJECTS:
        return is_list(a->doc);
    case HFD_KUBE_REMOVAL:
        break;
    }
    return is_object(a->doc) ||
           (is_status(a->doc) && !hfd_slice_is(text_in(a->doc, "status"), "Failure"));
}

static enum hfd_peer_body body_of(const struct hfd_kube_answer *a)
{
    if (a->empty)
        return HFD_PEER_EMPTY;
    if (a->status >= 200 && a->status < 300)
        return is_result(a) ? HFD_PEER_RESULT : HFD_PEER_STRANGE;
    return is_error(a) ? HFD_PEER_ERROR : HFD_PEER_STRANGE;
}

static enum hfd_kube_class class_of_404(const json_t *doc)
{
    const hfd_slice kind = text_in(json_object_get(doc, "details"), "kind");

    return hfd_slice_is(kind, "namespaces") ? HFD_KUBE_NO_PLACE : HFD_KUBE_ABSENT;
}

/* The class of a 4xx of the API server. */
static enum hfd_kube_class class_of_decision(int status, const json_t *doc)
{
    switch (status) {
    case 401:
        return HFD_KUBE_FORBIDDEN;
    case 403:
        return has_cause(doc, "NamespaceTerminating") ? HFD_KUBE_NO_PLACE : HFD_KUBE_FORBIDDEN;
    case 404:
        return class_of_404(doc);
    case 409:
        return has_cause(doc, "FieldManagerConflict") ? HFD_KUBE_CONFLICT : HFD_KUBE_AGAIN;
    case 410:
        return HFD_KUBE_EXPIRED;
    default:
        return HFD_KUBE_INVALID;
    }
}

static enum hfd_kube_class class_of(const struct hfd_kube_answer *a, enum hfd_peer_word word)
{
    switch (word) {
    case HFD_PEER_DONE:
        return HFD_KUBE_DONE;
    case HFD_PEER_DECIDES:
        return class_of_decision(a->status, a->doc);
    case HFD_PEER_LATER:
        return a->status == 500 && is_typed_patch(a->doc) ? HFD_KUBE_INVALID : HFD_KUBE_UNREACHABLE;
    case HFD_PEER_FOREIGN:
        break;
    }
    if (a->status == 404 && a->no_route)
        return HFD_KUBE_NO_TYPE;
    return a->status >= 400 && !hfd_peer_is_busy(a->status) ? HFD_KUBE_FOREIGN
                                                            : HFD_KUBE_UNREACHABLE;
}

/* "failed to create typed patch object (ns/name; ...): .spec.fips: expected boolean, got &{yes}" */
static hfd_slice typed_patch_words(hfd_slice message)
{
    const char *at = memmem(message.p, message.len, "): ", 3);

    return at == NULL ? message : (hfd_slice){at + 3, message.len - (size_t)(at + 3 - message.p)};
}

static hfd_slice without_dot(hfd_slice field)
{
    return field.len > 0 && field.p[0] == '.' ? (hfd_slice){field.p + 1, field.len - 1} : field;
}

/* The field at the begin of ".spec.fips: expected ..." */
static hfd_slice field_of_words(hfd_slice words)
{
    const char *colon = words.len > 0 && words.p[0] == '.' ? memchr(words.p, ':', words.len) : NULL;

    return colon == NULL ? HFD_SLICE_NONE
                         : without_dot((hfd_slice){words.p, (size_t)(colon - words.p)});
}

static void add_text(char *out, size_t size, hfd_slice text)
{
    const size_t used = strlen(out);

    (void)snprintf(out + used, size - used, "%.*s", HFD_FOREIGN_CUT(text, 480));
    hfd_foreign_drop_halves(out);
}

/* "spec.replicas: ...; spec.x: ...": each cause that names a field. */
static void say_causes(const json_t *doc, struct hfd_kube_refusal *out)
{
    const json_t *c;

    for (size_t at = 0; (c = cause_at(doc, &at)) != NULL;) {
        const hfd_slice field = without_dot(text_in(c, "field"));
        const hfd_slice words = text_in(c, "message");

        if (out->field.len == 0)
            out->field = field;
        if (out->message[0] != '\0')
            add_text(out->message, sizeof(out->message), HFD_SLICE("; "));
        add_text(out->message, sizeof(out->message), field);
        if (field.len > 0)
            add_text(out->message, sizeof(out->message), HFD_SLICE(": "));
        add_text(out->message, sizeof(out->message), words);
    }
}

void hfd_kube_judge(const struct hfd_kube_answer *answer, struct hfd_kube_refusal *out)
{
    const enum hfd_peer_word word = hfd_peer_word_of(answer->status, body_of(answer), false);
    const hfd_slice said = text_in(answer->doc, "message");

    *out = (struct hfd_kube_refusal){.class = class_of(answer, word)};
    if (out->class == HFD_KUBE_DONE)
        return;
    if (word == HFD_PEER_FOREIGN) {
        hfd_peer_describe(
            &(struct hfd_peer_foreign){"Kubernetes'", answer->status, answer->type, answer->empty},
            out->message, sizeof(out->message));
        return;
    }
    out->reason = text_in(answer->doc, "reason");
    if (out->class == HFD_KUBE_INVALID && is_typed_patch(answer->doc)) {
        add_text(out->message, sizeof(out->message), typed_patch_words(said));
        out->field = field_of_words(typed_patch_words(said));
        return;
    }
    if (out->class == HFD_KUBE_INVALID || out->class == HFD_KUBE_CONFLICT)
        say_causes(answer->doc, out);
    if (out->message[0] != '\0')
        return;
    if (said.len > 0)
        add_text(out->message, sizeof(out->message), said);
    else
        (void)snprintf(out->message, sizeof(out->message), "the API server answered %d",
                       answer->status);
}

const char *hfd_kube_class_reason(enum hfd_kube_class class)
{
    static const char *const names[] = {
        [HFD_KUBE_DONE] = "AppliedManifestComplete",
        [HFD_KUBE_ABSENT] = "NotFound",
        [HFD_KUBE_CONFLICT] = "ApplyConflict",
        [HFD_KUBE_INVALID] = "InvalidManifest",
        [HFD_KUBE_AGAIN] = "Conflict",
        [HFD_KUBE_NO_PLACE] = "NamespaceMissing",
        [HFD_KUBE_FORBIDDEN] = "Forbidden",
        [HFD_KUBE_NO_TYPE] = "CRDMissing",
        [HFD_KUBE_EXPIRED] = "Expired",
        [HFD_KUBE_FOREIGN] = "KubernetesUnreachable",
        [HFD_KUBE_UNREACHABLE] = "KubernetesUnreachable",
    };

    return names[class];
}

int64_t hfd_kube_backoff_us(const struct hfd_kube_pauses *pauses, int attempts, uint32_t random)
{
    int64_t us = pauses->min_us;

    for (int i = 1; i < attempts && us < pauses->max_us; i++)
        us *= 2;
    if (us > pauses->max_us)
        us = pauses->max_us;
    return us - us / 4 * (int64_t)(random % 1024) / 1024;
}
