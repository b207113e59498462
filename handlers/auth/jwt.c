/* See jwt.h. */
#include "handlers/auth/jwt.h"

#include "driver/base/clock.h"
#include "driver/base/jsonx.h"

#include <math.h>

/* Cuts the next part off, up to a dot or the end. */
static hfd_slice next_part(hfd_slice *rest)
{
    const char *dot = rest->len > 0 ? memchr(rest->p, '.', rest->len) : NULL;
    const hfd_slice part = {rest->p, dot != NULL ? (size_t)(dot - rest->p) : rest->len};
    const size_t used = part.len + (dot != NULL ? 1 : 0);

    *rest = (hfd_slice){rest->p + used, rest->len - used};
    return part;
}

bool hfd_jwt_is(hfd_slice text)
{
    size_t dots = 0;

    for (size_t i = 0; i < text.len; i++)
        dots += text.p[i] == '.';
    return dots == 2;
}

/* Decodes base64url without padding (RFC 7515, 2). */
static bool decode(hfd_slice part, unsigned char *out, size_t cap, size_t *len)
{
    return part.len > 0 && memchr(part.p, '=', part.len) == NULL &&
           hfd_base64url_decode(part, out, cap, len) == HFD_OK && *len > 0;
}

static hfd_rc decode_object(hfd_slice part, json_t **out)
{
    unsigned char text[HFD_JWT_MAX_BYTES];
    size_t len;
    hfd_rc rc;

    if (!decode(part, text, sizeof(text), &len))
        return HFD_MALFORMED;
    rc = hfd_json_parse((hfd_slice){(const char *)text, len}, out, NULL);
    if (rc == HFD_OK && !json_is_object(*out))
        rc = HFD_MALFORMED;
    return rc == HFD_NOMEM ? rc : rc == HFD_OK ? HFD_OK : HFD_MALFORMED;
}

/* Reads a member that is absent or a string. */
static bool read_text(const json_t *object, const char *key, hfd_slice *out)
{
    const json_t *v = json_object_get(object, key);

    *out = HFD_SLICE("");
    if (v == NULL)
        return true;
    if (!json_is_string(v))
        return false;
    *out = (hfd_slice){json_string_value(v), json_string_length(v)};
    return true;
}

hfd_rc hfd_jwt_parse(hfd_slice text, struct hfd_jwt *out)
{
    hfd_slice rest = text, header, claims;
    hfd_rc rc;

    *out = (struct hfd_jwt){.header = NULL};
    if (text.len > HFD_JWT_MAX_BYTES || !hfd_jwt_is(text))
        return HFD_MALFORMED;
    header = next_part(&rest);
    claims = next_part(&rest);
    out->signed_part = (hfd_slice){text.p, header.len + 1 + claims.len};
    if (!decode(rest, out->signature, sizeof(out->signature), &out->signature_len))
        return HFD_MALFORMED;
    rc = decode_object(header, &out->header);
    if (rc == HFD_OK)
        rc = decode_object(claims, &out->claims);
    if (rc != HFD_OK)
        return rc;
    /* A header that must be understood is not (RFC 7515, 4.1.11). */
    if (json_object_get(out->header, "crit") != NULL || !read_text(out->header, "alg", &out->alg) ||
        !read_text(out->header, "kid", &out->kid) || !read_text(out->claims, "iss", &out->iss))
        return HFD_MALFORMED;
    return HFD_OK;
}

void hfd_jwt_fini(struct hfd_jwt *jwt)
{
    json_decref(jwt->header);
    json_decref(jwt->claims);
    *jwt = (struct hfd_jwt){.header = NULL};
}

/* Reads seconds since 1970, which may have a fraction. Beyond the range of years it is the end. */
static bool read_time(const struct hfd_jwt *jwt, const char *claim, int64_t *at_us)
{
    const double year_9999_s = 253402300799.0;
    const json_t *v = json_object_get(jwt->claims, claim);
    double s;

    *at_us = 0;
    if (v == NULL)
        return true;
    s = json_is_number(v) ? json_number_value(v) : (double)NAN;
    if (isnan(s))
        return false;
    s = s < 1e-6 ? 1e-6 : s > year_9999_s ? year_9999_s : s;
    *at_us = (int64_t)(s * (double)HFD_US_PER_S);
    return true;
}

enum hfd_auth_fault hfd_jwt_check_times(const struct hfd_jwt *jwt, int64_t now_us,
                                        int64_t *expires_us)
{
    int64_t from_us;

    if (!read_time(jwt, "exp", expires_us) || !read_time(jwt, "nbf", &from_us))
        return HFD_AUTH_MALFORMED;
    if (*expires_us != 0 && now_us >= *expires_us)
        return HFD_AUTH_EXPIRED;
    if (from_us > now_us + HFD_JWT_LATENESS_S * HFD_US_PER_S)
        return HFD_AUTH_EARLY;
    return HFD_AUTH_NONE;
}

static bool is_text(const json_t *v, hfd_slice text)
{
    return json_is_string(v) &&
           hfd_slice_eq((hfd_slice){json_string_value(v), json_string_length(v)}, text);
}

bool hfd_jwt_has_audience(const struct hfd_jwt *jwt, hfd_slice audience)
{
    const json_t *aud = json_object_get(jwt->claims, "aud"), *item;
    size_t i;

    if (!json_is_array(aud))
        return is_text(aud, audience);
    json_array_foreach (aud, i, item)
        if (is_text(item, audience))
            return true;
    return false;
}

hfd_slice hfd_jwt_text(const struct hfd_jwt *jwt, const char *claim)
{
    hfd_slice text;

    return read_text(jwt->claims, claim, &text) ? text : HFD_SLICE("");
}
