/*
 * Builds sentences about a resource. Text of adapters is quoted in one line, without control
 * characters, and cut between characters. Thread: any.
 */
#ifndef HFD_CORE_SPEECH_H
#define HFD_CORE_SPEECH_H

#include "driver/base/arena.h"

struct hfd_outcome_input;

/** Text under construction. The first failure sticks. */
struct hfd_speech {
    const struct hfd_outcome_input *in; /* what is spoken of; not read here */
    struct hfd_arena *mem;
    bool nomem;
};

/** Notes a lack of memory, for text whose p is NULL. @return the text */
hfd_slice hfd_speech_kept(struct hfd_speech *s, hfd_slice text);

/** Copies text for a line of at most max bytes. A longer one ends in "...". */
hfd_slice hfd_speech_tidy(struct hfd_speech *s, hfd_slice text, size_t max);

/** ": " and the text without the full stop at its end, or "" for no text. */
hfd_slice hfd_speech_quote(struct hfd_speech *s, hfd_slice text, size_t max);

#endif
