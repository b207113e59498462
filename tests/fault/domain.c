/* See domain.h. */
#include "tests/fault/domain.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct load_plan plan;

void fault_domain_begin(size_t batches, size_t together)
{
    load_plan_make(&plan, 1, batches, together);
}

void fault_domain_end(void)
{
    load_plan_free(&plan);
}

struct outcome {
    hfd_rc rc; /* the first failure */
    bool started;
    bool known; /* `content` is what must be there */
    unsigned char content[LOAD_DIGEST_BYTES];
    const char *wrong;
};

/* While the disk fails, a reader sees what is committed, or an error. */
static const char *check_read(struct load *l)
{
    unsigned char digest[LOAD_DIGEST_BYTES];

    if (load_digest(&l->world, digest) != HFD_OK ||
        load_missing(&plan, atomic_load(&l->answered), digest) == 0)
        return NULL;
    return "a reader was told what is not so";
}

static void work(struct load *l, struct outcome *o)
{
    o->rc = world_start(&l->world);
    o->started = o->rc == HFD_OK;
    for (size_t i = 0; o->rc == HFD_OK && o->wrong == NULL && i < plan.count; i++) {
        o->rc = load_run(l, i);
        if (o->rc == HFD_OK && i % 3 == 0)
            o->wrong = check_read(l);
    }
}

/*
 * A call failed, and the disk works again: a broken store refuses, another one has undone the call
 * and goes on.
 */
static void look_at_survivor(struct load *l, struct outcome *o)
{
    unsigned char digest[LOAD_DIGEST_BYTES];

    if (!hfd_store_ok(l->world.store)) {
        if (load_run(l, atomic_load(&l->answered) % plan.count) != HFD_IO)
            o->wrong = "a broken store takes work";
        return;
    }
    if (load_digest(&l->world, digest) != HFD_OK)
        o->wrong = "a reader does not work again";
    else if (load_missing(&plan, atomic_load(&l->answered), digest) != 0)
        o->wrong = "a call that failed has left something behind";
    else
        o->wrong = load_works(&l->world);
    o->known = o->wrong == NULL && load_digest(&l->world, o->content) == HFD_OK;
}

static void restart(struct load *l, struct outcome *o)
{
    unsigned char digest[LOAD_DIGEST_BYTES];
    int missing;

    if (world_start(&l->world) != HFD_OK || load_digest(&l->world, digest) != HFD_OK) {
        o->wrong = l->world.err.msg;
        return;
    }
    missing = load_missing(&plan, atomic_load(&l->answered), digest);
    o->wrong = load_unsound(&l->world);
    if (o->wrong != NULL)
        return;
    if (o->known && memcmp(digest, o->content, sizeof(digest)) != 0)
        o->wrong = "a restart changed what is there";
    else if (!o->known && missing == LOAD_UNKNOWN)
        o->wrong = "what is there is no state that was committed";
    else if (!o->known && missing > 0)
        o->wrong = "answered calls are lost";
    else if (!o->known && missing < 0 && o->rc != HFD_IO)
        o->wrong = "a call that was refused is there";
    else
        o->wrong = load_works(&l->world);
}

/*
 * Tells if a failure may give this answer. Any other answer, planned or not, would be a statement
 * about the request.
 */
static bool fits(const struct outcome *o)
{
    if (o->rc == HFD_CONFLICT)
        return !o->started; /* a database that is locked */
    return o->rc == HFD_OK || o->rc == HFD_IO || o->rc == HFD_NOMEM || o->rc == HFD_BUSY ||
           o->rc == HFD_CORRUPT;
}

/* @return how many calls failed */
static unsigned fail_nth(const struct fault *f, const struct fault_options *options, unsigned nth,
                         bool ever)
{
    struct load *l = calloc(1, sizeof(*l));
    struct outcome o = {.rc = HFD_OK};
    unsigned fired;

    assert_non_null(l);
    load_init(l, &plan);
    f->arm(f, nth, ever);
    work(l, &o);
    if (o.rc == HFD_OK)
        world_stop(&l->world); /* on the failing disk as well */
    fired = f->disarm();
    if (o.rc != HFD_OK && fired == 0)
        o.wrong = "it fails without a fault";
    else if (!fits(&o))
        o.wrong = "it does not say that something failed";
    if (o.wrong == NULL && o.rc != HFD_OK && o.started)
        look_at_survivor(l, &o);
    world_stop(&l->world);
    if (o.wrong == NULL)
        restart(l, &o);
    if (o.wrong != NULL) {
        print_error("%s: %s, call %u: %s (answered: %zu of %zu, then %s)\n", f->name,
                    ever ? "from then on" : "once", nth, o.wrong, atomic_load(&l->answered),
                    plan.count, hfd_rc_name(o.rc));
        print_error("again: %s --again %s:%s:%u\n", options->program, f->name,
                    ever ? "ever" : "once", nth);
        load_fini(l);
        exit(1);
    }
    load_fini(l);
    free(l);
    return fired;
}

/* Until no call is left to fail. */
static void fail_all(const struct fault *f, const struct fault_options *options, bool ever)
{
    struct fault_walk walk;
    unsigned tried = 0;

    fault_walk_init(&walk, options, f->name, ever);
    while (fault_walk_next(&walk)) {
        tried++;
        if (fail_nth(f, options, walk.nth, ever) == 0)
            break;
    }
    print_message("             %s, %s: %u of %u calls\n", f->name, ever ? "from then on" : "once",
                  tried, walk.nth);
    if (options->again == NULL && walk.nth <= f->fewest)
        fail_msg("%s: the run has %u such calls only", f->name, walk.nth);
}

void fault_domain_walk(const struct fault *f, const struct fault_options *options)
{
    if (fault_wanted(options, f->name, false))
        fail_all(f, options, false);
    if (f->ever && fault_wanted(options, f->name, true))
        fail_all(f, options, true);
}
