/* Chains of an instruction over K, for whole matrix products: each thread has RESULTS x RESULTS results of a tile.
 *
 * golden/tensors/cuda_source.py puts the unit's arithmetic (golden/model/device_text.py) and the constants before this text:
 * UNIT_K elements of B in a step and UNIT_STORED of A, TILE rows and columns of a block, STRIDE and LEFT_STRIDE elements
 * from one row of decoded operands to the next (16 bytes more than a row, so that rows use other banks), REST_A and REST_B
 * the codes beyond the edges, and the types of the codes. UNIT_SPARSITY (enum mg_sparsity_word, or 0) has UNIT_CHUNKS nibbles
 * a row of A in a step; UNIT_SCALES is the block scales of a row or column in a step. A block has THREADS x THREADS threads.
 */

#define RESULTS (TILE / THREADS)

/* TILE rows of `count` codes of one operand, decoded; `across` rows and `depth` codes along K are left. */
#define CHAIN_LOAD(into, stride, count, codes, decode, rest, row_stride, k_stride, across, depth)                       \
    for (int i = threadIdx.y * THREADS + threadIdx.x; i < TILE * (count); i += THREADS * THREADS) {                     \
        const int along = (k_stride) == 1 ? i % (count) : i / TILE, at = (k_stride) == 1 ? i / (count) : i % TILE;      \
        const bool inside = at < (across) && along < (depth);                                                           \
        (into)[at * (stride) + along] =                                                                                 \
            decode(inside ? (unsigned long long)(codes)[at * (row_stride) + along * (k_stride)] : (rest));              \
    }

/* d (batches, m, n), one after the other, = the chain of `steps` steps over a (batches, m, k) and b (batches, k, n) from
 * seed (as d), or from zero where seed is NULL; where K ends inside a step, what is at rest follows. Strides are elements. `metadata` (batches, m, chunks), `scale_a`
 * (batches, m, blocks) and `scale_b` (batches, n, blocks) lie one after the other. */
extern "C" __global__ void __launch_bounds__(THREADS *THREADS)
    chain(const code_a *a, const code_b *b, const code_c *seed, code_d *d, long long batches, long long m, long long n, long long k,
          long long steps, long long a_batch, long long a_row, long long a_k, long long b_batch, long long b_k,
          long long b_column, const unsigned char *metadata, long long chunks, const unsigned char *scale_a,
          const unsigned char *scale_b, long long blocks) {
    __shared__ __align__(16) unit_element left[TILE * LEFT_STRIDE];
    __shared__ __align__(16) unit_element right[TILE * STRIDE];
#if UNIT_SPARSITY
    __shared__ char nibbles[TILE * UNIT_CHUNKS];
#endif
#if UNIT_SCALES
    __shared__ uint64_t scales_left[TILE * UNIT_SCALES];
    __shared__ uint64_t scales_right[TILE * UNIT_SCALES];
#endif
    const long long row = (long long)blockIdx.y * TILE, column = (long long)blockIdx.x * TILE;
    for (long long batch = blockIdx.z; batch < batches; batch += gridDim.z) {
        code_sum sum[RESULTS][RESULTS]; /* c before the first step, then d */
        for (int i = 0; i < RESULTS; i++)
            for (int j = 0; j < RESULTS; j++) {
                const long long y = row + threadIdx.y + i * THREADS, x = column + threadIdx.x + j * THREADS;
                sum[i][j] = seed && y < m && x < n ? (code_sum)seed[(batch * m + y) * n + x] : (code_sum)0;
            }
        for (long long step = 0; step < steps; step++) {
            const long long first = step * UNIT_K, first_stored = step * UNIT_STORED;
            const code_a *const from_a = a + batch * a_batch + row * a_row + first_stored * a_k;
            const code_b *const from_b = b + batch * b_batch + first * b_k + column * b_column;
            __syncthreads();
            CHAIN_LOAD(left, LEFT_STRIDE, UNIT_STORED, from_a, unit_decode_a, REST_A, a_row, a_k, m - row,
                       k * UNIT_STORED / UNIT_K - first_stored)
            CHAIN_LOAD(right, STRIDE, UNIT_K, from_b, unit_decode_b, REST_B, b_column, b_k, n - column, k - first)
#if UNIT_SPARSITY
            CHAIN_LOAD(nibbles, UNIT_CHUNKS, UNIT_CHUNKS, metadata + (batch * m + row) * chunks + step * UNIT_CHUNKS, (char),
                       REST_METADATA, chunks, 1, m - row, chunks - step * UNIT_CHUNKS)
#endif
#if UNIT_SCALES
            CHAIN_LOAD(scales_left, UNIT_SCALES, UNIT_SCALES, scale_a + (batch * m + row) * blocks + step * UNIT_SCALES, ,
                       REST_SCALE_A, blocks, 1, m - row, blocks - step * UNIT_SCALES)
            CHAIN_LOAD(scales_right, UNIT_SCALES, UNIT_SCALES, scale_b + (batch * n + column) * blocks + step * UNIT_SCALES, ,
                       REST_SCALE_B, blocks, 1, n - column, blocks - step * UNIT_SCALES)
#endif
            __syncthreads();
#pragma unroll 1 /* one copy of the arithmetic: more would not fit the instruction cache */
            for (int i = 0; i < RESULTS; i++)
#pragma unroll 1
                for (int j = 0; j < RESULTS; j++) {
                    const int y = threadIdx.y + i * THREADS, x = threadIdx.x + j * THREADS;
#if UNIT_SPARSITY
                    unit_element met[UNIT_STORED];
                    for (int s = 0; s < UNIT_STORED; s++)
                        met[s] = right[x * STRIDE + mg_selected(UNIT_SPARSITY, nibbles + y * UNIT_CHUNKS, 1, s)];
#else
                    const unit_element *const met = right + x * STRIDE;
#endif
#if UNIT_SCALES
                    sum[i][j] = (code_sum)unit_dot(left + y * LEFT_STRIDE, met, sum[i][j], scales_left + y * UNIT_SCALES,
                                                 scales_right + x * UNIT_SCALES);
#else
                    sum[i][j] = (code_sum)unit_dot(left + y * LEFT_STRIDE, met, sum[i][j]);
#endif
                }
        }
        for (int i = 0; i < RESULTS; i++)
            for (int j = 0; j < RESULTS; j++) {
                const long long y = row + threadIdx.y + i * THREADS, x = column + threadIdx.x + j * THREADS;
                if (y < m && x < n) d[(batch * m + y) * n + x] = (code_d)sum[i][j];
            }
    }
}
