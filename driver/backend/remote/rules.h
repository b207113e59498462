/*
 * The functions about work and passes that the remote thread calls. A table, so that tests can run
 * the thread with functions of their own.
 */
#ifndef HFD_REMOTE_RULES_H
#define HFD_REMOTE_RULES_H

#include "driver/backend/remote/remote.h"
#include "driver/backend/remote/work.h"

struct hfd_pass;

/** Each with the promises of work.h, pass.h, plan.h, handle.h and observe.h. */
struct hfd_remote_rules {
    hfd_rc (*due)(struct hfd_txn *tx, const struct hfd_work_query *query, struct hfd_arena *mem,
                  struct hfd_due *out, struct hfd_err *err);
    hfd_rc (*hurry)(struct hfd_txn *tx, hfd_slice guresid, int64_t older_us, int64_t now_us,
                    struct hfd_err *err);
    hfd_rc (*pass_new)(const struct hfd_remote_policy *policy, const struct hfd_remote_work *work,
                       struct hfd_pass **out, struct hfd_err *err);
    void (*pass_free)(struct hfd_pass *pass);
    const struct hfd_remote_work *(*pass_work)(const struct hfd_pass *pass);
    hfd_rc (*next)(struct hfd_txn *tx, struct hfd_pass *pass, int64_t now_us,
                   struct hfd_remote_request *out, struct hfd_err *err);
    hfd_rc (*take)(struct hfd_txn *tx, struct hfd_pass *pass,
                   const struct hfd_remote_exchange *exchange, struct hfd_err *err);
    enum hfd_remote_health (*health_of)(const struct hfd_remote_answer *a);
};

/** Those of work.h, pass.h, plan.h, handle.h and observe.h. */
extern const struct hfd_remote_rules hfd_remote_rules;

/** As hfd_remote_start. @param rules  borrowed until hfd_remote_stop */
HFD_MUST_CHECK hfd_rc hfd_remote_start_with(const struct hfd_remote_config *config,
                                            const struct hfd_remote_rules *rules,
                                            struct hfd_remote **out, struct hfd_err *err);

#endif
