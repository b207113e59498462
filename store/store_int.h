/* The store itself, shared by its files. */
#ifndef HFD_STORE_STORE_INT_H
#define HFD_STORE_STORE_INT_H

#include "store/reader.h"
#include "store/writer.h"

struct hfd_store {
    unsigned magic;
#define STORE_MAGIC 0x5704e001u
    struct hfd_store_place place; /* its texts are owned */
    bool stepped;                 /* no threads: hfd_store_step does their work */
    struct hfd_writer writer;
    struct hfd_readers readers;
    struct hfd_point_reads points; /* open where others write to the database */
    atomic_uint readers_open;      /* hfd_store_reader */
    atomic_bool backing_up;        /* there is a hfd_backup */
};

#endif
