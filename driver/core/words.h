/*
 * Sentences for the app developer that do not come from the outcome of a resource (outcome.c has
 * those). Each is at most 500 characters and ends with what to do. Also
 * texts of others that are part of such sentences. Pure. Thread: any.
 */
#ifndef HFD_CORE_WORDS_H
#define HFD_CORE_WORDS_H

#include "driver/base/arena.h"

/** RES-107. why: what is too large. p is NULL when memory is short. */
hfd_slice hfd_words_output_too_large(hfd_slice guresid, const char *why, struct hfd_arena *mem);

/**
 * A copy of text that fits in a line. Controls and changes of the direction of writing become
 * spaces. A text over max bytes ends in "...", never in the middle of a character.
 * @return p is NULL when memory is short
 */
hfd_slice hfd_words_line(hfd_slice text, size_t max, struct hfd_arena *mem);

#endif
