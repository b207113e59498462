/*
 * The status page on the ops listener: `/`, `/r/{GUResID}` and the files that they load. Rendered
 * by this program; a script only renews it. README.md says how it is built. Thread: loop.
 */
#ifndef HFD_WEB_WEB_H
#define HFD_WEB_WEB_H

#include "handlers/http/http.h"

/** The handler of these paths, for hfd_app.page. */
void hfd_web_serve(struct hfd_exchange *x);

/* Files that the pages load. The build makes their source with assets_c.py. */
extern const hfd_slice hfd_web_style_css;
extern const hfd_slice hfd_web_page_js;

#endif
