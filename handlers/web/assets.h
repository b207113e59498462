/* Files that the status page loads. The build makes their source with assets_c.py. */
#ifndef HFD_WEB_ASSETS_H
#define HFD_WEB_ASSETS_H

#include "driver/base/slice.h"

extern const hfd_slice hfd_web_style_css;
extern const hfd_slice hfd_web_page_js;

#endif
