/*
 * A line of text with a ceiling: what does not fit is cut on the border of a character and ends in
 * "...". Thread: any.
 */
#ifndef HFD_HEALTH_LINE_H
#define HFD_HEALTH_LINE_H

#include "driver/base/arena.h"

#define HFD_HEALTH_LINE_MAX 1024

struct hfd_health_line {
    char text[HFD_HEALTH_LINE_MAX];
    size_t len;
    bool cut;
};

/** Appends; a full line ignores what follows. */
void hfd_health_line_add(struct hfd_health_line *line, hfd_slice text);
void hfd_health_line_word(struct hfd_health_line *line, const char *text);
/** Appends the separator unless the line is at its start, or right behind `from`. */
void hfd_health_line_next(struct hfd_health_line *line, size_t from, const char *separator);
/** A copy in the arena; p is NULL when memory is short. */
hfd_slice hfd_health_line_end(struct hfd_health_line *line, struct hfd_arena *mem);

#endif
