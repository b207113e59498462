/*
 * The place where a test of the store has its database: a folder of SQLite, or a schema of its own
 * on PostgreSQL. The environment's HFD_TEST_STORE, postgres://..., chooses. The same tests run on
 * both.
 */
#ifndef HFD_TESTS_PLACE_H
#define HFD_TESTS_PLACE_H

#include <stdbool.h>

#include "store/db.h"

/** Returns true when HFD_TEST_STORE names a PostgreSQL. */
bool test_on_postgres(void);
/**
 * Gives the place of a folder. On PostgreSQL: the URL of a schema, made when it is asked for the
 * first time and dropped when the test program ends. Its texts live until then; dir is borrowed.
 */
struct hfd_store_place test_place(const char *dir);
/**
 * Ends all connections to PostgreSQL, those of other programs too.
 * @param times  how often, as those that are ended connect again
 * @return how many ended; SQLite: 0
 */
int test_place_cut(int times);
/** Removes the database of a folder; on PostgreSQL all of its schema. No store has it open. */
void test_place_remove(const char *dir);
/** As hfd_db_open, at the place of a folder. */
HFD_MUST_CHECK hfd_rc test_db_open(const char *dir, enum hfd_db_mode mode, struct hfd_db **out,
                                   struct hfd_err *err);

#endif
