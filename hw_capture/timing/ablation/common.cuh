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

// This multiprocessor's clock, and the GPU's timer in nanoseconds.
struct Time {
    u64 cycles, nanoseconds;
};

static __device__ __forceinline__ Time now()
{
    Time time;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(time.cycles)::"memory");
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time.nanoseconds)::"memory");
    return time;
}

// Five words a block: its multiprocessor, and both clocks when the block began and when it was done.
static __device__ __forceinline__ void write_clocks(u64 *clocks, Time start)
{
    const Time stop = now();
    u32 multiprocessor;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    u64 *own = clocks + 5 * blockIdx.x;
    own[0] = multiprocessor;
    own[1] = start.cycles;
    own[2] = stop.cycles;
    own[3] = start.nanoseconds;
    own[4] = stop.nanoseconds;
}

// The accumulators of 16 x 8 elements: lane l holds columns 2 (l % 4) and the next one, of rows l / 4 and l / 4 + 8.
static __device__ __forceinline__ void store_16x8(float *d, u32 n, u32 row, u32 column, float4 sum)
{
    const u32 lane = threadIdx.x % 32;
    float *to = d + (size_t)(row + lane / 4) * n + column + lane % 4 * 2;
    *(float2 *)to = make_float2(sum.x, sum.y);
    *(float2 *)(to + 8 * (size_t)n) = make_float2(sum.z, sum.w);
}
