/* Executes one x86 dot-product instruction on many operands. Compiled on the spot by hw_capture/cpu/machine.py.
 *
 * An execution of AMX takes tiles of 16 rows of 16 32-bit words, one of AVX-512 registers of 16 words, as the CPU holds
 * them; `state` is c and becomes d.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_TILEDATA = 18 };

/* The bits of CPUID leaf 7: subleaf 0 ebx, ecx, edx, subleaf 1 eax; then leaf 1 eax (the signature), XCR0. */
void mg_cpuid(uint32_t *words) {
    unsigned a, b, c, d;
    memset(words, 0, 6 * sizeof *words);
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) words[0] = b, words[1] = c, words[2] = d;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) words[3] = a;
    if (__get_cpuid(1, &a, &b, &c, &d)) {
        words[4] = a;
        if (c & bit_OSXSAVE) __asm__ volatile("xgetbv" : "=a"(words[5]), "=d"(d) : "c"(0));
    }
}

/* Asks the kernel for the tile registers; 0 where it grants them. */
long mg_permit_tiles(void) { return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_TILEDATA); }

struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} __attribute__((packed));

#define TILE_UNIT(name, operation)                                                                       \
    void mg_##name(const uint32_t *a, const uint32_t *b, uint32_t *state, uint64_t count) {             \
        struct tile_config config;                                                                      \
        memset(&config, 0, sizeof config);                                                              \
        config.palette = 1;                                                                             \
        for (int i = 0; i < 3; i++) config.row_bytes[i] = 64, config.rows[i] = 16;                      \
        __asm__ volatile("ldtilecfg %0" ::"m"(config));                                                 \
        for (uint64_t i = 0; i < count; i++, a += 256, b += 256, state += 256)                          \
            __asm__ volatile("tileloadd (%0,%3,1), %%tmm0\n\ttileloadd (%1,%3,1), %%tmm1\n\t"           \
                             "tileloadd (%2,%3,1), %%tmm2\n\t" operation "\n\t"                         \
                             "tilestored %%tmm0, (%0,%3,1)"                                             \
                             ::"r"(state), "r"(a), "r"(b), "r"(64L) : "memory");                        \
        __asm__ volatile("tilerelease");                                                                \
    }

TILE_UNIT(tdpbf16ps, "tdpbf16ps %%tmm2, %%tmm1, %%tmm0")
TILE_UNIT(tdpfp16ps, ".byte 0xc4, 0xe2, 0x6b, 0x5c, 0xc1") /* the same registers; older assemblers lack it */
TILE_UNIT(tdpbssd, "tdpbssd %%tmm2, %%tmm1, %%tmm0")
TILE_UNIT(tdpbsud, "tdpbsud %%tmm2, %%tmm1, %%tmm0")
TILE_UNIT(tdpbusd, "tdpbusd %%tmm2, %%tmm1, %%tmm0")
TILE_UNIT(tdpbuud, "tdpbuud %%tmm2, %%tmm1, %%tmm0")

/* The same crosswise, as a tile has it: 16 words of a, each against a register of b, with 16 of `state`. */
#define VECTOR_UNIT(name)                                                                               \
    void mg_##name(const uint32_t *a, const uint32_t *b, uint32_t *state, uint64_t count) {             \
        for (uint64_t i = 0; i < count; i++, a += 16, b += 16, state += 16)                             \
            __asm__ volatile("vmovdqu32 (%0), %%zmm0\n\tvmovdqu32 (%1), %%zmm1\n\t"                     \
                             "vmovdqu32 (%2), %%zmm2\n\t" #name " %%zmm2, %%zmm1, %%zmm0\n\t"           \
                             "vmovdqu32 %%zmm0, (%0)"                                                   \
                             ::"r"(state), "r"(a), "r"(b) : "memory", "xmm0", "xmm1", "xmm2");          \
    }                                                                                                   \
    void mg_##name##_crossed(const uint32_t *a, const uint32_t *b, uint32_t *state, uint64_t count) {   \
        for (uint64_t i = 0; i < 16 * count; i++, a++, b += i % 16 ? 0 : 16, state += 16)               \
            __asm__ volatile("vmovdqu32 (%0), %%zmm0\n\tvpbroadcastd (%1), %%zmm1\n\t"                  \
                             "vmovdqu32 (%2), %%zmm2\n\t" #name " %%zmm2, %%zmm1, %%zmm0\n\t"           \
                             "vmovdqu32 %%zmm0, (%0)"                                                   \
                             ::"r"(state), "r"(a), "r"(b) : "memory", "xmm0", "xmm1", "xmm2");          \
    }

VECTOR_UNIT(vdpbf16ps)
VECTOR_UNIT(vpdpbusd)
VECTOR_UNIT(vpdpbusds)
VECTOR_UNIT(vpdpwssd)
VECTOR_UNIT(vpdpwssds)
