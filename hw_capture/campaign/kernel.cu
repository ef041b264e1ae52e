// Tiles of operands through the matrix unit and through the golden arithmetic, side by side.
//
// CAMPAIGN_LANES threads (a warp, or a warpgroup for wgmma) make a tile's operands in shared memory, as the raw words that
// the instruction takes and decoded for the golden arithmetic; then every lane checks its own elements of D. Loops stay
// rolled and values pass through shared memory, so that one copy of the dot product fits the instruction cache. Words of C
// and D that shared memory has no room for (CAMPAIGN_OWN_RESULTS) pass through local memory instead.

#if CAMPAIGN_LANES == 32
#define CAMPAIGN_SYNC() __syncwarp()
#else
#define CAMPAIGN_SYNC() __syncthreads()
#endif

typedef CAMPAIGN_REGISTER campaign_register;

// Where register r of a lane lies in the words of C and D.
#if CAMPAIGN_OWN_RESULTS
#define CAMPAIGN_OWN(r, lane) (r)
#else
#define CAMPAIGN_OWN(r, lane) ((r) * CAMPAIGN_LANES + (lane))
#endif

struct campaign_area {
    campaign_register *raw_a, *raw_b, *c, *d;
    unit_element *a, *b;
    campaign_slot *slots;
    unsigned char *nibbles;
#if CAMPAIGN_SCALES
    u64 *scale_a, *scale_b;
#endif
};

// Numbers of dots, mismatches, and results by class.
enum { COUNT_DOTS, COUNT_MISMATCHES, COUNT_NAN, COUNT_INFINITY, COUNT_ZERO, COUNT_SUBNORMAL, COUNT_OTHER, CAMPAIGN_COUNTS };

static __device__ __forceinline__ campaign_area campaign_areas(unsigned char *base)
{
    campaign_area s;
    s.raw_a = (campaign_register *)(base + CAMPAIGN_AT_RAW_A);
    s.raw_b = (campaign_register *)(base + CAMPAIGN_AT_RAW_B);
    s.c = (campaign_register *)(base + CAMPAIGN_AT_C);
    s.d = (campaign_register *)(base + CAMPAIGN_AT_D);
    s.a = (unit_element *)(base + CAMPAIGN_AT_A);
    s.b = (unit_element *)(base + CAMPAIGN_AT_B);
    s.slots = (campaign_slot *)(base + CAMPAIGN_AT_SLOTS);
    s.nibbles = base + CAMPAIGN_AT_NIBBLES;
#if CAMPAIGN_SCALES
    s.scale_a = (u64 *)(base + CAMPAIGN_AT_SCALE_A);
    s.scale_b = (u64 *)(base + CAMPAIGN_AT_SCALE_B);
#endif
    return s;
}

// Element i of a lane, of words with `count` elements of `bits` bits.
static __device__ __forceinline__ campaign_code campaign_extract(const campaign_register *words, int lane, int i, int count, int bits)
{
    const campaign_register word = words[CAMPAIGN_OWN(i / count, lane)];
    if (count == 1) return (campaign_code)word;
    return (campaign_code)(word >> i % count * bits & ((1u << bits % 32) - 1));
}

// A and B of the tile, raw and as the golden arithmetic takes them, and their scales.
static __device__ __forceinline__ void campaign_make(const campaign_plan &plan, const campaign_area &s, int lane)
{
#pragma unroll 1
    for (int k = lane; k < CAMPAIGN_K; k += CAMPAIGN_LANES)
        s.slots[k] = campaign_slot_of(&plan, k);
#if CAMPAIGN_PATTERN
#pragma unroll 1
    for (int i = lane; i < CAMPAIGN_M * CAMPAIGN_CHUNKS; i += CAMPAIGN_LANES)
        s.nibbles[i] = campaign_metadata(&plan, i / CAMPAIGN_CHUNKS, i % CAMPAIGN_CHUNKS);
#endif
#if CAMPAIGN_SCALES
#pragma unroll 1
    for (int i = lane; i < (CAMPAIGN_M + CAMPAIGN_N) * CAMPAIGN_SCALES; i += CAMPAIGN_LANES) {
        const int of_b = i >= CAMPAIGN_M * CAMPAIGN_SCALES, at = of_b ? i - CAMPAIGN_M * CAMPAIGN_SCALES : i;
        (of_b ? s.scale_b : s.scale_a)[at] = campaign_scale(&plan, of_b, at / CAMPAIGN_SCALES, at % CAMPAIGN_SCALES);
    }
#endif
    CAMPAIGN_SYNC();
#pragma unroll 1
    for (int i = lane; i < CAMPAIGN_A_WORDS; i += CAMPAIGN_LANES) {
        campaign_register word = 0;
#pragma unroll 1
        for (int e = 0; e < CAMPAIGN_A_PER_WORD; e++) {
            const int row = CAMPAIGN_A_ROW(i, e), k = CAMPAIGN_A_COLUMN(i, e);
            const campaign_code code = campaign_operand(&plan, &s.slots[k], 0, row);
            word |= (campaign_register)code << e * CAMPAIGN_A_BITS + CAMPAIGN_A_SHIFT;
            s.a[row * CAMPAIGN_A_STRIDE + k] = unit_decode_a(code);
        }
        s.raw_a[CAMPAIGN_A_PLACE(i)] = word;
    }
#pragma unroll 1
    for (int i = lane; i < CAMPAIGN_B_WORDS; i += CAMPAIGN_LANES) {
        campaign_register word = 0;
#pragma unroll 1
        for (int e = 0; e < CAMPAIGN_B_PER_WORD; e++) {
            const int k = CAMPAIGN_B_ROW(i, e), column = CAMPAIGN_B_COLUMN(i, e);
            const campaign_code code = campaign_b_of(&plan, s.slots, s.nibbles, k, column);
            word |= (campaign_register)code << e * CAMPAIGN_B_BITS + CAMPAIGN_B_SHIFT;
            s.b[column * CAMPAIGN_B_STRIDE + k] = unit_decode_b(code);
        }
        s.raw_b[CAMPAIGN_B_PLACE(i)] = word;
    }
    CAMPAIGN_SYNC();
}

// The metadata of a row of A.
static __device__ __forceinline__ const unsigned char *campaign_row(const campaign_area &s, int row)
{
    return s.nibbles + (CAMPAIGN_PATTERN ? row * CAMPAIGN_CHUNKS : 0);
}

// c of an element of D.
static __device__ __forceinline__ campaign_code campaign_c_at(const campaign_plan &plan, const campaign_area &s, int row, int column)
{
    const unit_element a = s.a[row * CAMPAIGN_A_STRIDE + plan.turn];
    const unit_element b = s.b[column * CAMPAIGN_B_STRIDE + campaign_column(campaign_row(s, row), plan.turn)];
    return (campaign_code)campaign_c_of(&plan, row, column, a, b);
}

// c of the lane's own elements.
static __device__ __forceinline__ void campaign_make_c(const campaign_plan &plan, const campaign_area &s, int lane)
{
#pragma unroll 1
    for (int r = 0; r < CAMPAIGN_C_REGISTERS; r++) {
        campaign_register word = 0;
#pragma unroll 1
        for (int e = 0; e < CAMPAIGN_C_PER_REGISTER; e++) {
            const int row = CAMPAIGN_C_ROW(lane, r, e), column = CAMPAIGN_C_COLUMN(lane, r, e);
            word |= (campaign_register)campaign_c_at(plan, s, row, column) << e * CAMPAIGN_C_BITS;
        }
        s.c[CAMPAIGN_OWN(r, lane)] = word;
    }
}

#if CAMPAIGN_PATTERN
static __device__ __forceinline__ u32 campaign_metadata_register(const campaign_area &s, int lane)
{
    u32 word = 0;
#pragma unroll 1
    for (int e = 0; e < 8; e++)
        if (CAMPAIGN_METADATA_ACTIVE(lane, e))
            word |= (u32)campaign_row(s, CAMPAIGN_METADATA_ROW(lane, e))[CAMPAIGN_METADATA_CHUNK(lane, e)] << 4 * e;
    return word;
}
#define CAMPAIGN_AND_METADATA , metadata
#else
#define CAMPAIGN_AND_METADATA
#endif

#if CAMPAIGN_SCALES
// The register with the scales of A or B that a lane hands over.
static __device__ __forceinline__ u32 campaign_scale_register(const campaign_area &s, int of_b, int lane)
{
    u32 word = 0;
#pragma unroll 1
    for (int e = 0; e < 4; e++) {
        if (!of_b && CAMPAIGN_SCALE_A_ACTIVE(lane, e))
            word |= (u32)s.scale_a[CAMPAIGN_SCALE_A_ROW(lane, e) * CAMPAIGN_SCALES + CAMPAIGN_SCALE_A_COLUMN(lane, e)] << 8 * e;
        if (of_b && CAMPAIGN_SCALE_B_ACTIVE(lane, e))
            word |= (u32)s.scale_b[CAMPAIGN_SCALE_B_COLUMN(lane, e) * CAMPAIGN_SCALES + CAMPAIGN_SCALE_B_ROW(lane, e)] << 8 * e;
    }
    return word;
}
#define CAMPAIGN_AND_SCALES , campaign_scale_register(s, 0, lane), campaign_scale_register(s, 1, lane)
#define CAMPAIGN_SCALES_OF(row, column) , s.scale_a + (row) * CAMPAIGN_SCALES, s.scale_b + (column) * CAMPAIGN_SCALES
#else
#define CAMPAIGN_AND_SCALES
#define CAMPAIGN_SCALES_OF(row, column)
#endif

// The instruction itself, from the words in shared memory to the words of d.
static __device__ __forceinline__ void campaign_execute(const campaign_area &s, int lane)
{
    campaign_register d[CAMPAIGN_D_REGISTERS];
#if CAMPAIGN_PATTERN
    const u32 metadata = campaign_metadata_register(s, lane);
#endif
#if CAMPAIGN_LANES == 32
    campaign_register a[CAMPAIGN_A_WORDS / 32], b[CAMPAIGN_B_WORDS / 32], c[CAMPAIGN_C_REGISTERS];
#pragma unroll
    for (int r = 0; r < CAMPAIGN_A_WORDS / 32; r++) a[r] = s.raw_a[r * 32 + lane];
#pragma unroll
    for (int r = 0; r < CAMPAIGN_B_WORDS / 32; r++) b[r] = s.raw_b[r * 32 + lane];
#pragma unroll
    for (int r = 0; r < CAMPAIGN_C_REGISTERS; r++) c[r] = s.c[CAMPAIGN_OWN(r, lane)];
    mma(d, a, b, c CAMPAIGN_AND_METADATA CAMPAIGN_AND_SCALES);
#else
#pragma unroll
    for (int r = 0; r < CAMPAIGN_C_REGISTERS; r++) d[r] = s.c[CAMPAIGN_OWN(r, lane)];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // wgmma reads shared memory through the async proxy
    __syncthreads();
    wgmma_begin();
    mma(d, descriptor(s.raw_a, CAMPAIGN_A_WORDS * 4 / CAMPAIGN_M * 8), descriptor(s.raw_b, CAMPAIGN_B_WORDS * 4 / CAMPAIGN_N * 8)
            CAMPAIGN_AND_METADATA);
    wgmma_end();
#endif
#pragma unroll
    for (int r = 0; r < CAMPAIGN_D_REGISTERS; r++) s.d[CAMPAIGN_OWN(r, lane)] = d[r];
}

static __device__ __forceinline__ campaign_code campaign_golden(const campaign_area &s, int row, int column, campaign_code c)
{
    const unit_element *a = (const unit_element *)__builtin_assume_aligned(s.a + row * CAMPAIGN_A_STRIDE, 16);
    const unit_element *b = (const unit_element *)__builtin_assume_aligned(s.b + column * CAMPAIGN_B_STRIDE, 16);
#if CAMPAIGN_PATTERN
    unit_element y[CAMPAIGN_K];
#pragma unroll
    for (int k = 0; k < CAMPAIGN_K; k++) y[k] = b[campaign_column(campaign_row(s, row), k)];
    return (campaign_code)unit_dot(a, y, c CAMPAIGN_SCALES_OF(row, column));
#else
    return (campaign_code)unit_dot(a, b, c CAMPAIGN_SCALES_OF(row, column));
#endif
}

static __device__ __forceinline__ int campaign_class(campaign_code d)
{
    const mg_format f = unit_d();
    if (!f.is_float) return d == 0 ? COUNT_ZERO : COUNT_OTHER;
    const campaign_code magnitude = d & (((campaign_code)1 << f.sign_shift) - 1);
    if (magnitude > (campaign_code)f.infinity) return COUNT_NAN;
    if (magnitude == (campaign_code)f.infinity) return COUNT_INFINITY;
    return magnitude == 0 ? COUNT_ZERO : magnitude >> f.fraction_bits == 0 ? COUNT_SUBNORMAL : COUNT_OTHER;
}

// Keeps one of the first mismatches: where, both results, and the operands, made again from the plan.
static __device__ __noinline__ void campaign_record(u64 seed, u64 tile, int kind, int row, int column, campaign_code c, campaign_code d,
    campaign_code expected, const campaign_area &s, unsigned long long *counts, u64 *records)
{
    const u64 index = atomicAdd(&counts[COUNT_MISMATCHES], 1ull);
    if (index >= CAMPAIGN_RECORDS) return;
    const campaign_plan made = campaign_plan_tile(seed, tile, kind), *plan = &made;
    u64 *record = records + index * (7 + 2 * CAMPAIGN_K + 2 * CAMPAIGN_SCALES);
    const u64 head[7] = {tile, (u64)plan->kind, (u64)row, (u64)column, c, d, expected};
    for (int i = 0; i < 7; i++) record[i] = head[i];
    for (int k = 0; k < CAMPAIGN_K; k++) {
        record[7 + k] = campaign_operand(plan, &s.slots[k], 0, row);
        record[7 + CAMPAIGN_K + k] = campaign_b_of(plan, s.slots, s.nibbles, campaign_column(campaign_row(s, row), k), column);
    }
#if CAMPAIGN_SCALES
    for (int i = 0; i < CAMPAIGN_SCALES; i++) {
        record[7 + 2 * CAMPAIGN_K + i] = s.scale_a[row * CAMPAIGN_SCALES + i];
        record[7 + 2 * CAMPAIGN_K + CAMPAIGN_SCALES + i] = s.scale_b[column * CAMPAIGN_SCALES + i];
    }
#endif
}

extern "C" __global__ void __launch_bounds__(128)
campaign(u64 seed, u64 first, u64 tiles, int kind, unsigned long long *counts, u64 *records)
{
    extern __shared__ __align__(1024) unsigned char shared[];
    const int lane = threadIdx.x % CAMPAIGN_LANES, group = threadIdx.x / CAMPAIGN_LANES, groups = 128 / CAMPAIGN_LANES;
#if CAMPAIGN_OWN_RESULTS
    campaign_register own_c[CAMPAIGN_C_REGISTERS], own_d[CAMPAIGN_D_REGISTERS];
    campaign_area s = campaign_areas(shared + group * CAMPAIGN_AREA);
    s.c = own_c, s.d = own_d;
#else
    const campaign_area s = campaign_areas(shared + group * CAMPAIGN_AREA);
#endif
    u32 classes[CAMPAIGN_COUNTS] = {0};
    for (u64 i = (u64)blockIdx.x * groups + group; i < tiles; i += (u64)gridDim.x * groups) {
        const campaign_plan plan = campaign_plan_tile(seed, first + i, kind);
        campaign_make(plan, s, lane);
        campaign_make_c(plan, s, lane);
        campaign_execute(s, lane);
#pragma unroll 1
        for (int j = 0; j < CAMPAIGN_D_REGISTERS * CAMPAIGN_D_PER_REGISTER; j++) {
            const int r = j / CAMPAIGN_D_PER_REGISTER, e = j % CAMPAIGN_D_PER_REGISTER;
            const int row = CAMPAIGN_D_ROW(lane, r, e), column = CAMPAIGN_D_COLUMN(lane, r, e);
#if CAMPAIGN_C_ELSEWHERE // another lane holds it
            const campaign_code c = campaign_c_at(plan, s, row, column);
#else
            const campaign_code c = campaign_extract(s.c, lane, j, CAMPAIGN_C_PER_REGISTER, CAMPAIGN_C_BITS);
#endif
            const campaign_code d = campaign_extract(s.d, lane, j, CAMPAIGN_D_PER_REGISTER, CAMPAIGN_D_BITS);
            const campaign_code expected = campaign_golden(s, row, column, c);
            const int found = campaign_class(d);
#pragma unroll
            for (int k = COUNT_NAN; k < CAMPAIGN_COUNTS; k++) classes[k] += found == k;
            classes[COUNT_DOTS]++;
            if (d != expected) campaign_record(seed, first + i, kind, row, column, c, d, expected, s, counts, records);
        }
        CAMPAIGN_SYNC();
    }
#pragma unroll
    for (int k = 0; k < CAMPAIGN_COUNTS; k++)
        if (classes[k]) atomicAdd(&counts[k], (unsigned long long)classes[k]);
}
