/* Chains of an instruction over K, for whole matrix products: each thread has RESULTS x RESULTS results of a tile.
 *
 * golden/tensors/cuda_source.py puts the unit's arithmetic (golden/model/device_text.py) and the constants before this text:
 * UNIT_K elements of a step, TILE rows and columns of a block, STRIDE elements from one row of decoded operands to the
 * next (16 bytes more than a row, so that rows use other banks), REST_A and REST_B the codes beyond the edges, and the
 * types of the codes. A block has THREADS x THREADS threads.
 */

#define RESULTS (TILE / THREADS)

/* TILE rows of K elements of one operand, decoded; `across` rows and `depth` elements of K are left. */
#define CHAIN_LOAD(into, codes, decode, rest, row_stride, k_stride, across, depth)                                      \
    for (int i = threadIdx.y * THREADS + threadIdx.x; i < TILE * UNIT_K; i += THREADS * THREADS) {                      \
        const int along = (k_stride) == 1 ? i % UNIT_K : i / TILE, at = (k_stride) == 1 ? i / UNIT_K : i % TILE;        \
        const bool inside = at < (across) && along < (depth);                                                           \
        (into)[at * STRIDE + along] =                                                                                   \
            decode(inside ? (unsigned long long)(codes)[at * (row_stride) + along * (k_stride)] : (rest));              \
    }

/* d (batches, m, n), one after the other, = the chain of `steps` steps over a (batches, m, k) and b (batches, k, n) from
 * seed (as d), or from zero where seed is NULL; where K ends inside a step, what is at rest follows. Strides are elements. */
extern "C" __global__ void __launch_bounds__(THREADS *THREADS)
    chain(const code_a *a, const code_b *b, const code_c *seed, code_d *d, long long batches, long long m, long long n, long long k,
          long long steps, long long a_batch, long long a_row, long long a_k, long long b_batch, long long b_k,
          long long b_column) {
    __shared__ __align__(16) unit_element left[TILE * STRIDE];
    __shared__ __align__(16) unit_element right[TILE * STRIDE];
    const long long row = (long long)blockIdx.y * TILE, column = (long long)blockIdx.x * TILE;
    for (long long batch = blockIdx.z; batch < batches; batch += gridDim.z) {
        code_d sum[RESULTS][RESULTS];
        for (int i = 0; i < RESULTS; i++)
            for (int j = 0; j < RESULTS; j++) {
                const long long y = row + threadIdx.y + i * THREADS, x = column + threadIdx.x + j * THREADS;
                sum[i][j] = seed && y < m && x < n ? (code_d)seed[(batch * m + y) * n + x] : (code_d)0;
            }
        for (long long step = 0; step < steps; step++) {
            const long long first = step * UNIT_K;
            const code_a *const from_a = a + batch * a_batch + row * a_row + first * a_k;
            const code_b *const from_b = b + batch * b_batch + first * b_k + column * b_column;
            __syncthreads();
            CHAIN_LOAD(left, from_a, unit_decode_a, REST_A, a_row, a_k, m - row, k - first)
            CHAIN_LOAD(right, from_b, unit_decode_b, REST_B, b_column, b_k, n - column, k - first)
            __syncthreads();
#pragma unroll 1 /* one copy of the arithmetic: more would not fit the instruction cache */
            for (int i = 0; i < RESULTS; i++)
#pragma unroll 1
                for (int j = 0; j < RESULTS; j++)
                    sum[i][j] = (code_d)unit_dot(left + (threadIdx.y + i * THREADS) * STRIDE,
                                                 right + (threadIdx.x + j * THREADS) * STRIDE, sum[i][j]);
        }
        for (int i = 0; i < RESULTS; i++)
            for (int j = 0; j < RESULTS; j++) {
                const long long y = row + threadIdx.y + i * THREADS, x = column + threadIdx.x + j * THREADS;
                if (y < m && x < n) d[(batch * m + y) * n + x] = sum[i][j];
            }
    }
}
