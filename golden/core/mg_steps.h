/* Steps, formats and their words for the C core.
 *
 * Written by `python -m golden.model.layout` from the step classes in golden/program/steps.py, which say what
 * each member means; not edited by hand.
 */
#ifndef MG_STEPS_H
#define MG_STEPS_H

#include <stdint.h>

/* In a table with one value for each register: none. */
#define MG_NOT_GIVEN INT32_MIN

enum mg_rounding_word {
    MG_ROUNDING_TOWARD_ZERO, MG_ROUNDING_NEAREST_EVEN, MG_ROUNDING_NEAREST_AWAY, MG_ROUNDING_DOWN,
    MG_ROUNDING_UP, MG_ROUNDING_TO_ODD, MG_ROUNDING_NEAREST_UP, MG_ROUNDING_NEAREST_DOWN,
    MG_ROUNDING_NEAREST_ZERO, MG_ROUNDING_NEAREST_ODD, MG_ROUNDING_AWAY, MG_ROUNDING_COUNT,
};

enum mg_overflow_word {
    MG_OVERFLOW_INFINITY, MG_OVERFLOW_LARGEST, MG_OVERFLOW_IEEE, MG_OVERFLOW_NAN, MG_OVERFLOW_WRAP,
    MG_OVERFLOW_SATURATE, MG_OVERFLOW_COUNT,
};

enum mg_flush_word { MG_FLUSH_NONE, MG_FLUSH_SIGNED, MG_FLUSH_POSITIVE, MG_FLUSH_COUNT };

enum mg_operation_word { MG_OPERATION_PRODUCT, MG_OPERATION_AND, MG_OPERATION_XOR, MG_OPERATION_COUNT };

enum mg_negate_word { MG_NEGATE_NONE, MG_NEGATE_PRODUCT, MG_NEGATE_C, MG_NEGATE_BOTH, MG_NEGATE_COUNT };

enum mg_order_word { MG_ORDER_TREE, MG_ORDER_SEQUENTIAL, MG_ORDER_COUNT };

enum mg_start_word { MG_START_C, MG_START_ZERO, MG_START_PRODUCT, MG_START_COUNT };

enum mg_zeros_word { MG_ZEROS_IGNORED, MG_ZEROS_MAXIMUM, MG_ZEROS_STICKY, MG_ZEROS_COUNT };

enum mg_hidden_zeros_word { MG_HIDDEN_ZEROS_KEPT, MG_HIDDEN_ZEROS_SET, MG_HIDDEN_ZEROS_COUNT };

enum mg_cut_word { MG_CUT_DROPPED, MG_CUT_STICKY_ADDED, MG_CUT_STICKY_OR, MG_CUT_COUNT };

enum mg_sticky_word { MG_STICKY_SEEN, MG_STICKY_LEFT_OUT, MG_STICKY_COUNT };

enum mg_tiny_word { MG_TINY_SUBNORMAL_RESULT, MG_TINY_UNBOUNDED, MG_TINY_BEFORE_ROUNDING, MG_TINY_COUNT };

enum mg_left_out_word { MG_LEFT_OUT_NONE, MG_LEFT_OUT_DROPPED, MG_LEFT_OUT_UNSHIFTED, MG_LEFT_OUT_COUNT };

enum mg_place_word { MG_PLACE_CARRIED, MG_PLACE_LEADING, MG_PLACE_COUNT };

enum mg_complement_word { MG_COMPLEMENT_NONE, MG_COMPLEMENT_C, MG_COMPLEMENT_COUNT };

enum mg_cancelled_word { MG_CANCELLED_KEEPS_EXPONENT, MG_CANCELLED_ZERO, MG_CANCELLED_COUNT };

enum mg_zero_times_infinity_word {
    MG_ZERO_TIMES_INFINITY_NAN, MG_ZERO_TIMES_INFINITY_INFINITY, MG_ZERO_TIMES_INFINITY_ZERO,
    MG_ZERO_TIMES_INFINITY_COUNT,
};

enum mg_opposite_word {
    MG_OPPOSITE_NAN, MG_OPPOSITE_FIRST, MG_OPPOSITE_LAST, MG_OPPOSITE_POSITIVE, MG_OPPOSITE_NEGATIVE,
    MG_OPPOSITE_COUNT,
};

enum mg_zero_word { MG_ZERO_POSITIVE, MG_ZERO_SIGNED, MG_ZERO_SIGNED_UNDERFLOW, MG_ZERO_COUNT };

enum mg_side_word { MG_SIDE_BOTH, MG_SIDE_A, MG_SIDE_B, MG_SIDE_COUNT };

enum mg_cause_word {
    MG_CAUSE_A, MG_CAUSE_B, MG_CAUSE_FACTOR, MG_CAUSE_C, MG_CAUSE_INVALID_PRODUCT, MG_CAUSE_OPPOSITE_PRODUCTS,
    MG_CAUSE_OPPOSITE_INFINITIES, MG_CAUSE_COUNT,
};

enum mg_carry_word { MG_CARRY_KEPT, MG_CARRY_LOST, MG_CARRY_COUNT };

enum mg_group_word { MG_GROUP_NONE, MG_GROUP_CONTIGUOUS, MG_GROUP_INTERLEAVED, MG_GROUP_COUNT };

enum mg_status_word {
    MG_STATUS_INVALID, MG_STATUS_OVERFLOW, MG_STATUS_UNDERFLOW, MG_STATUS_INEXACT, MG_STATUS_DIVIDE_BY_ZERO,
    MG_STATUS_COUNT,
};

enum mg_register_word {
    MG_REGISTER_A, MG_REGISTER_B, MG_REGISTER_C, MG_REGISTER_PRODUCTS, MG_REGISTER_GROUPS, MG_REGISTER_DOT,
    MG_REGISTER_TOTAL, MG_REGISTER_PARTIAL, MG_REGISTER_ADDENDS, MG_REGISTER_SCALES, MG_REGISTER_D,
    MG_REGISTER_COUNT,
};

enum mg_specials_word {
    MG_SPECIALS_IEEE, MG_SPECIALS_ALL_ONES_NAN, MG_SPECIALS_NEGATIVE_ZERO_NAN, MG_SPECIALS_NONE,
    MG_SPECIALS_COUNT,
};

enum mg_step_word {
    MG_STEP_FLUSH, MG_STEP_MULTIPLY, MG_STEP_SCALE, MG_STEP_SPECIAL_VALUES, MG_STEP_ALIGN, MG_STEP_SUM,
    MG_STEP_ADDITIONS, MG_STEP_NORMALIZE, MG_STEP_FMA, MG_STEP_ROUND, MG_STEP_HIDDEN_BIT, MG_STEP_PART,
    MG_STEP_REPLACE, MG_STEP_COUNT,
};

/* A number format; see golden/number/formats.py for the meaning of each field. */
typedef struct {
    int32_t is_float;
    int32_t storage;
    int32_t bits;
    int32_t exponent_bits;
    int32_t fraction_bits;
    int32_t bias;
    int32_t specials;
    int32_t is_signed;
    int32_t has_zero;
    int32_t ignored_low;
    int32_t min_exponent;
    int32_t max_exponent;
    int32_t sign_shift;
    int32_t has_infinity;
    int32_t has_nan;
    int32_t lone_zero;
    uint64_t infinity;
    uint64_t largest;
    uint64_t nan;
} mg_format;

/* One primitive step; `of` lists registers in order, per-register values stand at the same index. A
 * member that the step's kind does not have is 0; so is, of enums with a NONE, what is not given. */
typedef struct {
    int32_t op;
    int32_t of_count;
    int32_t of[4];
    int32_t to;
    int32_t sign;
    int32_t operation;
    int32_t negate;
    int32_t zero_times_infinity;
    int32_t normalize;
    int32_t has_overflow_exponent;
    int32_t overflow_exponent;
    int32_t has_format;
    int32_t rounding;
    int32_t flush;
    int32_t tiny;
    int32_t has_nan;
    int32_t by;
    int32_t has_power;
    int32_t power;
    int32_t opposite_infinities;
    int32_t nans_count;
    int32_t nans_cause[7];
    int32_t nans_payload[7];
    int32_t quieted;
    int32_t cut;
    int32_t zeros;
    int32_t sticky_gap;
    int32_t group;
    int32_t group_size;
    int32_t fraction_bits[4];
    int32_t roundings[4];
    int32_t has_shift_limit;
    int32_t shift_limit;
    int32_t left_out[4];
    int32_t has_floor;
    int32_t floor;
    int32_t has_exponent;
    int32_t exponent;
    int32_t has_underflow_exponent;
    int32_t underflow_exponent;
    int32_t maximum_count;
    int32_t maximum_of[4];
    int32_t maximum_leading[4];
    int32_t maximum_plus[4];
    int32_t maximum_has_least[4];
    int32_t maximum_least[4];
    int32_t spared[4];
    int32_t window[4];
    int32_t has_width;
    int32_t width;
    int32_t overflow;
    int32_t complement;
    int32_t cancelled;
    int32_t order;
    int32_t first_nan;
    int32_t has_min_exponent;
    int32_t min_exponent;
    int32_t start;
    int32_t nan_order_count;
    int32_t nan_order[3];
    int32_t zero;
    int32_t subnormal_carry;
    int32_t sticky;
    int32_t has_random_bits;
    int32_t random_bits;
    int32_t random;
    int32_t has_result_fraction_bits;
    int32_t result_fraction_bits;
    int32_t first;
    int32_t bits;
    int32_t places;
    int32_t value;
    uint64_t nan;
    uint64_t nans[7];
    mg_format format;
} mg_step;

#endif
