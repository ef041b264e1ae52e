/* What the general interpreter shows of one dot product when somebody watches: numbers in a fixed order.
 *
 * The interpreter calls these functions as it runs; with a null watch they are not called at all. Which numbers there
 * are, and in which order, depends on the program alone, so that the interpreter describes them itself: run once over
 * zeros with `layout` set, it writes down what each record is (mg_observe.c). A number that a dot product did not
 * make - its operation ended early, an alignment had nothing to align - is marked MG_NOT_RUN in `kind`.
 */
#ifndef MG_WATCH_H
#define MG_WATCH_H

#include "mg_number.h"

struct mg_watch {
    mg_number *records;  /* record r of this dot product stands at records[r * stride] */
    int64_t stride;
    int32_t count, at;   /* how many records there are; the next one */
    const int32_t *ends; /* by operation: one past its last record */
    mg_record *layout;   /* describing: what each record is, up to `count` of them; `records` is null then */
    int32_t operation, step, describing, wrong;
};
typedef struct mg_watch mg_watch;

/* Takes the next record, and says what it is where that is asked for. */
static inline MG_BOTH int32_t mg_watch_take(mg_watch *w, int moment, int place, int32_t index) {
    const int32_t at = w->at++;
    if (w->layout && at < w->count) {
        const mg_record what = {w->operation, w->step, moment, place, index};
        w->layout[at] = what;
    }
    return at;
}

static inline MG_BOTH void mg_watch_put(mg_watch *w, int32_t at, const mg_number *x) {
    if (w->records && at >= 0 && at < w->count) w->records[at * w->stride] = *x;
}

/* The next record, not run as long as nobody puts a number there; returns its place. */
static inline MG_BOTH int32_t mg_watch_next(mg_watch *w, int moment, int place, int32_t index) {
    const int32_t at = mg_watch_take(w, moment, place, index);
    const mg_number nothing = {0, 0, 0, 0, MG_NOT_RUN, 0, 0};
    mg_watch_put(w, at, &nothing);
    return at;
}

static inline MG_BOTH void mg_watch_number(mg_watch *w, int moment, int place, int32_t index, const mg_number *x) {
    mg_watch_put(w, mg_watch_take(w, moment, place, index), x);
}

static inline MG_BOTH void mg_watch_register(mg_watch *w, int name, const mg_number *numbers, int32_t count) {
    for (int32_t i = 0; i < count; i++) mg_watch_number(w, MG_MOMENT_REGISTER, name, i, &numbers[i]);
}

/* The addition (or the fused multiply-add) that runs: where its five records begin. What is not made stays not run. */
static inline MG_BOTH int32_t mg_watch_addition(
    mg_watch *w, int place, int32_t index, const mg_number *left, const mg_number *right) {
    const int32_t first = w->at;
    for (int moment = MG_MOMENT_LEFT; moment <= MG_MOMENT_ROUNDED; moment++) mg_watch_next(w, moment, place, index);
    if (left) mg_watch_put(w, first, left);
    if (right) mg_watch_put(w, first + 1, right);
    return first;
}

/* A rounding without addends: its three records. */
static inline MG_BOTH int32_t mg_watch_rounding(mg_watch *w, int place, int32_t index) {
    const int32_t first = w->at;
    for (int moment = MG_MOMENT_EXACT; moment <= MG_MOMENT_ROUNDED; moment++) mg_watch_next(w, moment, place, index);
    return first;
}

/* What a rounding took, what left its rounder before flush and overflow, and what it gave, from record `first` on.
 * `seen` is the exact number as the rounder sees it. */
static inline MG_BOTH void mg_watch_rounded(mg_watch *w, int32_t first, const mg_format *f, const mg_number *exact,
    const mg_number *seen, int rounding, int kept, const mg_number *rounded) {
    mg_watch_put(w, first, exact);
    if (exact->kind <= MG_FINITE && exact->significand) {
        const mg_number unbounded = seen->significand ? mg_round_significand(f, seen, rounding, kept) : *seen;
        mg_watch_put(w, first + 1, &unbounded);
    }
    mg_watch_put(w, first + 2, rounded);
}

/* One aligned term: `x` as the shifter takes it lies `shift` below the maximum and loses its low `cut` bits (all:
 * `outside`). In the record: significand the bits lost, fraction_bits how many bits were cut, exponent the distance to
 * the maximum. */
static inline MG_BOTH void mg_watch_cut(
    mg_watch *w, int32_t at, const mg_number *x, int32_t maximum, int64_t cut, int outside) {
    mg_number lost = {0, 0, maximum - x->exponent, 0, MG_FINITE, x->sign, 0};
    if (outside) {
        const int64_t length = mg_bit_length(x->significand),
                      whole = x->fraction_bits + 1 > length ? x->fraction_bits + 1 : length;
        cut = cut > whole ? cut : whole;
    }
    lost.fraction_bits = cut > 0 ? (int32_t)cut : 0;
    lost.significand = outside || cut > 127 ? x->significand : cut > 0 ? x->significand & (((mg_u128)1 << cut) - 1) : 0;
    mg_watch_put(w, at, &lost);
}

/* The end of an operation: what it did not run is marked, its code is the last record. */
static inline MG_BOTH void mg_watch_result(mg_watch *w, const mg_format *f, uint64_t code) {
    mg_number result = mg_decode(f, code);
    result.payload = code;
    if (!w->describing) {
        const int32_t last = w->ends[w->operation] - 1;
        if (w->at > last) w->wrong = 1;
        while (w->at < last) mg_watch_next(w, 0, 0, 0);
    }
    mg_watch_number(w, MG_MOMENT_RESULT, MG_REGISTER_D, 0, &result);
}

#endif
