/* The special-function unit of @ARCHITECTURE@ in C and CUDA, made of spec/functions/@ARCHITECTURE@.yaml. Integers
 * only; golden/functions/operations.py says in words what each operation does. A sum is an int64_t in units of
 * 2^-40. Define MG_FUNCTION before to give every function other qualifiers, such as __device__. */
#include <stdint.h>
#ifndef MG_FUNCTION
#define MG_FUNCTION static
#endif
#ifdef __CUDACC__
#define MG_TABLE static __device__ const
#else
#include <math.h>
#include <string.h>
#define MG_TABLE static const
#endif

#define MG_SIGN 0x80000000u
#define MG_INFINITY 0x7f800000u
#define MG_ONE 0x3f800000u
#define MG_NAN 0x7fffffffu
#define MG_PART 0x7fffff

@TABLES@

/* The square of an x of 16 or 17 bits, x in [0, 1), in units of 2^-15. Bit i, counted from 1 at the top, has a partial
 * product of weight 2^-2i with itself and of 2^(1-i-j) with each bit j below it; those below 2^-15 are not formed, so
 * that bit i meets the bits i+1 to 16-i. */
MG_FUNCTION int64_t mg_square(uint32_t x, int bits)
{
    uint32_t total = 0;
    for (int i = 1; i <= 7; i++)
        if (x >> (bits - i) & 1)
            total += (1u << (15 - 2 * i)) + (x >> (bits - 16 + i) & ((1u << (16 - 2 * i)) - 1));
    return total;
}

/* The sum of a segment: coefficients in units of 2^-40, the fraction's upper bits choosing the segment. */
MG_FUNCTION int64_t mg_sum(const int64_t (*segments)[3], int index_bits, int low, uint32_t fraction)
{
    const int64_t *c = segments[fraction >> (23 - index_bits)];
    uint32_t x = fraction >> (23 - index_bits - low) & ((1u << low) - 1);
    return c[0] + c[1] * (int64_t)x + c[2] * mg_square(x, low);
}

/* The f32 code of sum 2^-40 2^exponent, cut towards zero; 0 below 2^-126. */
MG_FUNCTION uint32_t mg_cut(int64_t sum, int exponent)
{
    if (sum <= 0)
        return 0;
    int top = 47; /* a logarithm is below 2^8 */
    while (!(sum >> top & 1))
        top--;
    int64_t significand = top >= 23 ? sum >> (top - 23) : sum << (23 - top);
    int biased = top - 40 + exponent + 127;
    return biased <= 0 ? 0 : ((uint32_t)biased << 23) + ((uint32_t)significand & MG_PART);
}

MG_FUNCTION int mg_exponent(uint32_t x) { return (int)(x >> 23 & 255) - 127; }
MG_FUNCTION int mg_is_nan(uint32_t x) { return (x & ~MG_SIGN) > MG_INFINITY; }

/* |x| with `bits` bits after the point, cut; |x| < 2^30. */
MG_FUNCTION int64_t mg_fixed(uint32_t x, int bits)
{
    int shift = mg_exponent(x) - 23 + bits;
    int64_t significand = (x & MG_PART) | 0x800000;
    if (mg_exponent(x) == -127 || shift < -24)
        return 0;
    return shift >= 0 ? significand << shift : significand >> -shift;
}

MG_FUNCTION uint32_t mg_MUFU_RCP(uint32_t x)
{
    if (mg_is_nan(x))
        return MG_NAN;
    if (mg_exponent(x) == -127)
        return (x & MG_SIGN) | MG_INFINITY;
    if (mg_exponent(x) == 128)
        return x & MG_SIGN;
    return (x & MG_SIGN) | mg_cut(mg_sum(mg_rcp_0, MG_RCP_BITS, MG_RCP_LOW, x & MG_PART), -mg_exponent(x));
}

/* A root of x from its tables of even and odd exponents; up: the sign of the result's exponent. */
MG_FUNCTION uint32_t mg_root(uint32_t x, const int64_t (*even)[3], const int64_t (*odd)[3], int bits, int low, int up)
{
    int exponent = mg_exponent(x), half = (exponent - (exponent & 1)) / 2;
    return mg_cut(mg_sum(exponent & 1 ? odd : even, bits, low, x & MG_PART), up * half);
}

MG_FUNCTION uint32_t mg_MUFU_RSQ(uint32_t x)
{
    int exponent = mg_exponent(x);
    if (exponent == -127)
        return (x & MG_SIGN) | MG_INFINITY;
    if (x > MG_INFINITY)
        return MG_NAN;
    if (exponent == 128)
        return 0;
    if (!(exponent & 1) && !(x & MG_PART))
        return (uint32_t)(127 - exponent / 2) << 23;
    return mg_root(x, mg_rsqrt_0, mg_rsqrt_1, MG_RSQRT_BITS, MG_RSQRT_LOW, -1);
}

MG_FUNCTION uint32_t mg_MUFU_SQRT(uint32_t x)
{
    if (mg_exponent(x) == -127)
        return x & MG_SIGN;
    if (x > MG_INFINITY)
        return MG_NAN;
    return x == MG_INFINITY ? x : mg_root(x, mg_sqrt_0, mg_sqrt_1, MG_SQRT_BITS, MG_SQRT_LOW, 1);
}

MG_FUNCTION uint32_t mg_MUFU_EX2(uint32_t x)
{
    int negative = x >> 31;
    if (mg_is_nan(x))
        return MG_NAN;
    if (mg_exponent(x) >= 8)
        return negative ? 0 : MG_INFINITY;
    int64_t whole = mg_fixed(x, 23);
    if (negative)
        whole = whole & MG_PART ? ~whole : -whole;
    int power = (int)(whole >> 23);
    if (power > 127)
        return MG_INFINITY;
    return mg_cut(mg_sum(mg_ex2_0, MG_EX2_BITS, MG_EX2_LOW, (uint32_t)(whole & MG_PART)), power);
}

MG_FUNCTION uint32_t mg_MUFU_LG2(uint32_t x)
{
    if (mg_exponent(x) == -127)
        return MG_SIGN | MG_INFINITY;
    if (x > MG_INFINITY)
        return MG_NAN;
    if (x == MG_INFINITY || x == MG_ONE)
        return x == MG_ONE ? 0 : x;
    int64_t part = mg_sum(mg_lg2_0, MG_LG2_BITS, MG_LG2_LOW, x & MG_PART);
    int64_t total = mg_exponent(x) * ((int64_t)1 << 40) + part;
    /* a negative sum is inverted down to 2^-38; bits below 2^-36 are dropped */
    return total < 0 ? MG_SIGN | mg_cut((-total - 4) & ~(int64_t)15, 0) : mg_cut(total & ~(int64_t)15, 0);
}

/* The sine of a quadrant plus a place in it. */
MG_FUNCTION uint32_t mg_quadrant(uint32_t quadrant, uint32_t place, uint32_t sign)
{
    uint32_t mirrored = quadrant & 1 ? ~place & MG_PART : place;
    return ((quadrant & 2) << 30 ^ sign) | mg_cut(mg_sum(mg_sin_0, MG_SIN_BITS, MG_SIN_LOW, mirrored), 0);
}

MG_FUNCTION uint32_t mg_turn(uint32_t x)
{
    return mg_exponent(x) >= 25 ? 0 : (uint32_t)(mg_fixed(x, 25) & 0x1ffffff);
}

MG_FUNCTION uint32_t mg_MUFU_SIN(uint32_t x)
{
    uint32_t turn = mg_turn(x);
    return mg_exponent(x) == 128 ? MG_NAN : mg_quadrant(turn >> 23, turn & MG_PART, x & MG_SIGN);
}

MG_FUNCTION uint32_t mg_MUFU_COS(uint32_t x)
{
    uint32_t turn = mg_turn(x);
    return mg_exponent(x) == 128 ? MG_NAN : mg_quadrant((turn >> 23) + 1, turn & MG_PART, 0);
}

MG_FUNCTION uint32_t mg_MUFU_TANH(uint32_t x)
{
    int exponent = mg_exponent(x);
    if (mg_is_nan(x))
        return MG_NAN;
    if (exponent < MG_TANH_FIRST)
        return x;
    if (exponent >= MG_TANH_FIRST + (int)(sizeof mg_tanh_bits / sizeof *mg_tanh_bits))
        return (x & MG_SIGN) | MG_ONE;
    int block = exponent - MG_TANH_FIRST;
    int64_t sum = mg_sum(mg_tanh_all + mg_tanh_starts[block], mg_tanh_bits[block], MG_TANH_LOW, x & MG_PART);
    return (x & MG_SIGN) | mg_cut(sum, 0);
}

/* 16-bit forms: the operand widened, the result cut. */
MG_FUNCTION uint32_t mg_from_f16(uint32_t h)
{
    uint32_t sign = (h & 0x8000) << 16, exponent = h >> 10 & 31, part = h & 1023;
    if (exponent == 31)
        return sign | MG_INFINITY | part << 13;
    if (exponent == 0 && part == 0)
        return sign;
    if (exponent == 0) {
        for (exponent = 1; !(part & 1024); exponent--)
            part <<= 1;
        part &= 1023;
    }
    return sign | ((exponent + 112) << 23) | part << 13;
}

MG_FUNCTION uint32_t mg_to_f16(uint32_t x)
{
    uint32_t sign = x >> 16 & 0x8000;
    int exponent = mg_exponent(x);
    if (mg_is_nan(x))
        return 0x7fff;
    if (exponent >= 16)
        return sign | 0x7c00;
    if (exponent >= -14)
        return sign | (uint32_t)(exponent + 15) << 10 | (x >> 13 & 1023);
    return exponent < -24 ? sign : sign | ((x & MG_PART) | 0x800000) >> (-1 - exponent);
}

MG_FUNCTION uint32_t mg_MUFU_EX2_F16(uint32_t x) { return mg_to_f16(mg_MUFU_EX2(mg_from_f16(x))); }
MG_FUNCTION uint32_t mg_MUFU_TANH_F16(uint32_t x) { return mg_to_f16(mg_MUFU_TANH(mg_from_f16(x))); }
MG_FUNCTION uint32_t mg_MUFU_EX2_BF16(uint32_t x) { return mg_MUFU_EX2(x << 16) >> 16; }
MG_FUNCTION uint32_t mg_MUFU_TANH_BF16(uint32_t x) { return mg_MUFU_TANH(x << 16) >> 16; }

/* What ptxas sets around an operation. */
#ifdef __CUDACC__
#define mg_float(x) __uint_as_float(x)
#define mg_bits(x) __float_as_uint(x)
MG_FUNCTION uint32_t mg_code(float x) { return x != x ? MG_NAN : mg_bits(x); }
MG_FUNCTION uint32_t mg_FMUL(uint32_t a, uint32_t b) { return mg_code(__fmul_rn(mg_float(a), mg_float(b))); }
MG_FUNCTION uint32_t mg_FADD(uint32_t a, uint32_t b) { return mg_code(__fadd_rn(mg_float(a), mg_float(b))); }
MG_FUNCTION uint32_t mg_FMUL_RZ(uint32_t a, uint32_t b) { return mg_code(__fmul_rz(mg_float(a), mg_float(b))); }
#else
MG_FUNCTION float mg_float(uint32_t x)
{
    float f;
    memcpy(&f, &x, 4);
    return f;
}
MG_FUNCTION uint32_t mg_code(float f)
{
    uint32_t x;
    memcpy(&x, &f, 4);
    return f != f ? MG_NAN : x;
}
MG_FUNCTION uint32_t mg_FMUL(uint32_t a, uint32_t b) { return mg_code(mg_float(a) * mg_float(b)); }
MG_FUNCTION uint32_t mg_FADD(uint32_t a, uint32_t b) { return mg_code(mg_float(a) + mg_float(b)); }
MG_FUNCTION uint32_t mg_FMUL_RZ(uint32_t a, uint32_t b)
{
    double exact = (double)mg_float(a) * (double)mg_float(b);
    float nearest = (float)exact;
    return mg_code(nearest) - (fabs((double)nearest) > fabs(exact)); /* one code too far from zero */
}
#endif
MG_FUNCTION int mg_FSETP_GEU_AND(uint32_t a, uint32_t b) { return !(mg_float(a) < mg_float(b)); }
MG_FUNCTION int mg_FSETP_GT_AND(uint32_t a, uint32_t b) { return mg_float(a) > mg_float(b); }

@FUNCTIONS@

/* The word of an operand and its result in a digest: golden/functions/recorded.py. */
MG_FUNCTION uint64_t mg_digest(uint32_t code, uint32_t result)
{
    uint64_t word = ((uint64_t)code << 32 | result) * 0x9E3779B97F4A7C15u;
    word = (word ^ word >> 32) * 0xD6E8FEB86659FD93u;
    return word ^ word >> 32;
}
