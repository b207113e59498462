/* Where a database is. Plain data; thread: any. */
#ifndef HFD_STORE_PLACE_H
#define HFD_STORE_PLACE_H

#include <stdint.h>

struct hfd_store_place {
    const char *dir;            /* SQLite: the folder */
    const char *url;            /* PostgreSQL: a libpq URL, may hold a password. NULL = SQLite */
    const char *password_file;  /* read at each connection; NULL = none */
    int64_t connect_timeout_us; /* the longest wait for a connection. 0 = 3 s */
    int64_t answer_timeout_us;  /* the longest wait for one answer. 0 = 5 s */
};

#endif
