
// {{ title }}: {{ ilp }} independent chains, {{ unroll }} rounds to one turn of the loop
extern "C" __global__ void {{ name }}(const u32 *data, u64 *clocks, u32 *sink, u32 turns)
{
    const u32 lane = threadIdx.x % 32;
{{ setup }}
    u64 start;
#pragma unroll 1
    for (int pass = {{ 0 if warm else 1 }}; pass < 2; pass++) { // pass 0 brings the code into the instruction cache
        const u32 last = pass ? turns : 1;
        __syncthreads();
        start = now();
{{ begin }}
#pragma unroll 1
        for (u32 turn = 0; turn < last; turn++) {
#pragma unroll
            for (int round = 0; round < {{ unroll }}; round++) {
#pragma unroll
                for (int i = 0; i < {{ ilp }}; i++) {
{{ step }}
                }
{{ each }}
            }
{{ after }}
        }
{{ end }}
    }
    const u64 stop = now();
    if (lane == 0) {
        clocks[threadIdx.x / 32 * 2] = start;
        clocks[threadIdx.x / 32 * 2 + 1] = stop;
    }
{{ finish }}
}
