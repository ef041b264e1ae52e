
// {{ instruction }}
static __attribute__((always_inline)) void {{ function }}(u32 *d, const u32 *a, const u32 *b, const u32 *c{{ ', u32 metadata' if sparse }})
{
    typedef {{ a.type }} type_a{{ a.attribute }};
    typedef {{ b.type }} type_b{{ b.attribute }};
    typedef {{ c.type }} type_c{{ c.attribute }};
    type_a of_a;
    type_b of_b;
    type_c of_c;
    __builtin_memcpy(&of_a, a, sizeof of_a);
    __builtin_memcpy(&of_b, b, sizeof of_b);
    __builtin_memcpy(&of_c, c, sizeof of_c);
    const type_c of_d = {{ call }};
    __builtin_memcpy(d, &of_d, sizeof of_d);
}

__attribute__((amdgpu_kernel)) work_group_of({{ block }}) void
{{ name }}(global const u32 *a, global const u32 *b, global const u32 *c, global const u32 *metadata, global const u32 *scale_a,
    global const u32 *scale_b, global u32 *d, u32 count)
{
    const u32 item = __builtin_amdgcn_workitem_id_x(), lane = item % {{ lanes }};
    const u32 step = __builtin_amdgcn_grid_size_x() / {{ lanes }};
    for (u32 tile = __builtin_amdgcn_workgroup_id_x() * {{ block // lanes }} + item / {{ lanes }}; tile < count; tile += step) {
        const u64 thread = (u64)tile * {{ lanes }} + lane;
        u32 of_a[{{ a.words }}], of_b[{{ b.words }}], of_c[{{ c.words }}], of_d[{{ d.words }}] = {0};
        for (int i = 0; i < {{ a.words }}; i++)
            of_a[i] = a[thread * {{ a.words }} + i];
        for (int i = 0; i < {{ b.words }}; i++)
            of_b[i] = b[thread * {{ b.words }} + i];
        for (int i = 0; i < {{ c.words }}; i++)
            of_c[i] = c[thread * {{ c.words }} + i];
        {{ function }}(of_d, of_a, of_b, of_c{{ ', metadata[thread]' if sparse }});
        for (int i = 0; i < {{ d.words }}; i++)
            d[thread * {{ d.words }} + i] = of_d[i];
    }
}
