/* Transactions of a connection; the functions are those of db.h. */
#ifndef HFD_STORE_POSTGRES_TXN_H
#define HFD_STORE_POSTGRES_TXN_H

/*
 * Advisory locks: the first number is ours, the second one the schema's, so that two programs in
 * one database do not meet.
 */
#define HFD_PG_LOCK_WRITE "1212564529, hashtext(current_schema())"
#define HFD_PG_LOCK_SCHEMA "1212564530, hashtext(current_schema())"

#endif
