// mma_pipeline.cu of W. Sun et al., appendix A.1, with any number of stages: cp.async copies STAGES - 1 steps of K ahead.
static __device__ __forceinline__ void copy_16(u32 to, const bf16 *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

static __device__ __forceinline__ void begin_copy(const Tiles &from, u32 stage, u32 at)
{
#pragma unroll
    for (int i = 0; i < COPIES_A; i++)
        copy_16(stage + copied(threadIdx.x + i * THREADS), from.from_a(i, at));
#pragma unroll
    for (int i = 0; i < COPIES_B; i++)
        copy_16(stage + TILE_M * ROW_BYTES + copied(threadIdx.x + i * THREADS), from.from_b(i, at));
}

static __device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    run(const bf16 *a, const bf16 *b, float *d, u64 *clocks, u32 m, u32 n, u32 k)
{
    extern __shared__ __align__(128) u8 tiles[];
    const Time start = now();
    u32 row, column;
    tile_of_block(m, n, row, column);
    const Tiles from(a, b, row, column, k);
    const u32 first = shared_address(tiles);
    Accumulators sums;
#pragma unroll 1
    for (u32 i = 0; i < STAGES - 1; i++) {
        if (i * TILE_K < k)
            begin_copy(from, first + i * STAGE_BYTES, i * TILE_K);
        commit();
    }
    u32 read = 0, written = STAGES - 1;
#pragma unroll 1
    for (u32 at = 0; at < k; at += TILE_K) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads(); // this step is there for all threads, and all have read the one before
        if (at + (STAGES - 1) * TILE_K < k)
            begin_copy(from, first + written * STAGE_BYTES, at + (STAGES - 1) * TILE_K);
        commit(); // also an empty group: wait_group counts them
        sums.multiply(first + read * STAGE_BYTES);
        read = read + 1 == STAGES ? 0 : read + 1;
        written = written + 1 == STAGES ? 0 : written + 1;
    }
    sums.store(d, n, row, column);
    __syncthreads();
    if (threadIdx.x == 0)
        write_clocks(clocks, start);
}
