/*
 * Sentences for the app developer that do not come from the outcome of a resource (outcome.c has
 * those). Each is at most 500 characters and ends with what to do. Also
 * texts of others that are part of such sentences. Pure. Thread: any.
 */
#ifndef HFD_CORE_WORDS_H
#define HFD_CORE_WORDS_H

#include "driver/base/buf.h"

/* The longest piece of text that hfd_words_add takes. */
#define HFD_WORDS_ADD_MAX_BYTES 160

/** RES-107. why: what is too large. p is NULL when memory is short. */
hfd_slice hfd_words_output_too_large(hfd_slice guresid, const char *why, struct hfd_arena *mem);

/**
 * A copy of text that fits in a line. Controls and changes of the direction of writing become
 * spaces. A text over max bytes ends in "...", never in the middle of a character.
 * @return p is NULL when memory is short
 */
hfd_slice hfd_words_line(hfd_slice text, size_t max, struct hfd_arena *mem);

/**
 * The same, into p, which has room for max bytes.
 * @param max  at least 3
 * @return the bytes written
 */
size_t hfd_words_line_into(hfd_slice text, size_t max, char *p);

/** Adds text as hfd_words_line makes it. max: at most HFD_WORDS_ADD_MAX_BYTES. */
void hfd_words_add(struct hfd_buf *b, hfd_slice text, size_t max);

/** Adds ": " and the text without the full stop at its end; nothing for no text. */
void hfd_words_add_quote(struct hfd_buf *b, hfd_slice text, size_t max);

/** Adds "40 s", "12 min" or "3 h": a duration in the unit that says enough of it. */
void hfd_words_add_duration(struct hfd_buf *b, int64_t us);

/** The text without the full stops and spaces at its end. */
hfd_slice hfd_words_without_stop(hfd_slice text);

#endif
