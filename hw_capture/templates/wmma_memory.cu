
// wmma whose fragments are opaque: wmma.load and wmma.store move packed matrices of {{ shape }} between memory and them.
extern "C" __global__ void __launch_bounds__(128)
{{ name }}(const {{ a.word }} *a, const {{ b.word }} *b, const {{ c.word }} *c, const u32 *metadata, const u32 *scale_a,
    const u32 *scale_b, {{ d.word }} *d, u32 count)
{
    for (u32 tile = blockIdx.x * 4 + threadIdx.x / 32; tile < count; tile += gridDim.x * 4) {
        {{ a.word }} of_a[{{ a.count }}];
        {{ b.word }} of_b[{{ b.count }}];
        {{ c.word }} of_c[{{ c.count }}];
        {{ d.word }} of_d[{{ d.count }}];
{%- for load in loads %}
        {
            {{ load.type }} held[{{ load.count }}];
            asm volatile("{{ load.text }}"
                         : {{ load.outputs }}
                         : "l"({{ load.operand }} + (size_t)tile * {{ load.words }}), "r"({{ load.pitch }})
                         : "memory");
            for (int i = 0; i < {{ load.count }}; i++)
                of_{{ load.operand }}[i] = {{ load.to_word }}(held[i]);
        }
{%- endfor %}
        {{ inline }}(of_d, of_a, of_b, of_c);
        asm volatile("{{ store.text }}"
                     :
                     : "l"(d + (size_t)tile * {{ store.words }}), {{ store.inputs }}, "r"({{ store.pitch }})
                     : "memory");
    }
}
