/*
 * The page `/`: trouble first, then operations under way, the adapters, and the last day. The page
 * `/r/{GUResID}`: one resource in full. web.c reads what they show. Pure. Thread: any.
 */
#ifndef HFD_WEB_PAGE_H
#define HFD_WEB_PAGE_H

#include "driver/core/detail.h"
#include "driver/core/gauges.h"
#include "driver/core/history.h"
#include "driver/core/overview.h"
#include "driver/replica/keeper.h"
#include "handlers/http/http.h"
#include "handlers/web/html.h"

#define HFD_WEB_CAUSES_MAX 6 /* of each kind of trouble */
#define HFD_WEB_OF_CAUSE_MAX 10
#define HFD_WEB_UNDER_WAY_MAX 20
#define HFD_WEB_HISTORY_MAX 50
/** Orphans are looked for among so many resources at most: each is looked at. */
#define HFD_WEB_ORPHANS_AMONG 50000

/** A page that is being made. Lives in the memory of its exchange. */
struct hfd_web_page {
    const struct hfd_app *app;
    struct hfd_arena *mem;
    int64_t now_us;

    /* The home page. */
    struct hfd_overview_query asked; /* of the list, when one was asked for */
    bool listing;
    hfd_slice query;          /* of the list */
    bool wants_orphans;       /* the caller may see them */
    struct hfd_overview list; /* what was asked for; else operations under way, the longest first */
    struct hfd_detail *details; /* of each of these; NULL with what was asked for */
    struct hfd_orphans orphans;
    struct hfd_adapters_seen adapters;
    struct hfd_replicas_seen replicas; /* of a shared store; with SQLite there are none */
    struct hfd_trends trends;
    int64_t drifted;         /* resources that are not as they were ordered */
    struct hfd_feed history; /* the newest first, of the last 24 hours */

    /* The page of a resource. */
    hfd_slice guresid;
    struct hfd_detail detail;
};

/** True if the caller may see orphans, and the list in p is of few enough resources. */
static inline bool hfd_web_seeks_orphans(const struct hfd_web_page *p)
{
    int64_t all = 0;

    for (int s = 0; s < HFD_STATE_COUNT; s++)
        all += p->list.counts[s];
    return p->wants_orphans && all <= HFD_WEB_ORPHANS_AMONG;
}

/** Renders the home page, or the list that p asks for. */
void hfd_web_home(struct hfd_html *h, const struct hfd_web_page *p);
/** Renders the page of a resource. */
void hfd_web_resource(struct hfd_html *h, const struct hfd_web_page *p);
/** Renders the page of a resource that is not there. */
void hfd_web_missing(struct hfd_html *h, const struct hfd_web_page *p);

/** Adds a progress bar with its words: "4 m of about 11 m". */
void hfd_web_progress(struct hfd_html *h, const struct hfd_overview_item *i);

#endif
