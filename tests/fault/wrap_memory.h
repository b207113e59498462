/*
 * The memory of tests/lib/faultmem, with our allocations (-Wl,--wrap of malloc and its kin) and
 * jansson's counted as well. Thread: any.
 */
#ifndef HFD_TESTS_FAULT_WRAP_MEMORY_H
#define HFD_TESTS_FAULT_WRAP_MEMORY_H

/** Puts itself under jansson and SQLite. Before anything uses them, hfd_base_init too. */
void wrap_memory_install(void);

#endif
