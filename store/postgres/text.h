/* SQL texts as PostgreSQL reads them. Pure. Thread: any. */
#ifndef HFD_STORE_POSTGRES_TEXT_H
#define HFD_STORE_POSTGRES_TEXT_H

#include "driver/base/slice.h"

#define HFD_PG_PARAMS_MAX 65535 /* of the protocol */

/**
 * Writes each placeholder ?N as $N, or what else `from` is, outside of quotes and comments.
 * @param params  gets the highest N
 * @return a text to be freed with free; NULL when out of memory
 */
char *hfd_pg_placeholders(hfd_slice sql, const char *from, int *params);
/**
 * Makes SQL of comments that begin with "postgres:", and blanks those that begin with "sqlite:".
 * @return a text to be freed with free; NULL when out of memory
 */
char *hfd_pg_comments(const char *sql);

#endif
