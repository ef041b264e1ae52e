/* The operands of a tile for a C compiler: what the GPU makes for the same seed and tile number. Scales lie by rows of A and
 * by columns of B. */
int campaign_tile(uint64_t seed, uint64_t tile, int32_t kind, uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d, uint8_t *metadata,
                  uint64_t *scale_a, uint64_t *scale_b);
int campaign_tile(uint64_t seed, uint64_t tile, int32_t kind, uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d, uint8_t *metadata,
                  uint64_t *scale_a, uint64_t *scale_b) {
    const campaign_plan plan = campaign_plan_tile(seed, tile, kind);
    campaign_slot slots[CAMPAIGN_K];
    for (int k = 0; k < CAMPAIGN_K; k++) slots[k] = campaign_slot_of(&plan, k);
#if CAMPAIGN_PATTERN
    for (int row = 0; row < CAMPAIGN_M; row++)
        for (int i = 0; i < CAMPAIGN_CHUNKS; i++) metadata[row * CAMPAIGN_CHUNKS + i] = campaign_metadata(&plan, row, i);
    const int chunks = CAMPAIGN_CHUNKS;
#else
    const int chunks = 0;
#endif
#if CAMPAIGN_SCALES
    for (int i = 0; i < CAMPAIGN_M * CAMPAIGN_SCALES; i++) scale_a[i] = campaign_scale(&plan, 0, i / CAMPAIGN_SCALES, i % CAMPAIGN_SCALES);
    for (int i = 0; i < CAMPAIGN_N * CAMPAIGN_SCALES; i++) scale_b[i] = campaign_scale(&plan, 1, i / CAMPAIGN_SCALES, i % CAMPAIGN_SCALES);
#define CAMPAIGN_SCALES_OF(row, column) , scale_a + (row) * CAMPAIGN_SCALES, scale_b + (column) * CAMPAIGN_SCALES
#else
    (void)scale_a, (void)scale_b;
#define CAMPAIGN_SCALES_OF(row, column)
#endif
    for (int row = 0; row < CAMPAIGN_M; row++)
        for (int k = 0; k < CAMPAIGN_K; k++) a[row * CAMPAIGN_K + k] = campaign_operand(&plan, &slots[k], 0, row);
    for (int k = 0; k < CAMPAIGN_LOGICAL_K; k++)
        for (int column = 0; column < CAMPAIGN_N; column++) b[k * CAMPAIGN_N + column] = campaign_b_of(&plan, slots, metadata, k, column);
    for (int row = 0; row < CAMPAIGN_M; row++)
        for (int column = 0; column < CAMPAIGN_N; column++) {
            unit_element x[CAMPAIGN_K], y[CAMPAIGN_K];
            for (int k = 0; k < CAMPAIGN_K; k++) {
                x[k] = unit_decode_a(a[row * CAMPAIGN_K + k]);
                y[k] = unit_decode_b(b[campaign_column(metadata + row * chunks, k) * CAMPAIGN_N + column]);
            }
            const int at = row * CAMPAIGN_N + column;
            c[at] = campaign_c_of(&plan, row, column, x[plan.turn], y[plan.turn]);
            d[at] = unit_dot(x, y, c[at] CAMPAIGN_SCALES_OF(row, column));
        }
    return plan.kind;
}
