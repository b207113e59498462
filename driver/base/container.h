/* Leads from a member of a struct, such as a queue node, back to the struct. Thread: any. */
#ifndef HFD_BASE_CONTAINER_H
#define HFD_BASE_CONTAINER_H

#include <stddef.h>

/**
 * The struct of the given type whose member `member` is *ptr. The pointers differ in type only by
 * the member: a pointer of another type does not compile.
 */
#define HFD_CONTAINER_OF(ptr, type, member)                                                        \
    ((type *)(void *)((char *)(1 ? (ptr) : &((type *)0)->member) - offsetof(type, member)))

#endif
