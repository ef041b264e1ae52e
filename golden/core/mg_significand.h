/* Significands of a block (mg_block.h): one word of 62 bits, or, where MG_WIDE_BLOCKS is defined, two words of 126
 * bits.
 *
 * A significand, its sticky bit and a carry stay below the sign bit. Conditions are masks of words.
 */
#ifdef MG_WIDE_BLOCKS
#define MG_WORD_BITS 126
#define MG_MOST_KEPT MG_MOST_WIDE_FRACTION_BITS
typedef struct {
    mg_w low, high;
} mg_s;

MG_INLINE mg_s mg_s_of(mg_w x) { return (mg_s){x, mg_splat(0)}; } /* x >= 0 */
MG_INLINE mg_s mg_s_where(mg_w mask, mg_s x) { return (mg_s){mask & x.low, mask & x.high}; }
MG_INLINE mg_s mg_s_choose(mg_w mask, mg_s x, mg_s y) {
    return (mg_s){MG_CHOOSE(mask, x.low, y.low), MG_CHOOSE(mask, x.high, y.high)};
}
MG_INLINE mg_s mg_s_and(mg_s x, mg_s y) { return (mg_s){x.low & y.low, x.high & y.high}; }
MG_INLINE mg_s mg_s_or(mg_s x, mg_s y) { return (mg_s){x.low | y.low, x.high | y.high}; }
MG_INLINE mg_s mg_s_without(mg_s x, mg_s y) { return (mg_s){x.low & ~y.low, x.high & ~y.high}; }
MG_INLINE mg_w mg_s_low(mg_s x) { return x.low; }
MG_INLINE mg_w mg_s_some(mg_s x) { return (mg_w)((x.low | x.high) != 0); }
MG_INLINE mg_w mg_s_negative(mg_s x) { return x.high >> 63; }

MG_INLINE mg_s mg_s_add(mg_s x, mg_s y) {
    const mg_u low = (mg_u)x.low + (mg_u)y.low;
    return (mg_s){(mg_w)low, (mg_w)((mg_u)x.high + (mg_u)y.high - (mg_u)(low < (mg_u)x.low))}; /* a mask is -1 */
}

MG_INLINE mg_s mg_s_signed(mg_w negative, mg_s x) {
    const mg_u borrowed = (mg_u)negative & (mg_u)(x.low == 0);
    return (mg_s){mg_signed(negative, x.low), (mg_w)((mg_u)(x.high ^ negative) - borrowed)};
}

/* By 0 ... 127. */
MG_INLINE mg_s mg_s_up(mg_s x, mg_w by) {
    const mg_w far = (mg_w)(by > 63), some = by & 63, moved = mg_up(x.low, some);
    return (mg_s){
        moved & ~far, MG_CHOOSE(far, moved, mg_up(x.high, some) | mg_down(mg_down(x.low, mg_splat(1)), some ^ 63))};
}

MG_INLINE mg_s mg_s_down(mg_s x, mg_w by) {
    const mg_w far = (mg_w)(by > 63), some = by & 63, moved = mg_down(x.high, some);
    return (mg_s){
        MG_CHOOSE(far, moved, mg_down(x.low, some) | mg_up(mg_up(x.high, mg_splat(1)), some ^ 63)), moved & ~far};
}

MG_INLINE mg_s mg_s_ones(mg_w count) {
    const mg_w far = (mg_w)(count > 63), ones = mg_ones(count & 63);
    return (mg_s){far | ones, far & ones};
}

MG_INLINE mg_w mg_s_leading(mg_s x) {
    return MG_CHOOSE((mg_w)(x.high != 0), mg_leading(x.high) + 64, mg_leading(x.low));
}

/* A product that fits. */
MG_INLINE mg_s mg_s_times(mg_s x, mg_s y) {
    const mg_u a = (mg_u)x.low, b = (mg_u)y.low, half = (mg_u)mg_splat(0xffffffff);
    const mg_u lowest = mg_times_halves(a, b), left = mg_times_halves(a >> 32, b), right = mg_times_halves(a, b >> 32);
    const mg_u middle = (lowest >> 32) + (left & half) + (right & half);
    mg_u high = mg_times_halves(a >> 32, b >> 32) + (left >> 32) + (right >> 32) + (middle >> 32);
    if (mg_any_word(x.high | y.high)) high += (mg_u)x.high * b + a * (mg_u)y.high;
    return (mg_s){(mg_w)((lowest & half) | middle << 32), (mg_w)high};
}
#else
#define MG_WORD_BITS 62
#define MG_MOST_KEPT MG_MOST_FRACTION_BITS
typedef mg_w mg_s;
MG_INLINE mg_s mg_s_of(mg_w x) { return x; }
MG_INLINE mg_s mg_s_where(mg_w mask, mg_s x) { return mask & x; }
MG_INLINE mg_s mg_s_choose(mg_w mask, mg_s x, mg_s y) { return MG_CHOOSE(mask, x, y); }
MG_INLINE mg_s mg_s_and(mg_s x, mg_s y) { return x & y; }
MG_INLINE mg_s mg_s_or(mg_s x, mg_s y) { return x | y; }
MG_INLINE mg_s mg_s_without(mg_s x, mg_s y) { return x & ~y; }
MG_INLINE mg_w mg_s_low(mg_s x) { return x; }
MG_INLINE mg_w mg_s_some(mg_s x) { return (mg_w)(x != 0); }
MG_INLINE mg_w mg_s_negative(mg_s x) { return x >> 63; }
MG_INLINE mg_s mg_s_add(mg_s x, mg_s y) { return (mg_w)((mg_u)x + (mg_u)y); }
MG_INLINE mg_s mg_s_signed(mg_w negative, mg_s x) { return mg_signed(negative, x); }
MG_INLINE mg_s mg_s_up(mg_s x, mg_w by) { return mg_up(x, by); } /* by 0 ... 63 */
MG_INLINE mg_s mg_s_down(mg_s x, mg_w by) { return mg_down(x, by); }
MG_INLINE mg_s mg_s_ones(mg_w count) { return mg_ones(count); }
MG_INLINE mg_w mg_s_leading(mg_s x) { return mg_leading(x); }
MG_INLINE mg_s mg_s_times(mg_s x, mg_s y) { return (mg_w)((mg_u)x * (mg_u)y); }
#endif

#define MG_MOST_SHIFT (MG_WORD_BITS + 1)
typedef mg_s mg_significands[MG_PARTS] __attribute__((aligned(64)));
