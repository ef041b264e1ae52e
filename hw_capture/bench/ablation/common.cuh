// What all kernels of the ladder share: D (m, n) in f32 = A (m, k) B (n, k)^T in bf16, K contiguous in both; m and n are
// multiples of the tile, k of TILE_K.

typedef uint16_t bf16;

static __device__ __forceinline__ u32 shared_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// First row and column of this block's tile. Blocks that run together walk down 8 tiles of rows before they go on to the
// next column, so that what they read stays in L2.
static __device__ __forceinline__ void tile_of_block(u32 m, u32 n, u32 &row, u32 &column)
{
    const u32 down = m / TILE_M, across = n / TILE_N, first = blockIdx.x / (8 * across) * 8;
    const u32 high = min(down - first, 8), place = blockIdx.x % (8 * across);
    row = (first + place % high) * TILE_M;
    column = place / high * TILE_N;
}

static __device__ __forceinline__ u64 now()
{
    u64 clock;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(clock)::"memory");
    return clock;
}

// Three words a block: its multiprocessor, and that one's clock when the block began and when it was done.
static __device__ __forceinline__ void write_clocks(u64 *clocks, u64 start)
{
    u32 multiprocessor;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    clocks[3 * blockIdx.x] = multiprocessor;
    clocks[3 * blockIdx.x + 1] = start;
    clocks[3 * blockIdx.x + 2] = now();
}

// The accumulators of 16 x 8 elements: lane l holds columns 2 (l % 4) and the next one, of rows l / 4 and l / 4 + 8.
static __device__ __forceinline__ void store_16x8(float *d, u32 n, u32 row, u32 column, float4 sum)
{
    const u32 lane = threadIdx.x % 32;
    float *to = d + (size_t)(row + lane / 4) * n + column + lane % 4 * 2;
    *(float2 *)to = make_float2(sum.x, sum.y);
    *(float2 *)(to + 8 * (size_t)n) = make_float2(sum.z, sum.w);
}
