/*
 * A simulation of the whole domain: driver, HyperFleet engine, store and SQLite, as they are, in
 * one thread. One seed decides all events and their times: orchestrator, adapters and strangers, on
 * a disk that fails and loses power, under a clock that jumps. One seed is one run, repeated to the
 * bit. A run has two phases. The first has faults, and the rules of safety hold after every step.
 * The second has none, and all must converge. Source: driver/core/README.md and driver/README.md.
 *
 * Events. Each run has its own mix. Most events are off in most runs, so that rare ones meet
 * undisturbed.
 * - orchestrator: PUT of 4 inputs (in other words too), GET, DELETE on 2 clusters and a nodepool in
 *   one of them. Calls overlap, in one commit or several. Answers are lost, calls repeated. Cookies
 *   are new, old, of another resource, forged, or absent.
 * - adapters: reports arrive late, twice, out of order or never. They are for wrong generations, of
 *   unknown adapters, incomplete, Unknown, not available, terminal. Some adapters are silent for
 *   good.
 * - strangers: clusters with our label or our name, pools in our cluster. Patches, deletes and
 *   force-deletes behind our back. A driver resource that is forgotten while HyperFleet has all of
 *   it.
 * - machine: power cut at any disk call, I/O errors once and for ever, full disk, restart, clock
 *   jumps of up to an hour both ways.
 * - timer: it looks for deadlines that have passed, whether or not a call has seen them.
 * - repair: in some runs the timer mends drift.
 * - operator: a new key in the ring, at any moment. With a restart other deadlines and estimates,
 *   and other required adapters.
 *
 * Rules of safety. Those marked T are checked inside the transaction that makes the change, the
 * others on what is committed.
 * - A1: Each answer is one that the tables allow for the state that the call found (T).
 * - A2: GET and the short cuts answer from the last commit, with any reader.
 * - A3: A hint's estimate is not in the past, its deadline is the operation's, and its status the
 *   state's. Retry-After is within its bounds.
 * - A4: 400 RES-105 comes only past the deadline. RES-104 comes only with a part gone or a terminal
 *   report of this attempt (T).
 * - A5: A forged or foreign cookie is refused on every method; no other ever is.
 * - A6: 200 names the cluster that the resource has now. DELETE is 204 only where nothing is left.
 * - A7: A verdict on a report is that of rows D1 to D7 of driver/fleet/README.md (T).
 * - A8: A DELETE with the cookie of an ended life may be 204 beside a new life: it changes nothing.
 * - D1: The timer fails each creation and update whose deadline has passed, with RES-105. It
 * changes nothing else, and names the next deadline (T).
 * - V1: A PUT does what /validate says of it in the same transaction. It fails alike, or is in the
 *   way alike. It changes nothing, or just what was named.
 * - W1: A ready resource tells the fields that differ from the last accepted order, and no others.
 *   It tells each nodepool that strangers made in its cluster. A restored one is left out.
 * - H1: A state changes along an arrow of the life cycle, by a call that may move it (T). Between
 *   two transactions nothing changes.
 * - H2: A resource becomes ready when all its parts are Ready at the generation that was written,
 *   and none is leaving (T).
 * - H3: A resource goes when none of its parts is left in HyperFleet (T).
 * - H4: A call that is refused, or has nothing to do, changes nothing (T).
 * - H5: The cookie changes with an input, a part or an incarnation, by a PUT after a rotation, and
 *   at no other time (T).
 * - H6: The history of a resource is one path, from its creation to where it is. It outlives it
 *   with a tombstone.
 * - H7: A stored row keeps the rule of its state (hfd_resource_invariant).
 * - S1: A resource that is creating, updating or ready has exactly one cluster, alive, and all its
 *   pools.
 * - S2: A live HyperFleet resource is a part of one resource, or a stranger's. Only those with its
 *   label are adopted.
 * - S3: Generations never fall, deletions are never taken back, an id that went never returns.
 * - S4: Ready agrees with the stored reports, by a count of its own. S4 and H2 are not checked
 *   where the required adapters have changed: Ready was true when it was set.
 * - S5: No resource waits whose parts are all ready, and none is deleting whose parts are all gone.
 * - S6: HyperFleet holds the spec of the last accepted PUT. Exceptions: a stranger changed it
 * since, or the resource was lost and brought back by its cookie since.
 * - S7: Each row has its owner; the kept totals are what counting gives.
 * - S8: After a crash the database is what was committed, or that with the whole batch of unknown
 *   fate. It passes integrity_check.
 * - S9: An output has Healthy as long as all parts are Ready and no longer, and names each with its
 *   generation.
 *
 * Liveness, with faults off and the strangers' things removed:
 * - L1: With healthy adapters, every wanted resource answers 200 and every unwanted one 204. This
 *   is within 4 hours of the latest time that any clock has shown.
 * - L2: Once all is deleted, only the rows that hints are learned from are left.
 * - L3: With silent adapters, no operation is under way an hour after that time. The timer has
 *   stored so, though no call asks.
 *
 * Breakages that were tried one at a time in the program, all of them seen within 100 seeds, and
 * the rule that objected:
 * - A1: a new attempt failed by reports of an earlier one
 * - A2: a row cache that outlives a commit; reads that forget the deadline
 * - A3: an estimate that stays when it has passed
 * - A5: a cookie that is not opened
 * - A7: reports of older generations or times taken
 * - H2: ready without the pools, or below the written generation
 * - H4: a PUT that re-targets a creation
 * - H5: a new cookie with every PUT
 * - S4: a change that does not raise the generation
 * - S5: a pool that is gone and stays a part; a force-delete that core does not observe
 * - S6: a refused job whose writes stay in the batch
 * - S8: synchronous=NORMAL; success before a commit that failed
 * - L1: a cluster deleted without its pools
 * - the program's own assertion: a PUT taken while deleting
 *
 * Every event in the lists above is counted, and none may be missing (all_met in sim_main.c).
 */
#ifndef HFD_TESTS_FAULT_SIM_H
#define HFD_TESTS_FAULT_SIM_H

#include "driver/core/transition.h"
#include "driver/core/resource.h"
#include "driver/fleet/report.h"
#include "store/store.h"
#include "tests/lib/seams.h"
#include "tests/lib/tmpdir.h"

#define SIM_WHO 3 /* two clusters, and a nodepool in the first of them */
#define SIM_POOL 2
#define SIM_BODIES 4
#define SIM_READERS 2
#define SIM_MESSAGES 48
#define SIM_IDS 160     /* HyperFleet resources in one run */
#define SIM_JOBS 12     /* calls under way */
#define SIM_COOKIE 1024 /* bytes of the cookies here */
#define SIM_KEYS 2
#define SIM_SPECS 8 /* that strangers write */

/** A driver resource as one transaction sees it. */
struct sim_res {
    int state;     /* HFD_STATE_ABSENT: there is none */
    int body;      /* whose digest it has; -1 = none that we know */
    bool restored; /* from a cookie, and no PUT was taken since */
    int64_t started_us, deadline_us;
    uint64_t incarnation, cookie, fail; /* hashes */
    char code[8];
    char cluster_id[32];
    uint64_t parts; /* hash of ids and of what is leaving */
    size_t part_count;
    bool mendable; /* the same PUT has drift to mend */
};

struct sim_view {
    struct sim_res res[SIM_WHO];
};

enum sim_what {
    SIM_GET,
    SIM_PUT,
    SIM_DELETE,
    SIM_REPORT,
    SIM_STRANGER,
    SIM_TIMER,
    SIM_REPAIR,
    SIM_WHATS
};

enum sim_act { /* of strangers */
    SIM_MAKE_CLUSTER,
    SIM_MAKE_POOL,
    SIM_PATCH,
    SIM_REMOVE,
    SIM_FORCE,
    SIM_FORGET,
    SIM_ACTS
};

/** A report on its way. */
struct sim_message {
    char id[32];
    enum hfd_kind kind;
    const char *adapter;
    int64_t generation, observed_us;
    enum hfd_status available;
    bool terminal, finalized, incomplete;
};

struct sim;

/** A call that writes, from when it is submitted until it is answered. */
struct sim_job {
    struct hfd_job job; /* first member */
    struct sim *sim;
    struct hfd_arena mem;
    enum sim_what what;
    int64_t now_us;
    bool ran, answered;
    bool lost; /* its answer is lost */
    /* PUT, DELETE */
    int who;
    int body;
    struct hfd_call call;
    struct hfd_input input;
    struct hfd_answer_doc doc;
    /* REPORT */
    struct sim_message message;
    enum hfd_verdict verdict, expected;
    bool expected_known; /* there is such a resource */
    /* STRANGER */
    enum sim_act act;
    char id[32];
    char name[32];
    int label;
    int spec; /* of a patch; of a repair, which resource */
    /* TIMER */
    struct hfd_settled settled;
    /* REPAIR */
    size_t repaired;
    /* what the transaction saw */
    hfd_rc inner;
    struct sim_view before, after;
    uint64_t content; /* of the database behind it, where that is kept */
};

/** The events of this run; shares are of 256. */
struct sim_mix {
    unsigned crash, io, stranger, jump, forged, lost, garbage, terminal, unavailable, silent, stale,
        late, keys, settings, timer, repair;
};

/** A HyperFleet resource that was seen. */
struct sim_seen {
    char id[32];
    int64_t generation;
    bool deleting, gone, strange;
    bool alien; /* a nodepool that a stranger made, without a label of ours */
    int label;  /* of a strange one: whose label it carries */
};

struct sim {
    uint64_t seed;
    bool verbose;
    bool changes;   /* --changes: most events are changes behind the driver's back */
    uint64_t trace; /* hash of all that happened */
    unsigned step;
    struct test_rng plan;   /* what happens */
    struct test_rng random; /* the program's random bytes */
    struct test_clock clock;
    int64_t latest_us; /* that any clock has shown */
    char base[TMPDIR_MAX];
    char dir[TMPDIR_MAX + 8];
    struct hfd_store *store;
    struct hfd_store_reader *readers[SIM_READERS];
    struct hfd_store_reader *witness;
    struct hfd_keyring *rings[SIM_KEYS]; /* with one key, and with one more */
    struct hfd_driver driver;
    struct hfd_sink sink;
    struct hfd_arena mem; /* of one step */
    struct hfd_err err;
    struct sim_mix mix;
    bool calm;           /* the second phase */
    struct sim_view now; /* as last committed */
    bool power_armed;    /* the disk may stop by itself: contents are kept after each batch */
    uint64_t content;    /* as last committed, where kept */
    struct sim_job jobs[SIM_JOBS];
    size_t queued;
    struct sim_message messages[SIM_MESSAGES];
    size_t message_count;
    struct sim_seen seen[SIM_IDS];
    size_t seen_count;
    enum hfd_answer answered;             /* by the last read */
    bool strangers_were;                  /* names may be taken */
    bool adapters_changed;                /* those that are waited for */
    char cookies[SIM_WHO][2][SIM_COOKIE]; /* the last one and one before */
    hfd_slice digests[SIM_KEYS][SIM_WHO][SIM_BODIES];
    struct hfd_arena digest_mem;
    unsigned crashes, failures; /* how many there were */
};

extern const char *const sim_names[SIM_WHO];

/** Counts what all runs met: a rule that nothing ever tries proves nothing. */
struct sim_tally {
    unsigned arrows[HFD_STATE_COUNT][HFD_STATE_COUNT];
    unsigned answers[SIM_WHATS][HFD_ANSWER_ABSENT + 1];
    unsigned reports[HFD_RC_COUNT], strangers, forged, power_cuts, broken, unknown_kept,
        unknown_lost, keys, settings, timed_out;
    unsigned patches, drifted, several, aliens, repairs;
    unsigned planned[4]; /* refused, in the way, nothing to do, changes */
};
extern struct sim_tally sim_tally;

/** Prints what was wrong and how to see it again, and ends the program. */
_Noreturn void sim_fail(struct sim *s, const char *rule, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/** One line of the run: hashed, and printed when asked for. */
void sim_trace(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
uint64_t sim_hash(uint64_t h, const void *bytes, size_t len);
/** A number below bound by the plan. */
unsigned sim_below(struct sim *s, unsigned bound);
/** True in share of 256. */
bool sim_chance(struct sim *s, unsigned share_of_256);

/* sim_world.c: the program under test, and the ways in */
void sim_open(struct sim *s);
void sim_close(struct sim *s);
/** Power cut (or a mere restart), and a start on what is left, perhaps with other settings. */
void sim_crash(struct sim *s, bool power);
/** A new key seals from now on. */
void sim_rotate(struct sim *s);
struct sim_job *sim_job_new(struct sim *s, enum sim_what what);
void sim_submit(struct sim *s, struct sim_job *j);
/** One commit of what is queued, perhaps on a failing disk; answers are judged. */
void sim_commit(struct sim *s, bool failing);
/** Body `body` of resource `who`; other gives the same input in other words. */
const char *sim_body(int who, int body, bool other);
hfd_rc sim_read(struct sim *s, hfd_txn_fn *fn, void *arg);

/* sim_rules.c: what must hold */
bool sim_equal(const struct sim_view *a, const struct sim_view *b);
hfd_rc sim_look(struct hfd_txn *tx, struct sim *s, struct sim_view *out, struct hfd_err *err);
hfd_rc sim_content(struct hfd_txn *tx, struct sim *s, uint64_t *out, struct hfd_err *err);
/** T rules, inside the transaction; fails the run. */
hfd_rc sim_rules_inside(struct hfd_txn *tx, struct sim_job *j, struct hfd_err *err);
/** A call, and the resource that it found. */
struct sim_asked {
    const struct sim_res *found;
    enum sim_what what;
    int who;
    int64_t now_us;
};
/** Checks an answer. */
void sim_rules_answer(struct sim *s, const struct sim_asked *asked,
                      const struct hfd_answer_doc *doc);
/** An answer that a read decided, from what is committed now. body: of a PUT, else -1 */
void sim_rules_read(struct sim *s, enum sim_what what, int who, int body,
                    const struct hfd_answer_doc *doc);
/** An answered call of a batch that is on disk. */
void sim_rules_job(struct sim *s, struct sim_job *j);
/** Notes what a stranger made, if that is what the call did. */
void sim_rules_strange(struct sim *s, const struct sim_job *j);
/** Records a HyperFleet resource that no driver resource owns. */
void sim_rules_orphan(struct sim *s, hfd_slice id, int label);
void sim_rules_committed(struct sim *s);
/** V1. Carries out the PUT of a job. */
hfd_rc sim_planned_put(struct hfd_txn *tx, struct sim_job *j, struct hfd_err *err);
void sim_rules_empty(struct sim *s);
void sim_expect_verdict(struct hfd_txn *tx, struct sim_job *j);
/** The state that a call finds: a deadline that has passed is taken into account. */
enum hfd_state sim_settled(const struct sim_res *r, int64_t now_us);

/* sim_events.c: what happens */
void sim_begin(struct sim *s);
void sim_event(struct sim *s);
/** The second phase. */
void sim_calm(struct sim *s);

#endif
