
// {{ instruction }}
static __device__ __forceinline__ void {{ name }}({{ signature }})
{
{%- if held %}
    {{ held.type }} held[{{ held.count }}];
{%- if accumulates %}
#pragma unroll
    for (int i = 0; i < {{ held.count }}; i++)
        held[i] = {{ held.from_word }}(d[i]);
{%- endif %}
{%- endif %}
    asm volatile("{{ text }}"
                 : {{ outputs }}
                 : {{ inputs }});
{%- if held %}
#pragma unroll
    for (int i = 0; i < {{ held.count }}; i++)
        d[i] = {{ held.to_word }}(held[i]);
{%- endif %}
}
