/* The two kinds of HyperFleet resources. The numbers are stored. */
#ifndef HFD_STORE_KIND_H
#define HFD_STORE_KIND_H

enum hfd_kind {
    HFD_KIND_CLUSTER = 1,
    HFD_KIND_NODEPOOL = 2
};

#endif
