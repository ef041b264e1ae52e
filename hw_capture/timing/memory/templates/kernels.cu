{% import "setups.cu" as setups -%}
#define WORDS 12288 // 48 KiB of shared memory
#define LOCAL_WORDS 4096 // the driver takes as much for every thread that can be resident

extern "C" __constant__ u32 constants[16384];

// What every chain hands out: cycles of the timed pass, and what nobody reads.
static __device__ __forceinline__ void write_result(u64 *out, u64 start, u64 stop, u64 last)
{
    if (threadIdx.x % 32 == 0) {
        out[threadIdx.x / 32 * 2] = start;
        out[threadIdx.x / 32 * 2 + 1] = stop;
    }
    if ((u32)last == 0x9abcdef1)
        out[0] = 0;
}

// Chains of addresses -----------------------------------------------------------------------------------------

// Word k of `count`, `stride` bytes apart, holds the address of word (421 k + 11) mod count: one cycle through
// all of them in scattered order, if every prime factor of count is 2, 3, 5 or 7. `base` 0: the distance to it.
extern "C" __global__ void fill(u64 first, u64 base, u64 count, u64 stride, u32 skew)
{
    for (u64 k = blockIdx.x * (u64)blockDim.x + threadIdx.x; k < count; k += gridDim.x * (u64)blockDim.x) {
        const u64 next = (421 * k + 11) % count;
        *(u64 *)(first + k * stride + k % skew * 128) = base + next * stride + next % skew * 128;
    }
}

// Brings near what lies in a buffer `apart` bytes from each other, on the multiprocessor that asks for it later.
static __device__ __forceinline__ void touch(u64 buffer, u64 size, u32 apart, u64 *out)
{
    u64 seen = 0; // a load whose result nobody reads is no load: ptxas removes it
    for (u64 k = threadIdx.x; k < size / apart; k += blockDim.x) {
        u64 word;
        asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(word) : "l"(buffer + apart * k) : "memory");
        seen ^= word;
    }
    if (seen == 0x9abcdef123456789ull)
        out[0] = seen;
    __syncthreads();
}
{% for chain in chains %}
// {{ chain.title }}
extern "C" __global__ {{ chain.cluster }}void {{ chain.name }}(u64 first, u64 size, u64 stride, u32 apart, u32 warm, u32 rounds, u64 *out)
{
{{ setups[chain.setup](chain.type) }}
    u64 start = 0, stop = 0;
#pragma unroll 1
    for (u32 pass = 0; pass < 2; pass++) {
        const u32 last = (pass ? rounds : warm) / {{ chain.unroll }};
        start = now();
#pragma unroll 1
        for (u32 turn = 0; turn < last; turn++) {
#pragma unroll
            for (u32 round = 0; round < {{ chain.unroll }}; round++) {
                {{ chain.step }}
            }
        }
        asm volatile("" : "+{{ chain.letter }}"(at) : : "memory");
        {{ chain.wait }}
        stop = now();
    }
{{ setups[chain.finish]() }}
    write_result(out, start, stop, at);
}
{% endfor %}
// Every line holds its own address, in each of its words: a sector written in part would have to be fetched.
extern "C" __global__ void selves(u64 first, u64 stride, u32 count)
{
    const u32 words = (u32)stride / 8;
    for (u32 k = blockIdx.x * blockDim.x + threadIdx.x; k < count * words; k += gridDim.x * blockDim.x)
        *(u64 *)(first + 8 * k) = first + k / words * stride;
}

// Cycles of the load of every line, one after the other, twice: near and far partition of the L2.
extern "C" __global__ void lines(u64 first, u64 stride, u32 count, u32 *cycles)
{
    for (u32 pass = 0; pass < 2; pass++)
        for (u32 k = 0; k < count; k++) {
            u64 at = first + k * stride;
            const u64 start = now();
            asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(at) : : "memory");
            if (!at) // waits for the load
                return;
            cycles[pass * count + k] = (u32)(now() - start);
        }
}

// The multiprocessor that it runs on.
extern "C" __global__ void where(u64 *out)
{
    u32 here;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(here));
    if (!threadIdx.x)
        out[0] = here;
}

extern "C" __global__ void const_base(u64 *out) { asm volatile("mov.u64 %0, constants;" : "=l"(out[0])); }

// Bandwidth ---------------------------------------------------------------------------------------------------

static __device__ __forceinline__ void both(u64 *out, u64 start, u64 time)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        out[4 * blockIdx.x] = start;
        out[4 * blockIdx.x + 1] = now();
        out[4 * blockIdx.x + 2] = time;
        out[4 * blockIdx.x + 3] = nanoseconds();
    }
}
{% for flow in flows %}
// {{ flow.title }}: every thread moves 16 bytes {{ flow.unroll }} times a turn
extern "C" __global__ {{ flow.cluster }}void {{ flow.name }}(u64 first, u64 size, u32 turns, u64 step, u64 *out)
{
{{ setups[flow.setup]() }}
    uint4 sum = make_uint4(0, 0, 0, threadIdx.x);
    __syncthreads();
    const u64 time = nanoseconds(), start = now();
#pragma unroll 1
    for (u32 turn = 0; turn < turns; turn++) {
        uint4 word[{{ flow.unroll }}];
#pragma unroll
        for (u32 i = 0; i < {{ flow.unroll }}; i++) {
            {{ flow.step }}
        }
{%- if flow.advances %}
        at += {{ flow.unroll }} * step;
        at = at >= end ? at - size : at;
{%- endif %}
#pragma unroll
        for (u32 i = 0; i < {{ flow.unroll }}; i++)
            sum.x ^= word[i].x, sum.y ^= word[i].y, sum.z ^= word[i].z, sum.w ^= word[i].w;
    }
    if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x9e3779b9)
        out[0] = 1;
    both(out, start, time);
{{ setups[flow.finish]() }}
}
{% endfor %}
