/*
 * The judge of what statements say they touch (struct hfd_query): SQLite's own account. A program
 * of tests/unit/CMakeLists.txt, JUDGED_UNIT, has each statement judged that it makes.
 */
#ifndef HFD_TESTS_TOUCHED_H
#define HFD_TESTS_TOUCHED_H

#include "store/table.h"

/**
 * Thread: any.
 * @param sql  the text of the query
 * @return HFD_OK, also for a text that SQLite does not prepare: the program would fail there, or
 * it is a piece, or for PostgreSQL. HFD_INVALID (it touches a table that
 * it does not tell of, or `by` or `empty` names what is not there)
 */
HFD_MUST_CHECK hfd_rc test_touched(const struct hfd_query *query, const char *sql,
                                   struct hfd_err *err);

#endif
