/* The frame of a page, and the parts that several pages have. Pure. Thread: any. */
#ifndef HFD_WEB_RENDER_H
#define HFD_WEB_RENDER_H

#include "handlers/web/html.h"
#include "handlers/web/read.h"

/** Begins a page: head, title, and the line with links and the search. Ends it. */
void hfd_web_begin(struct hfd_html *h, const struct hfd_web_page *p, hfd_slice title);
void hfd_web_end(struct hfd_html *h);

/** Adds the word of a state: FAILED, STUCK, DEGRADED, creating. */
void hfd_web_state(struct hfd_html *h, const struct hfd_overview_item *i);
/** Adds a progress bar with its words: "4 m of about 11 m". */
void hfd_web_progress(struct hfd_html *h, const struct hfd_overview_item *i);
/** Adds the adapters of a resource as a list of words: "dns waits". */
void hfd_web_marks(struct hfd_html *h, const struct hfd_detail *d);
/** Adds a picture of durations: one bar each. */
void hfd_web_bars(struct hfd_html *h, const int64_t *times_us, size_t count);
/** Adds an item of a list: when something happened, to which resource if it is named, and what. */
void hfd_web_entry(struct hfd_html *h, const struct hfd_history_row *row, bool named);

#endif
