/* Threads that stay, and help with one call after the other.
 *
 * A thread that is new, or wakes, begins 30 to 70 us late on a virtual machine, and a caller that sleeps until others
 * have ended wakes as late. So a thread that has helped looks out for more for a while before it sleeps, and no call
 * waits for threads that come when nothing is left. */
#define _GNU_SOURCE /* cpu_set_t */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "mg_internal.h"

#define MG_PATIENCE 50000 /* ns */

typedef struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t turn;         /* a job came, or it is done */
    void *job;                   /* offered, or mg_busy, or null */
    int started, taken, leaving; /* taken: by a call */
#ifdef __linux__
    cpu_set_t cpus;              /* where it may run */
#endif
} mg_seat;

#define MG_FREE_SEAT {.lock = PTHREAD_MUTEX_INITIALIZER, .turn = PTHREAD_COND_INITIALIZER}
static mg_seat mg_seats[MG_MAX_THREADS] = {[0 ... MG_MAX_THREADS - 1] = MG_FREE_SEAT};
static pthread_mutex_t mg_office = PTHREAD_MUTEX_INITIALIZER; /* who is started and taken */
static char mg_busy[1];

/* A thread --------------------------------------------------------------------------------------------------------- */

static int mg_has_job(mg_seat *s) { return __atomic_load_n(&s->job, __ATOMIC_ACQUIRE) != NULL; }

static int mg_exchange(mg_seat *s, void *from, void *to) {
    return __atomic_compare_exchange_n(&s->job, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static int64_t mg_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Until there is a job, or none: looks, then sleeps. Returns whether the thread has to leave instead. */
static int mg_await(mg_seat *s, int job) {
    for (const int64_t until = mg_now() + MG_PATIENCE; mg_now() < until;)
        if (mg_has_job(s) == job) return 0;
    pthread_mutex_lock(&s->lock);
    while (mg_has_job(s) != job && !(job && s->leaving)) pthread_cond_wait(&s->turn, &s->lock);
    const int leaves = job && s->leaving && !mg_has_job(s); /* a job that came may be taken back by now */
    pthread_mutex_unlock(&s->lock);
    return leaves;
}

/* Says to the other side that there is a job, or none any more, or else that the thread has to leave. */
static void mg_say(mg_seat *s, void *job, int leaving) {
    pthread_mutex_lock(&s->lock);
    if (leaving) s->leaving = 1;
    else __atomic_store_n(&s->job, job, __ATOMIC_RELEASE);
    pthread_cond_signal(&s->turn);
    pthread_mutex_unlock(&s->lock);
}

static void *mg_serve(void *seat) {
    mg_seat *s = seat;
    while (!mg_await(s, 1)) {
        void *job = __atomic_load_n(&s->job, __ATOMIC_ACQUIRE);
        if (!job || !mg_exchange(s, job, mg_busy)) continue; /* it was taken back */
        mg_work(job);
        mg_say(s, NULL, 0);
    }
    return NULL;
}

/* All threads ------------------------------------------------------------------------------------------------------ */

/* None outlives a fork, and none the library; a job that runs is done first. */
static void mg_close(void) {
    pthread_mutex_lock(&mg_office);
    for (mg_seat *s = mg_seats; s < mg_seats + MG_MAX_THREADS; s++) {
        if (!s->started) continue;
        mg_say(s, NULL, 1);
        pthread_join(s->thread, NULL);
        s->started = s->leaving = 0;
    }
}

static void mg_open(void) { pthread_mutex_unlock(&mg_office); }

/* The calls of other threads are not in a child process. */
static void mg_open_child(void) {
    for (mg_seat *s = mg_seats; s < mg_seats + MG_MAX_THREADS; s++) *s = (mg_seat)MG_FREE_SEAT;
    mg_open();
}

__attribute__((constructor)) static void mg_begin(void) { pthread_atfork(mg_close, mg_open, mg_open_child); }

__attribute__((destructor)) static void mg_end(void) { mg_close(), mg_open(); }

/* Starts a thread, without the caller's signals, which are not for it. Returns whether it did. */
static int mg_start(mg_seat *s) {
    sigset_t none, callers;
    sigfillset(&none);
    pthread_sigmask(SIG_SETMASK, &none, &callers);
    s->started = !pthread_create(&s->thread, NULL, mg_serve, s);
#ifdef __linux__
    CPU_ZERO(&s->cpus); /* not known yet */
#endif
    pthread_sigmask(SIG_SETMASK, &callers, NULL);
    return s->started;
}

/* Lets threads run where their caller may now. */
static void mg_follow(mg_seat *const *seats, int count) {
#ifdef __linux__
    cpu_set_t cpus;
    if (count == 0 || sched_getaffinity(0, sizeof cpus, &cpus)) return;
    for (int i = 0; i < count; i++)
        if (!CPU_EQUAL(&cpus, &seats[i]->cpus) && !pthread_setaffinity_np(seats[i]->thread, sizeof cpus, &cpus))
            seats[i]->cpus = cpus;
#else
    (void)seats, (void)count;
#endif
}

void mg_share(char *jobs, size_t size, int count) {
    mg_seat *with[MG_MAX_THREADS];
    int helpers = 0;
    if (count == 1) {
        mg_work(jobs);
        return;
    }
    pthread_mutex_lock(&mg_office);
    for (mg_seat *s = mg_seats; s < mg_seats + MG_MAX_THREADS && helpers < count - 1; s++) {
        if (s->taken) continue;
        if (!s->started && !mg_start(s)) break;
        s->taken = 1;
        with[helpers++] = s;
    }
    mg_follow(with, helpers);
    pthread_mutex_unlock(&mg_office);
    for (int i = 0; i < helpers; i++) mg_say(with[i], jobs + (i + 1) * size, 0);
    mg_work(jobs);
    for (int i = 0; i < helpers; i++)
        if (!mg_exchange(with[i], jobs + (i + 1) * size, NULL)) mg_await(with[i], 0);
    pthread_mutex_lock(&mg_office);
    for (int i = 0; i < helpers; i++) with[i]->taken = 0;
    pthread_mutex_unlock(&mg_office);
}
