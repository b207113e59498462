/* A line of text with a ceiling. See line.h. */
#include "driver/health/line.h"

void hfd_health_line_add(struct hfd_health_line *line, hfd_slice text)
{
    const size_t room = sizeof(line->text) - line->len;
    const size_t len = text.len < room ? text.len : room;

    if (line->cut || text.len == 0)
        return;
    memcpy(line->text + line->len, text.p, len);
    line->len += len;
    line->cut = len < text.len;
}

void hfd_health_line_word(struct hfd_health_line *line, const char *text)
{
    hfd_health_line_add(line, hfd_slice_of(text));
}

void hfd_health_line_next(struct hfd_health_line *line, size_t from, const char *separator)
{
    if (line->len > from)
        hfd_health_line_word(line, separator);
}

hfd_slice hfd_health_line_end(struct hfd_health_line *line, struct hfd_arena *mem)
{
    static const char dots[] = "...";

    if (line->cut) {
        line->len = sizeof(line->text) - (sizeof(dots) - 1);
        while (line->len > 0 && ((unsigned char)line->text[line->len] & 0xc0u) == 0x80u)
            line->len--;
        memcpy(line->text + line->len, dots, sizeof(dots) - 1);
        line->len += sizeof(dots) - 1;
        line->cut = false;
    }
    return hfd_arena_dup(mem, (hfd_slice){line->text, line->len});
}
