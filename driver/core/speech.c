/* See speech.h. */
#include "driver/core/speech.h"

#include "driver/core/words.h"

hfd_slice hfd_speech_kept(struct hfd_speech *s, hfd_slice text)
{
    s->nomem = s->nomem || text.p == NULL;
    return text;
}

hfd_slice hfd_speech_tidy(struct hfd_speech *s, hfd_slice text, size_t max)
{
    return hfd_speech_kept(s, hfd_words_line(text, max, s->mem));
}

hfd_slice hfd_speech_quote(struct hfd_speech *s, hfd_slice text, size_t max)
{
    text = hfd_words_without_stop(text);
    if (text.len == 0)
        return HFD_SLICE("");
    text = hfd_speech_tidy(s, text, max);
    return hfd_speech_kept(s, hfd_arena_printf(s->mem, ": %.*s", HFD_SLICE_FMT(text)));
}
