/*
 * The page `/`: trouble first, then operations under way, the adapters, and the last day. Pure.
 * Thread: any.
 */
#ifndef HFD_WEB_HOME_H
#define HFD_WEB_HOME_H

#include "handlers/web/html.h"
#include "handlers/web/read.h"

/** Renders it, or the list that p asks for. */
void hfd_web_home(struct hfd_html *h, const struct hfd_web_page *p);

#endif
