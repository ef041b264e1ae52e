/* Sums of doubles that lose nothing, or whose last bit says that they did, in vectors of MG_DOUBLES. Included for each length. */
#define MG_ODD(name) MG_JOIN(name, MG_DOUBLES)
#define mg_df MG_ODD(mg_df)
#define mg_dw MG_ODD(mg_dw)
typedef double mg_df __attribute__((vector_size(8 * MG_DOUBLES)));
typedef int64_t mg_dw __attribute__((vector_size(8 * MG_DOUBLES)));

/* x + y and, in `error`, what that lost (Knuth); of infinities it is a NaN. */
MG_INLINE mg_df MG_ODD(mg_two_sum)(mg_df x, mg_df y, mg_df *error) {
    const mg_df sum = x + y, second = sum - x;
    *error = (x - (sum - second)) + (y - second);
    return sum;
}

/* A sum and what it lost as one number, rounded to odd. */
MG_INLINE mg_df MG_ODD(mg_to_odd)(mg_df sum, mg_df error) {
    const mg_dw inexact = (mg_dw)(error < 0) | (mg_dw)(error > 0), even = ((mg_dw)sum & 1) - 1;
    const mg_dw next = ((mg_dw)error ^ (mg_dw)sum) >> 63 | 1; /* toward the error: away from zero, or toward it */
    return (mg_df)((mg_dw)sum + (inexact & even & next));
}

MG_INLINE mg_df MG_ODD(mg_odd_sum)(mg_df x, mg_df y) {
    mg_df error;
    const mg_df sum = MG_ODD(mg_two_sum)(x, y, &error);
    return MG_ODD(mg_to_odd)(sum, error);
}

/* x + y + z rounded to odd, however far they lie apart: algorithm 5 of Boldo and Melquiond. */
MG_INLINE mg_df MG_ODD(mg_odd_sum_of_three)(mg_df x, mg_df y, mg_df z) {
    mg_df low, rest;
    const mg_df both = MG_ODD(mg_two_sum)(y, z, &low), high = (mg_df)MG_PICK((mg_dw)(z == 0), (mg_dw)y, (mg_dw)both);
    const mg_df sum = MG_ODD(mg_two_sum)(x, high, &rest), lost = MG_ODD(mg_odd_sum)(rest, low);
    return (mg_df)MG_PICK((mg_dw)(lost == 0), (mg_dw)sum, (mg_dw)MG_ODD(mg_odd_sum)(sum, lost)); /* a zero keeps the sign that its addends gave it */
}

/* A number below 2^52 cut to an integer. */
MG_INLINE mg_df MG_ODD(mg_whole)(mg_df x) {
#ifdef MG_NATIVE_CUT
    return (mg_df)MG_NATIVE_CUT(x);
#else
    const mg_dw sign = (mg_dw)x & INT64_MIN;
    const mg_df magnitude = (mg_df)((mg_dw)x ^ sign), nearest = magnitude + 0x1p52 - 0x1p52, one = (mg_df){0} + 1;
    return (mg_df)((mg_dw)(nearest - (mg_df)((mg_dw)(nearest > magnitude) & (mg_dw)one)) | sign);
#endif
}

/* The same rounded down. */
MG_INLINE mg_df MG_ODD(mg_floor)(mg_df x) {
#ifdef MG_NATIVE_FLOOR
    return (mg_df)MG_NATIVE_FLOOR(x);
#else
    const mg_df whole = MG_ODD(mg_whole)(x), one = (mg_df){0} + 1;
    return whole - (mg_df)((mg_dw)(whole > x) & (mg_dw)one);
#endif
}
