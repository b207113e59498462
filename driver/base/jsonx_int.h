/* What start-up needs of jsonx. */
#ifndef HFD_BASE_JSONX_INT_H
#define HFD_BASE_JSONX_INT_H

/**
 * From now on a failed allocation of jansson is noticed, whichever allocator is set at this moment:
 * its parser reports many of them as a syntax error, and a client must not be told that its
 * document is wrong because we are short of memory. Thread: start-up.
 */
void hfd_json_watch_memory(void);

#endif
