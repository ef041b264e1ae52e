
extern "C" __global__ void __launch_bounds__(128)
{{ name }}(const {{ a.word }} *a, const {{ b.word }} *b, const {{ c.word }} *c, const u32 *metadata, const u32 *scale_a,
    const u32 *scale_b, {{ d.word }} *d, u32 count)
{
    for (u32 tile = blockIdx.x * 4 + threadIdx.x / 32; tile < count; tile += gridDim.x * 4) {
        const size_t thread = (size_t)tile * 32 + threadIdx.x % 32;
        {{ a.word }} of_a[{{ a.count }}];
        {{ b.word }} of_b[{{ b.count }}];
        {{ c.word }} of_c[{{ c.count }}];
        {{ d.word }} of_d[{{ d.count }}];
#pragma unroll
        for (int i = 0; i < {{ a.count }}; i++)
            of_a[i] = a[thread * {{ a.count }} + i];
#pragma unroll
        for (int i = 0; i < {{ b.count }}; i++)
            of_b[i] = b[thread * {{ b.count }} + i];
#pragma unroll
        for (int i = 0; i < {{ c.count }}; i++)
            of_c[i] = c[thread * {{ c.count }} + i];
        {{ inline }}(of_d, of_a, of_b, of_c{% for extra in extras %}, {{ extra }}[thread]{% endfor %});
#pragma unroll
        for (int i = 0; i < {{ d.count }}; i++)
            d[thread * {{ d.count }} + i] = of_d[i];
    }
}
