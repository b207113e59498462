/* See foreign.h. */
#include "driver/base/foreign.h"

#include "driver/base/utf8.h"

/* Characters that are shown by their number. All are below U+10000, as the form has four digits. */
static const struct {
    unsigned first, last;
} hidden[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c}, /* controls; Arabic letter mark */
    {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, /* no width, line ends, directions */
    {0xfeff, 0xfeff}, {0xfff9, 0xfffb},                   /* byte order mark, annotations */
};

/* The number of a whole character of n bytes; those of four bytes are not told apart. */
static unsigned number_of(const char *p, size_t n)
{
    const unsigned char *u = (const unsigned char *)p;

    return n == 1   ? u[0]
           : n == 2 ? (u[0] & 0x1fU) << 6 | (u[1] & 0x3fU)
           : n == 3 ? (u[0] & 0xfU) << 12 | (u[1] & 0x3fU) << 6 | (u[2] & 0x3fU)
                    : 0x10000;
}

static bool is_hidden(unsigned number)
{
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
        if (number >= hidden[i].first && number <= hidden[i].last)
            return true;
    return false;
}

size_t hfd_foreign_char(hfd_slice text, char out[HFD_FOREIGN_CHAR_MAX], size_t *used)
{
    static const char hex[] = "0123456789abcdef", plain[] = "\n\r\t", letters[] = "nrt";
    const size_t n = hfd_utf8_len(text);
    const char *at;
    unsigned number;

    *used = n == 0 ? 1 : n;
    if (n == 0) {
        memcpy(out, "\xef\xbf\xbd", 3);
        return 3;
    }
    number = number_of(text.p, n);
    if (!is_hidden(number)) {
        memcpy(out, text.p, n);
        return n;
    }
    out[0] = '\\';
    at = number != 0 && number < ' ' ? strchr(plain, (int)number) : NULL;
    if (at != NULL) {
        out[1] = letters[at - plain];
        return 2;
    }
    out[1] = 'u';
    for (int i = 0; i < 4; i++)
        out[2 + i] = hex[number >> (12 - 4 * i) & 0xfU];
    return HFD_FOREIGN_CHAR_MAX;
}

hfd_slice hfd_foreign_next(struct hfd_foreign *f, char out[HFD_FOREIGN_CHAR_MAX])
{
    const bool secret = f->rest.p == f->secret.p;
    size_t used = secret                ? f->secret.len
                  : f->secret.p == NULL ? f->rest.len
                                        : (size_t)(f->secret.p - f->rest.p);
    hfd_slice piece = {f->rest.p, hfd_json_plain((hfd_slice){f->rest.p, used})};

    if (secret)
        piece = HFD_SLICE(HFD_FOREIGN_REDACTED);
    else if (piece.len > 0)
        used = piece.len;
    else
        piece = (hfd_slice){out, hfd_foreign_char(f->rest, out, &used)};
    f->rest = (hfd_slice){f->rest.p + used, f->rest.len - used};
    if (secret)
        f->secret = hfd_foreign_secret(f->rest);
    return piece;
}

/* @param blanks  a blank stands in the place of each hidden character */
static size_t write_line(hfd_slice text, size_t max, bool blanks, char *out)
{
    struct hfd_foreign f = hfd_foreign_of(text);
    char shown[HFD_FOREIGN_CHAR_MAX];
    size_t n = 0, fits = 0; /* fits: where "..." has room */

    while (f.rest.len > 0) {
        const hfd_slice next = hfd_foreign_next(&f, shown);
        const bool is_run = next.p != shown; /* of characters of one byte */
        const hfd_slice piece =
            blanks && !is_run && next.len > 1 && shown[0] == '\\' ? HFD_SLICE(" ") : next;
        const size_t take = piece.len <= max - n ? piece.len : is_run ? max - n : 0;

        memcpy(out + n, piece.p, take);
        if (n + take <= max - 3)
            fits = n + take;
        else if (is_run && n < max - 3)
            fits = max - 3;
        n += take;
        if (take < piece.len) {
            memcpy(out + fits, "...", 3);
            return fits + 3;
        }
    }
    return n;
}

size_t hfd_foreign_line(hfd_slice text, size_t max, char *out)
{
    return write_line(text, max, false, out);
}

size_t hfd_foreign_sentence(hfd_slice text, size_t max, char *out)
{
    return write_line(text, max, true, out);
}

/* ---- secrets ---- */

#define TOKEN_WHOLE 40 /* characters behind "hfd_": three may have got lost at the end */
#define TOKEN_PIECE 16 /* of both cases: names of ours, of metrics or variables, have one */
#define PART_LONG 20   /* of a JWT */
#define PARTS_MIN 3

/* Reads a character that may be encoded. @return the bytes that it takes */
static size_t read_char(hfd_slice s, char *c)
{
    size_t at = 0;

    *c = s.p[0];
    if (s.p[0] == '%') {
        at = 1;
        while (s.len - at >= 4 && s.p[at] == '2' && s.p[at + 1] == '5')
            at += 2;
    } else if (s.len >= 6 && memcmp(s.p, "\\u00", 4) == 0) {
        at = 4;
    } else if (s.len >= 2 && memcmp(s.p, "\\\\", 2) == 0) {
        return 2; /* an escaped backslash */
    }
    if (at == 0 || s.len - at < 2 || hfd_hex_value(s.p[at]) < 0 || hfd_hex_value(s.p[at + 1]) < 0)
        return 1;
    *c = (char)(hfd_hex_value(s.p[at]) << 4 | hfd_hex_value(s.p[at + 1]));
    return at + 2;
}

/* A word of base64url and dots, as far as it is read. */
struct word {
    size_t begin, end; /* end: behind the last character that is no dot */
    /* The present part, between two dots: */
    size_t part;   /* its characters */
    char lead[3];  /* the first ones */
    bool capital;  /* it has a capital letter */
    char last[4];  /* the last ones, in lower case */
    size_t at[4];  /* where they are */
    size_t behind; /* the characters behind the first "hfd_" */
    size_t token;  /* where that is */
    bool has_token, token_capital, token_small;
    /* The secret: */
    size_t long_parts; /* one after the other */
    size_t secret;     /* where it begins */
    bool found;
};

static void find_at(struct word *w, size_t at)
{
    w->secret = w->found && w->secret < at ? w->secret : at;
    w->found = true;
}

/* Judges a part at its end. The header of a JWT begins as {" or { does in base64. */
static void end_part(struct word *w)
{
    const bool header = w->part >= TOKEN_PIECE && w->capital && w->lead[0] == 'e' &&
                        (w->lead[1] == 'y' || w->lead[1] == 'w');

    if (w->has_token && (w->behind >= TOKEN_WHOLE ||
                         (w->behind >= TOKEN_PIECE && w->token_capital && w->token_small)))
        find_at(w, w->token);
    w->long_parts = w->part >= PART_LONG ? w->long_parts + 1 : 0;
    if (header || w->long_parts >= PARTS_MIN)
        find_at(w, w->begin);
    w->part = 0;
    w->capital = w->has_token = false;
    memset(w->last, 0, sizeof(w->last));
}

static void add_char(struct word *w, char c, size_t at)
{
    const bool capital = c >= 'A' && c <= 'Z';

    if (w->part < sizeof(w->lead))
        w->lead[w->part] = c;
    w->part++;
    w->capital = w->capital || capital;
    if (w->has_token) {
        w->behind++;
        w->token_capital = w->token_capital || capital;
        w->token_small = w->token_small || (c >= 'a' && c <= 'z');
        return;
    }
    memmove(w->last, w->last + 1, sizeof(w->last) - 1);
    memmove(w->at, w->at + 1, sizeof(w->at) - sizeof(w->at[0]));
    w->last[3] = capital ? (char)(c + ('a' - 'A')) : c;
    w->at[3] = at;
    if (memcmp(w->last, "hfd_", sizeof(w->last)) == 0) {
        w->has_token = true;
        w->token = w->at[0];
        w->behind = 0;
        w->token_capital = w->token_small = false;
    }
}

hfd_slice hfd_foreign_secret(hfd_slice text)
{
    for (size_t at = 0; at + TOKEN_PIECE <= text.len;) {
        struct word w = {.begin = at, .end = at};
        size_t used = 1;

        for (; at < text.len; at += used) {
            char c;

            used = read_char((hfd_slice){text.p + at, text.len - at}, &c);
            if (c == '.')
                end_part(&w);
            else if (hfd_is_alnum(c) || c == '-' || c == '_')
                add_char(&w, c, at);
            else
                break;
            w.end = c != '.' ? at + used : w.end;
        }
        end_part(&w);
        if (w.found)
            return (hfd_slice){text.p + w.secret, w.end - w.secret};
        at += used; /* the character that is none of the word */
    }
    return HFD_SLICE_NONE;
}

size_t hfd_foreign_mask(char *p, size_t len)
{
    const size_t word = sizeof(HFD_FOREIGN_REDACTED) - 1;
    size_t at = 0;

    for (hfd_slice secret;
         (secret = hfd_foreign_secret((hfd_slice){p + at, len - at})).p != NULL;) {
        const size_t begin = (size_t)(secret.p - p), end = begin + secret.len;

        memcpy(p + begin, HFD_FOREIGN_REDACTED, word);
        memmove(p + begin + word, p + end, len - end);
        len -= secret.len - word;
        at = begin + word;
    }
    return len;
}

/* ---- halves of characters ---- */

size_t hfd_foreign_cut(hfd_slice text, size_t max)
{
    size_t n = max;

    if (text.len <= max)
        return text.len;
    while (n > 0 && n + 3 > max && ((unsigned char)text.p[n] & 0xc0U) == 0x80U)
        n--;
    return n;
}

/* The bytes of a character by its first one. */
static size_t wanted_len(unsigned char first)
{
    return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
}

void hfd_foreign_drop_halves(char *text)
{
    char *to = text;

    for (const char *p = text; *p != '\0';) {
        size_t n = 1;

        while (n < wanted_len((unsigned char)*p) && ((unsigned char)p[n] & 0xc0U) == 0x80U)
            n++;
        if (n == wanted_len((unsigned char)*p)) {
            memmove(to, p, n);
            to += n;
        }
        p += n;
    }
    *to = '\0';
}
