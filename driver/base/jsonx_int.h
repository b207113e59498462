/* The part of jsonx.c that only start-up calls. */
#ifndef HFD_BASE_JSONX_INT_H
#define HFD_BASE_JSONX_INT_H

/**
 * Makes failed allocations of jansson visible from now on, whichever allocator is set at this
 * moment. Its parser reports many of them as syntax errors, and a client would read that its
 * document is wrong.
 * Thread: start-up.
 */
void hfd_json_watch_memory(void);

#endif
