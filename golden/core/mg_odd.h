/* Sums of doubles that lose nothing, or whose last bit says that they did, in vectors (mg_simd.h). */
/* x + y and, in `error`, what that lost (Knuth); of infinities it is a NaN. */
MG_INLINE mg_df mg_two_sum(mg_df x, mg_df y, mg_df *error) {
    const mg_df sum = x + y, second = sum - x;
    *error = (x - (sum - second)) + (y - second);
    return sum;
}

/* A sum and what it lost as one number, rounded to odd. */
MG_INLINE mg_df mg_to_odd(mg_df sum, mg_df error) {
    const mg_dw inexact = (mg_dw)(error < 0) | (mg_dw)(error > 0), even = ((mg_dw)sum & 1) - 1;
    const mg_dw next = ((mg_dw)error ^ (mg_dw)sum) >> 63 | 1; /* toward the error: away from zero, or toward it */
    return (mg_df)((mg_dw)sum + (inexact & even & next));
}

MG_INLINE mg_df mg_odd_sum(mg_df x, mg_df y) {
    mg_df error;
    const mg_df sum = mg_two_sum(x, y, &error);
    return mg_to_odd(sum, error);
}

/* x + y + z rounded to odd, however far they lie apart: algorithm 5 of Boldo and Melquiond. */
MG_INLINE mg_df mg_odd_sum_of_three(mg_df x, mg_df y, mg_df z) {
    mg_df low, rest;
    const mg_df both = mg_two_sum(y, z, &low), high = (mg_df)MG_PICK((mg_dw)(z == 0), (mg_dw)y, (mg_dw)both);
    const mg_df sum = mg_two_sum(x, high, &rest), lost = mg_odd_sum(rest, low);
    return (mg_df)MG_PICK((mg_dw)(lost == 0), (mg_dw)sum,
        (mg_dw)mg_odd_sum(sum, lost)); /* a zero keeps the sign that its addends gave it */
}
