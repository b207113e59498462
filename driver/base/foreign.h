/*
 * Texts of others, as people get them: on a terminal, in a log line, quoted in an error. A
 * character that a reader cannot see, or that moves others, is shown by its number. Such are
 * controls, line ends, changes of the direction of writing, and characters without a width. A
 * secret is known by its form, wherever it stands. Pure. Thread: any.
 */
#ifndef HFD_BASE_FOREIGN_H
#define HFD_BASE_FOREIGN_H

#include "driver/base/slice.h"

/** The word in the place of a secret. It is never longer than the secret. */
#define HFD_FOREIGN_REDACTED "[redacted]"

/** Size of the longest result of hfd_foreign_char. */
#define HFD_FOREIGN_CHAR_MAX 6

/**
 * Writes the first character of text, which is not empty, so that a reader sees it: "\n", "\u202e".
 * The forms are those of JSON and YAML. A byte that is not UTF-8 gives U+FFFD.
 * @param out not NUL-terminated
 * @param used how many bytes of text were read
 * @return bytes written
 */
size_t hfd_foreign_char(hfd_slice text, char out[HFD_FOREIGN_CHAR_MAX], size_t *used);

/**
 * Finds the first secret: a token of ours ("hfd_" and 43 characters), a JWT or JWE, or the long
 * beginning of one. Its characters may be percent-encoded, also twice, or escaped as in JSON.
 * @return it, with the dotted word that it ends; p is NULL without one. Borrowed from text
 */
hfd_slice hfd_foreign_secret(hfd_slice text);

/** A text that is read piece by piece. */
struct hfd_foreign {
    hfd_slice rest, secret;
};

/** Begins with a text, which is borrowed. */
static inline struct hfd_foreign hfd_foreign_of(hfd_slice text)
{
    return (struct hfd_foreign){text, hfd_foreign_secret(text)};
}

/**
 * Returns the next piece of f->rest, which is not empty: a run of printable ASCII, one character by
 * hfd_foreign_char, or HFD_FOREIGN_REDACTED for a secret. Valid while out and the text are.
 */
hfd_slice hfd_foreign_next(struct hfd_foreign *f, char out[HFD_FOREIGN_CHAR_MAX]);

/**
 * Writes text as one line, by hfd_foreign_next. A text over max bytes ends in "...", never in the
 * middle of a character.
 * @param max  at least 3
 * @param out  has room for max bytes; not NUL-terminated
 * @return bytes written
 */
size_t hfd_foreign_line(hfd_slice text, size_t max, char *out);
/** Likewise, as a part of a sentence: a blank is in the place of each hidden character. */
size_t hfd_foreign_sentence(hfd_slice text, size_t max, char *out);

/**
 * Replaces each secret by HFD_FOREIGN_REDACTED, in place.
 * @return the new length
 */
size_t hfd_foreign_mask(char *p, size_t len);

/** The length of the longest beginning of text with at most max bytes and no half character. */
size_t hfd_foreign_cut(hfd_slice text, size_t max);

/** The two arguments for "%.*s": the text, cut at a character. */
#define HFD_FOREIGN_CUT(s, max) (int)hfd_foreign_cut((s), (max)), (s).p != NULL ? (s).p : ""

/** Takes away the halves of characters that "%.40s" and the like leave in a C string. */
void hfd_foreign_drop_halves(char *text);

#endif
