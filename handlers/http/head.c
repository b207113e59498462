#include "handlers/http/head.h"

#include "driver/base/url.h"
#include "handlers/auth/decide.h"

#define CHUNK_DIGITS_MAX 8
#define CHUNK_EXTRA_BASE_BYTES 16384
#define REQUEST_LINE_MAX_BYTES                                                                     \
    (HFD_TARGET_MAX_BYTES + HFD_METHOD_MAX_BYTES + sizeof("  HTTP/1.1\r") + 1)

static enum hfd_head_verdict bad(struct hfd_head_fault *fault, int status, const char *reason,
                                 const char *text)
{
    *fault = (struct hfd_head_fault){.status = status, .reason = reason, .text = text};
    return HFD_HEAD_BAD;
}

/* "tchar" of RFC 9110 5.6.2 */
static bool is_token_char(char c)
{
    return hfd_is_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static size_t token_len(const char *p, size_t len)
{
    size_t n = 0;

    while (n < len && is_token_char(p[n]))
        n++;
    return n;
}

static bool is_visible(unsigned char c)
{
    return c > 0x20 && c < 0x7f;
}

static bool is_value_char(unsigned char c)
{
    return c == '\t' || (c >= 0x20 && c != 0x7f);
}

static enum hfd_head_verdict parse_version(hfd_slice text, struct hfd_head *out,
                                           struct hfd_head_fault *fault)
{
    if (hfd_slice_is(text, "HTTP/1.1"))
        out->minor = 1;
    else if (hfd_slice_is(text, "HTTP/1.0"))
        out->minor = 0;
    else
        return bad(fault, 400, "version", "the protocol is neither HTTP/1.1 nor HTTP/1.0");
    return HFD_HEAD_OK;
}

/* Returns the token in the path of a target; it has a limit of its own (handlers/auth/trust.h). */
static hfd_slice path_token(hfd_slice target)
{
    hfd_slice path, query, token = HFD_SLICE_NONE;

    if (hfd_target_split(target, &path, &query) == NULL)
        hfd_credential_cut(&path, &token);
    return token;
}

/* Parses METHOD SP target SP HTTP/1.x; `line` is without its line end. */
static enum hfd_head_verdict parse_request_line(hfd_slice line, struct hfd_head *out,
                                                struct hfd_head_fault *fault)
{
    size_t method_len = token_len(line.p, line.len);
    hfd_slice rest;
    size_t len = 0;

    if (method_len == 0 || method_len > HFD_METHOD_MAX_BYTES || method_len == line.len ||
        line.p[method_len] != ' ')
        return bad(fault, 400, "request_line",
                   "the request line does not begin with a method and one space");
    out->method = (hfd_slice){line.p, method_len};
    rest = (hfd_slice){line.p + method_len + 1, line.len - method_len - 1};
    while (len < rest.len && is_visible((unsigned char)rest.p[len]))
        len++;
    out->target = (hfd_slice){rest.p, len};
    if (len == 0 || len == rest.len || rest.p[len] != ' ')
        return bad(
            fault, 400, "request_line",
            "the request target is not made of visible ASCII characters between two single spaces");
    if (len > HFD_TARGET_MAX_BYTES && len - path_token(out->target).len > HFD_TARGET_MAX_BYTES)
        return bad(fault, 414, "target_too_long", "the request target is longer than 16384 bytes");
    if (memchr(rest.p, '#', len) != NULL)
        return bad(fault, 400, "request_line", "the request target has a fragment");
    return parse_version((hfd_slice){rest.p + len + 1, rest.len - len - 1}, out, fault);
}

/* Returns the authority of a target in absolute form; p is NULL in origin form. */
static hfd_slice target_authority(hfd_slice target)
{
    size_t skip, end;

    if (target.len > 7 && hfd_slice_ieq((hfd_slice){target.p, 7}, HFD_SLICE("http://")))
        skip = 7;
    else if (target.len > 8 && hfd_slice_ieq((hfd_slice){target.p, 8}, HFD_SLICE("https://")))
        skip = 8;
    else
        return HFD_SLICE_NONE;
    for (end = skip; end < target.len && target.p[end] != '/' && target.p[end] != '?'; end++)
        continue;
    return (hfd_slice){target.p + skip, end - skip};
}

const char *hfd_target_split(hfd_slice target, hfd_slice *path, hfd_slice *query)
{
    hfd_slice rest = target;
    const char *mark;

    if (rest.len == 0 || rest.p[0] != '/') {
        const hfd_slice authority = target_authority(target);

        if (authority.p == NULL)
            return "the request target is neither a path nor an http URL";
        if (authority.len == 0)
            return "the URL in the request line names no host";
        rest.p = authority.p + authority.len;
        rest.len = (size_t)(target.p + target.len - rest.p);
    }
    mark = rest.len != 0 ? memchr(rest.p, '?', rest.len) : NULL;
    *query = mark != NULL ? (hfd_slice){mark + 1, rest.len - (size_t)(mark - rest.p) - 1}
                          : HFD_SLICE_NONE;
    if (mark != NULL)
        rest.len = (size_t)(mark - rest.p);
    *path = rest.len != 0 ? rest : HFD_SLICE("/");
    return NULL;
}

/*
 * Checks the line that ends with the LF at scan->at. Returns HFD_HEAD_OK if it is the empty line
 * after the head.
 */
static enum hfd_head_verdict end_line(struct hfd_head_scan *scan, const char *bytes,
                                      struct hfd_head_fault *fault)
{
    size_t at = scan->at;
    bool empty;

    if (at == scan->line_start || bytes[at - 1] != '\r')
        return bad(fault, 400, "bare_lf", "a line of the head does not end in CR LF");
    empty = at - scan->line_start == 1;
    scan->line_start = at + 1;
    if (empty && scan->line_checked)
        return HFD_HEAD_OK;
    if (empty && scan->start != 0)
        return bad(fault, 400, "request_line", "the request line does not begin with a method");
    if (empty) {
        scan->start = at + 1;
    } else if (!scan->line_checked) {
        struct hfd_head head = {0};

        if (parse_request_line((hfd_slice){bytes + scan->start, at - 1 - scan->start}, &head,
                               fault) != HFD_HEAD_OK)
            return HFD_HEAD_BAD;
        scan->line_checked = true;
    }
    return HFD_HEAD_MORE;
}

/* Refuses the byte at scan->at, because the line or the head is too long with it. */
static enum hfd_head_verdict too_large(const struct hfd_head_scan *scan,
                                       struct hfd_head_fault *fault)
{
    if (!scan->line_checked)
        return bad(fault, 414, "target_too_long", "the request target is longer than 16384 bytes");
    return bad(fault, 431, "head_too_large",
               "the request line and the headers are larger than 32 KiB");
}

/* Returns how far the line or the head that is being read may go. */
static size_t room_of(const struct hfd_head_scan *scan, const char *bytes, size_t len)
{
    const hfd_slice line = {bytes + scan->start, len - scan->start};
    size_t method_len;

    if (scan->line_checked)
        return HFD_HEAD_MAX_BYTES;
    if (line.len <= REQUEST_LINE_MAX_BYTES)
        return REQUEST_LINE_MAX_BYTES;
    method_len = token_len(line.p, line.len);
    return method_len <= HFD_METHOD_MAX_BYTES &&
                   path_token((hfd_slice){line.p + method_len + 1, line.len - method_len - 1}).p !=
                       NULL
               ? HFD_HEAD_MAX_BYTES
               : REQUEST_LINE_MAX_BYTES;
}

enum hfd_head_verdict hfd_head_scan(struct hfd_head_scan *scan, const char *bytes, size_t len,
                                    struct hfd_head_fault *fault)
{
    while (scan->at < len) {
        const size_t left = scan->start + room_of(scan, bytes, len) - scan->at,
                     room = left < len - scan->at ? left : len - scan->at;
        const char *lf = memchr(bytes + scan->at, '\n', room);
        enum hfd_head_verdict verdict;

        if (scan->at == scan->start && bytes[scan->at] != '\r' && !is_token_char(bytes[scan->at]))
            return bad(fault, 400, "request_line", "the request line does not begin with a method");
        if (lf == NULL) {
            scan->at += room;
            return scan->at < len ? too_large(scan, fault) : HFD_HEAD_MORE;
        }
        scan->at = (size_t)(lf - bytes);
        verdict = end_line(scan, bytes, fault);
        if (verdict == HFD_HEAD_BAD)
            return verdict;
        scan->at++;
        if (verdict == HFD_HEAD_OK)
            return verdict;
    }
    return HFD_HEAD_MORE;
}

/* Contents of the lines of a head, gathered before the whole is checked. */
struct head_seen {
    unsigned hosts, codings, lengths;
    bool close, keep_alive;
};

static void take_connection(hfd_slice v, struct head_seen *seen)
{
    size_t at = 0;

    while (at < v.len) {
        size_t len = token_len(v.p + at, v.len - at);

        if (len == sizeof("close") - 1 &&
            hfd_slice_ieq((hfd_slice){v.p + at, len}, HFD_SLICE("close")))
            seen->close = true;
        else if (len == sizeof("keep-alive") - 1 &&
                 hfd_slice_ieq((hfd_slice){v.p + at, len}, HFD_SLICE("keep-alive")))
            seen->keep_alive = true;
        at += len != 0 ? len : 1;
    }
}

/* Checks uri-host [":" port] by its characters; enough to tell a name from a list or a URL. */
static bool host_ok(hfd_slice v)
{
    for (size_t i = 0; i < v.len; i++) {
        const char c = v.p[i];

        if (!hfd_is_alnum(c) && (c == '\0' || strchr("-._~%!$&'()*+;=:[]", c) == NULL))
            return false;
    }
    return v.len != 0;
}

/* Keeps the value of a header that a browser sends once. Of two different ones it keeps neither. */
static void take_once(hfd_slice value, hfd_slice *kept)
{
    *kept = kept->p == NULL || hfd_slice_eq(*kept, value) ? value : HFD_SLICE("");
}

static enum hfd_head_verdict take_length(hfd_slice v, struct head_seen *seen, struct hfd_head *out,
                                         struct hfd_head_fault *fault)
{
    uint64_t n = 0;

    if (v.len == 0 || v.len > 18)
        return bad(fault, 400, "content_length",
                   "Content-Length is not a number of at most 18 digits");
    for (size_t i = 0; i < v.len; i++) {
        if (v.p[i] < '0' || v.p[i] > '9')
            return bad(fault, 400, "content_length",
                       "Content-Length is not a number of at most 18 digits");
        n = n * 10 + (uint64_t)(v.p[i] - '0');
    }
    if (seen->lengths++ != 0 && n != out->content_length)
        return bad(fault, 400, "two_lengths", "there are two different Content-Length headers");
    out->content_length = n;
    return HFD_HEAD_OK;
}

static enum hfd_head_verdict take_header(hfd_slice name, hfd_slice value, struct head_seen *seen,
                                         struct hfd_head *out, struct hfd_head_fault *fault)
{
    if (hfd_slice_ieq(name, HFD_SLICE("host"))) {
        if (seen->hosts++ != 0)
            return bad(fault, 400, "two_hosts", "there is more than one Host header");
        if (!host_ok(value))
            return bad(fault, 400, "host",
                       "the Host header is not a host name with an optional port");
        out->host = value;
    } else if (hfd_slice_ieq(name, HFD_SLICE("origin"))) {
        take_once(value, &out->origin);
    } else if (hfd_slice_ieq(name, HFD_SLICE("sec-fetch-site"))) {
        take_once(value, &out->fetch_site);
    } else if (hfd_slice_ieq(name, HFD_SLICE("authorization"))) {
        take_once(value, &out->authorization);
    } else if (hfd_slice_ieq(name, HFD_SLICE("content-length"))) {
        return take_length(value, seen, out, fault);
    } else if (hfd_slice_ieq(name, HFD_SLICE("transfer-encoding"))) {
        if (seen->codings++ != 0 || !hfd_slice_ieq(value, HFD_SLICE("chunked")))
            return bad(fault, 400, "transfer_encoding",
                       "Transfer-Encoding is not exactly \"chunked\"");
    } else if (hfd_slice_ieq(name, HFD_SLICE("expect"))) {
        if (out->expects_continue || !hfd_slice_ieq(value, HFD_SLICE("100-continue")))
            return bad(fault, 417, "expectation",
                       "the only expectation that is met is 100-continue, once");
        out->expects_continue = true;
    } else if (hfd_slice_ieq(name, HFD_SLICE("connection"))) {
        take_connection(value, seen);
    }
    return HFD_HEAD_OK;
}

/* Parses name ":" OWS value OWS; `line` is without its line end. */
static enum hfd_head_verdict split_header(hfd_slice line, hfd_slice *name, hfd_slice *value,
                                          struct hfd_head_fault *fault)
{
    size_t name_len = token_len(line.p, line.len);
    size_t from, to = line.len;

    if (name_len == 0 || name_len == line.len || line.p[name_len] != ':')
        return bad(fault, 400, "header_syntax",
                   "a header line is folded, or has no name directly followed by a colon");
    *name = (hfd_slice){line.p, name_len};
    for (from = name_len + 1; from < to && (line.p[from] == ' ' || line.p[from] == '\t'); from++)
        continue;
    while (to > from && (line.p[to - 1] == ' ' || line.p[to - 1] == '\t'))
        to--;
    *value = (hfd_slice){line.p + from, to - from};
    for (size_t i = from; i < to; i++)
        if (!is_value_char((unsigned char)line.p[i]))
            return bad(fault, 400, "header_syntax", "a header value has a control character");
    return HFD_HEAD_OK;
}

/* The library compares the values of these, white space behind them included. */
static bool is_compared(hfd_slice name)
{
    return hfd_slice_ieq(name, HFD_SLICE("content-length")) ||
           hfd_slice_ieq(name, HFD_SLICE("transfer-encoding")) ||
           hfd_slice_ieq(name, HFD_SLICE("expect"));
}

void hfd_head_tidy(const struct hfd_head_scan *scan, char *bytes)
{
    size_t at = scan->start;

    while (at < scan->at) {
        const char *end = memchr(bytes + at, '\n', scan->at - at);
        const hfd_slice line = {bytes + at, (size_t)(end - bytes) - 1 - at};
        const size_t name_len = token_len(line.p, line.len);
        size_t len = line.len;

        while (len > 0 && (line.p[len - 1] == ' ' || line.p[len - 1] == '\t'))
            len--;
        if (len < line.len && len > name_len && is_compared((hfd_slice){line.p, name_len})) {
            char *value = bytes + at + name_len + 1;

            memmove(value + (line.len - len), value, len - name_len - 1);
            memset(value, ' ', line.len - len);
        }
        at = (size_t)(end - bytes) + 1;
    }
}

static enum hfd_head_verdict judge(const struct head_seen *seen, struct hfd_head *out,
                                   struct hfd_head_fault *fault)
{
    if (seen->hosts == 0 && out->minor == 1)
        return bad(fault, 400, "no_host", "there is no Host header");
    if (seen->codings != 0 && seen->lengths != 0)
        return bad(fault, 400, "both_lengths",
                   "there is a Content-Length beside a Transfer-Encoding");
    if (seen->codings != 0 && out->minor == 0)
        return bad(fault, 400, "transfer_encoding", "HTTP/1.0 knows no Transfer-Encoding");
    if (seen->codings != 0)
        out->framing = HFD_FRAMING_CHUNKED;
    else if (seen->lengths != 0)
        out->framing = HFD_FRAMING_LENGTH;
    out->keep_alive = !seen->close && (out->minor == 1 || seen->keep_alive);
    if (out->minor == 0)
        out->expects_continue = false; /* RFC 9110 10.1.1: ignored in HTTP/1.0 */
    return HFD_HEAD_OK;
}

enum hfd_head_verdict hfd_head_parse(const struct hfd_head_scan *scan, const char *bytes,
                                     struct hfd_head *out, struct hfd_head_fault *fault)
{
    struct head_seen seen = {0};
    size_t at = scan->start, count = 0;
    const char *wrong;
    bool first = true;

    *out = (struct hfd_head){.bytes = scan->at};
    for (;;) {
        const char *end = memchr(bytes + at, '\n', scan->at - at);
        hfd_slice line = {bytes + at, (size_t)(end - bytes) - 1 - at};
        hfd_slice name, value;
        size_t next = (size_t)(end - bytes) + 1;

        if (line.len == 0)
            break;
        if (first) {
            if (parse_request_line(line, out, fault) != HFD_HEAD_OK)
                return HFD_HEAD_BAD;
            wrong = hfd_target_split(out->target, &out->path, &out->query);
            if (wrong != NULL)
                return bad(fault, 400, "target_form", wrong);
            out->authority = target_authority(out->target);
            first = false;
        } else {
            if (++count > HFD_HEADERS_MAX)
                return bad(fault, 431, "too_many_headers", "there are more than 64 headers");
            if (split_header(line, &name, &value, fault) != HFD_HEAD_OK ||
                take_header(name, value, &seen, out, fault) != HFD_HEAD_OK)
                return HFD_HEAD_BAD;
            if (value.p + value.len != line.p + line.len && is_compared(name))
                out->trails = true;
            if (hfd_slice_ieq(name, HFD_SLICE("expect"))) {
                out->expect_at = at;
                out->expect_bytes = next - at;
            }
        }
        at = next;
    }
    return judge(&seen, out, fault);
}

void hfd_head_peek(const struct hfd_head_scan *scan, const char *bytes, size_t len,
                   hfd_slice *method, hfd_slice *path)
{
    size_t at = scan->start < len ? scan->start : len;
    size_t method_len = token_len(bytes + at, len - at);
    size_t end;

    *method = *path = HFD_SLICE_NONE;
    if (method_len == 0 || method_len > HFD_METHOD_MAX_BYTES || at + method_len >= len ||
        bytes[at + method_len] != ' ')
        return;
    *method = (hfd_slice){bytes + at, method_len};
    at += method_len + 1;
    if (at >= len || bytes[at] != '/')
        return;
    for (end = at; end < len && is_visible((unsigned char)bytes[end]) && bytes[end] != '?'; end++)
        continue;
    *path = (hfd_slice){bytes + at, end - at};
}

static enum hfd_head_verdict bad_chunk(struct hfd_head_fault *fault)
{
    return bad(fault, 400, "chunked", "the chunked body is not well-formed");
}

/* Takes one byte of the line "size[;extension] CR LF". */
static enum hfd_head_verdict size_byte(struct hfd_chunks *c, char byte,
                                       struct hfd_head_fault *fault)
{
    int digit = hfd_hex_value(byte);

    if (c->state == HFD_CHUNK_SIZE_LF) {
        c->state = c->left != 0 ? HFD_CHUNK_DATA : HFD_CHUNK_TRAILER;
        c->digits = 0;
        return byte == '\n' ? HFD_HEAD_MORE : bad_chunk(fault);
    }
    if (c->state == HFD_CHUNK_SIZE && digit >= 0) {
        c->left = c->left * 16 + (uint64_t)digit;
        return ++c->digits <= CHUNK_DIGITS_MAX ? HFD_HEAD_MORE : bad_chunk(fault);
    }
    if (c->digits == 0)
        return bad_chunk(fault);
    if (byte == '\r')
        c->state = HFD_CHUNK_SIZE_LF;
    else if (c->state == HFD_CHUNK_SIZE && byte == ';')
        c->state = HFD_CHUNK_EXT;
    else if (c->state == HFD_CHUNK_SIZE || !is_value_char((unsigned char)byte))
        return bad_chunk(fault);
    return HFD_HEAD_MORE;
}

/* Takes one byte after the last chunk: lines as in a head, up to an empty one. */
static enum hfd_head_verdict trailer_byte(struct hfd_chunks *c, char byte,
                                          struct hfd_head_fault *fault)
{
    if (c->state == HFD_CHUNK_TRAILER_LF) {
        c->state = c->line_bytes != 0 ? HFD_CHUNK_TRAILER : HFD_CHUNK_DONE;
        c->line_bytes = 0;
        if (byte != '\n')
            return bad_chunk(fault);
        return c->state == HFD_CHUNK_DONE ? HFD_HEAD_OK : HFD_HEAD_MORE;
    }
    if (byte == '\r') {
        c->state = HFD_CHUNK_TRAILER_LF;
        return HFD_HEAD_MORE;
    }
    if (c->line_bytes++ == 0 ? !is_token_char(byte) : !is_value_char((unsigned char)byte))
        return bad_chunk(fault);
    return HFD_HEAD_MORE;
}

/* Takes one byte outside of chunk data. */
static enum hfd_head_verdict chunk_byte(struct hfd_chunks *c, char byte,
                                        struct hfd_head_fault *fault)
{
    switch (c->state) {
    case HFD_CHUNK_SIZE:
    case HFD_CHUNK_EXT:
    case HFD_CHUNK_SIZE_LF:
        return size_byte(c, byte, fault);
    case HFD_CHUNK_DATA_CR:
        c->state = HFD_CHUNK_DATA_LF;
        return byte == '\r' ? HFD_HEAD_MORE : bad_chunk(fault);
    case HFD_CHUNK_DATA_LF:
        c->state = HFD_CHUNK_SIZE;
        return byte == '\n' ? HFD_HEAD_MORE : bad_chunk(fault);
    case HFD_CHUNK_TRAILER:
    case HFD_CHUNK_TRAILER_LF:
        return trailer_byte(c, byte, fault);
    case HFD_CHUNK_DATA:
    case HFD_CHUNK_DONE:
        break;
    }
    return bad_chunk(fault);
}

enum hfd_head_verdict hfd_chunks_walk(struct hfd_chunks *c, hfd_slice bytes, uint64_t body_max,
                                      size_t *used, struct hfd_head_fault *fault)
{
    size_t at = 0;

    *used = bytes.len;
    while (at < bytes.len) {
        enum hfd_head_verdict verdict;

        if (c->state == HFD_CHUNK_DATA) {
            size_t left = bytes.len - at, step = left < c->left ? left : (size_t)c->left;

            at += step;
            c->left -= step;
            c->body_bytes += step;
            if (c->left == 0)
                c->state = HFD_CHUNK_DATA_CR;
            continue;
        }
        verdict = chunk_byte(c, bytes.p[at++], fault);
        if (verdict == HFD_HEAD_BAD)
            return verdict;
        /*
         * Checks the size as soon as it is known, so that a large body is refused before it is
         * sent.
         */
        if (c->left > body_max - c->body_bytes)
            return bad(fault, 413, "body_too_large", "the request body is too large");
        /* Sizes and extensions have a limit too. */
        if (++c->extra_bytes > body_max + CHUNK_EXTRA_BASE_BYTES)
            return bad(fault, 413, "body_too_large",
                       "the chunked body has too much beside its data");
        if (verdict == HFD_HEAD_OK) {
            *used = at;
            return HFD_HEAD_OK;
        }
    }
    return HFD_HEAD_MORE;
}

/* ---- where a request comes from: web pages ---- */

static bool is_listed(const struct hfd_list *hosts, hfd_slice host)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (host.len > 0 && hfd_slice_ieq(hfd_authority_host(hosts->items[i]), host))
            return true;
    return false;
}

static bool is_own(const struct hfd_list *hosts, hfd_slice authority)
{
    const hfd_slice host = hfd_authority_host(authority);

    return hfd_host_is_loopback(host) || is_listed(hosts, host);
}

/* An origin is local if it is this listener itself, or a name of http.hosts. */
static bool is_local(const struct hfd_list *hosts, const struct hfd_head *head)
{
    const hfd_slice authority = hfd_url_authority(head->origin);

    return (authority.len != 0 && hfd_slice_ieq(authority, head->host)) ||
           is_listed(hosts, hfd_authority_host(authority));
}

static bool is_own_host(const struct hfd_list *hosts, const struct hfd_head *head)
{
    return (head->host.p == NULL || is_own(hosts, head->host)) &&
           (head->authority.p == NULL || is_own(hosts, head->authority));
}

static bool is_own_origin(const struct hfd_list *hosts, const struct hfd_head *head)
{
    return (head->origin.p == NULL || is_local(hosts, head)) &&
           (head->fetch_site.p == NULL || hfd_slice_ieq(head->fetch_site, HFD_SLICE("none")) ||
            hfd_slice_ieq(head->fetch_site, HFD_SLICE("same-origin")));
}

static bool is_reading(hfd_slice method)
{
    return hfd_slice_is(method, "GET") || hfd_slice_is(method, "HEAD");
}

enum hfd_head_verdict hfd_origin_check(const struct hfd_origin_rule *rule,
                                       const struct hfd_head *head, struct hfd_head_fault *fault)
{
    if (rule->local && !rule->authenticated && !is_own_host(rule->hosts, head)) {
        *fault = (struct hfd_head_fault){
            .status = 421,
            .reason = "foreign_host",
            .text = "the Host is neither a loopback name or address nor one of http.hosts"};
        return HFD_HEAD_BAD;
    }
    if (!(rule->authenticated && !rule->admin && is_reading(head->method)) &&
        !is_own_origin(rule->hosts, head)) {
        *fault = (struct hfd_head_fault){.status = 403,
                                         .reason = "foreign_origin",
                                         .text = "a browser sent this request from another origin"};
        return HFD_HEAD_BAD;
    }
    return HFD_HEAD_OK;
}

/* ---- clients behind proxies ---- */

#define FORWARDED_FOR HFD_SLICE("x-forwarded-for")

bool hfd_peer_is_in(const struct hfd_list *networks, const struct hfd_host_address *a)
{
    for (size_t i = 0; i < networks->count; i++)
        if (hfd_network_has(networks->items[i], a))
            return true;
    return false;
}

/* Cuts the text before the separator off the rest, whose p is NULL behind the last one. */
static hfd_slice cut(hfd_slice *rest, char separator)
{
    const char *end = rest->len > 0 ? memchr(rest->p, separator, rest->len) : NULL;
    hfd_slice item = *rest;

    *rest = HFD_SLICE_NONE;
    if (end != NULL) {
        *rest = (hfd_slice){end + 1, item.len - (size_t)(end + 1 - item.p)};
        item.len = (size_t)(end - item.p);
    }
    return item;
}

/*
 * Goes along the hops of one line, from the client to the proxy. The client is the last hop that is
 * no trusted proxy, or the first one.
 * @param client  of the lines before it; found tells if there were hops
 */
static void take_hops(const struct hfd_list *trusted, hfd_slice line,
                      struct hfd_host_address *client, bool *found)
{
    while (line.p != NULL) {
        struct hfd_host_address hop;

        if (!hfd_host_address_parse(hfd_slice_trim(cut(&line, ',')), &hop))
            hop = (struct hfd_host_address){.known = false};
        if (!*found || !hfd_peer_is_in(trusted, &hop))
            *client = hop;
        *found = true;
    }
}

struct hfd_host_address hfd_peer_client(const struct hfd_settings *settings,
                                        const struct hfd_host_address *peer, hfd_slice head)
{
    const struct hfd_list *trusted = &settings->http_trusted_proxies;
    struct hfd_host_address client = *peer;
    bool found = false;

    if (!hfd_peer_is_in(trusted, peer))
        return client;
    while (head.p != NULL) {
        hfd_slice line = cut(&head, '\n'), value = cut(&line, '\r');

        if (hfd_slice_ieq(cut(&value, ':'), FORWARDED_FOR))
            take_hops(trusted, value, &client, &found);
    }
    return client;
}
