/* A folder for one test, outside the tree, removed with what is in it. */
#ifndef HFD_TESTS_TMPDIR_H
#define HFD_TESTS_TMPDIR_H

#define TMPDIR_MAX 128

/** Makes an empty folder below $TMPDIR or /tmp; fails the test if it cannot. */
void tmpdir_make(char path[TMPDIR_MAX]);
void tmpdir_remove(const char *path);

#endif
