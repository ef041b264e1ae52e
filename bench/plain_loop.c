/* Hopper's sum of a m16n8k16 f32.f16 matrix product as one would write it down, for a compiler to vectorise: the yardstick of
 * bench/run.py. It decodes to integers, aligns by shifts and rounds toward zero; special values have a float sum. */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { M = 16, N = 8, K = 16, KEPT = 25, FLOOR = -133, ZERO = -1000, NAN_CODE = 0x7fffffff };

static void decode(uint32_t magnitude, int fraction_bits, int bias, int negative, int32_t *significand, int32_t *exponent) {
    const int32_t e = (int32_t)(magnitude >> fraction_bits), fraction = (int32_t)(magnitude & ((1u << fraction_bits) - 1));
    const int32_t value = e ? fraction | 1 << fraction_bits : fraction;
    *significand = negative ? -value : value;
    *exponent = value ? (e ? e : 1) - bias : ZERO;
}

static float value_of(uint32_t code, int fraction_bits, int exponent_bits, int bias) {
    const uint32_t width = (uint32_t)(fraction_bits + exponent_bits), magnitude = code & ((1u << width) - 1), all = (1u << exponent_bits) - 1;
    const float sign = code >> width & 1 ? -1.0f : 1.0f;
    int32_t s, e;
    if (magnitude >> fraction_bits == all) return magnitude & ((1u << fraction_bits) - 1) ? NAN : sign * INFINITY;
    decode(magnitude, fraction_bits, bias, 0, &s, &e);
    return sign * (s ? ldexpf((float)s, e - fraction_bits) : 0.0f);
}

static uint32_t special_sum(const uint16_t *a, const uint16_t *b, uint32_t c, uint32_t code) {
    int special = (c >> 23 & 255) == 255;
    for (int k = 0; k < K; k++) special |= (a[k] >> 10 & 31) == 31 || (b[k * N] >> 10 & 31) == 31;
    if (!special) return code;
    float sum = (c >> 23 & 255) == 255 ? value_of(c, 23, 8, 127) : 0.0f;
    for (int k = 0; k < K; k++) sum += value_of(a[k], 10, 5, 15) * value_of(b[k * N], 10, 5, 15);
    return sum != sum ? NAN_CODE : sum > 0 ? 0x7f800000u : 0xff800000u;
}

static uint32_t rounded(int64_t total, int32_t lsb) {
    if (total == 0) return 0;
    const uint64_t magnitude = (uint64_t)(total < 0 ? -total : total);
    const int32_t leading = 63 - __builtin_clzll(magnitude) + lsb, exponent = leading > -126 ? leading : -126, shift = exponent - 23 - lsb;
    const uint32_t sign = total < 0 ? 1u << 31 : 0;
    const uint64_t significand = shift > 63 ? 0 : shift > 0 ? magnitude >> shift : magnitude << -shift;
    const uint32_t fields = ((uint32_t)(exponent + 126) << 23) + (uint32_t)significand;
    return significand == 0 ? 0 : sign | (exponent > 127 ? 0x7f800000u : fields);
}

void plain_loop(int64_t batch, const uint16_t *a, const uint16_t *b, const uint32_t *c, uint32_t *d) {
    for (; batch > 0; batch--, a += M * K, b += K * N, c += M * N, d += M * N) {
        int32_t as[M * K], ae[M * K], bs[K * N], be[K * N];
        int special = 0;
        for (int i = 0; i < M * K; i++) special |= (a[i] >> 10 & 31) == 31;
        for (int i = 0; i < K * N; i++) special |= (b[i] >> 10 & 31) == 31;
        for (int i = 0; i < M * N; i++) special |= (c[i] >> 23 & 255) == 255;
        for (int i = 0; i < M * K; i++) decode(a[i] & 0x7fff, 10, 15, a[i] >> 15, &as[i], &ae[i]);
        for (int i = 0; i < K * N; i++) decode(b[i] & 0x7fff, 10, 15, b[i] >> 15, &bs[i], &be[i]);
        for (int i = 0; i < M; i++) {
            int32_t cs[N], ce[N], top[N];
            int64_t total[N];
            for (int j = 0; j < N; j++) {
                const uint32_t code = c[i * N + j];
                decode(code & INT32_MAX, 23, 127, (int)(code >> 31), &cs[j], &ce[j]);
                top[j] = ce[j] > FLOOR ? ce[j] : FLOOR;
            }
            for (int k = 0; k < K; k++)
                for (int j = 0; j < N; j++) {
                    const int32_t e = ae[i * K + k] + be[k * N + j];
                    top[j] = e > top[j] ? e : top[j];
                }
            for (int j = 0; j < N; j++) {
                const int32_t distance = top[j] - ce[j] < 31 ? top[j] - ce[j] : 31, magnitude = (cs[j] < 0 ? -cs[j] : cs[j]) << (KEPT - 23);
                total[j] = cs[j] < 0 ? -(magnitude >> distance) : magnitude >> distance;
            }
            for (int k = 0; k < K; k++)
                for (int j = 0; j < N; j++) {
                    const int32_t p = as[i * K + k] * bs[k * N + j], away = top[j] - ae[i * K + k] - be[k * N + j];
                    const int32_t magnitude = (p < 0 ? -p : p) << (KEPT - 20), kept = magnitude >> (away < 31 ? away : 31);
                    total[j] += p < 0 ? -kept : kept;
                }
            for (int j = 0; j < N; j++) {
                const uint32_t code = rounded(total[j], top[j] - KEPT);
                d[i * N + j] = special ? special_sum(a + i * K, b + j, c[i * N + j], code) : code;
            }
        }
    }
}

/* `count` multiplications that wait for each other, of three cycles each: what the processor's clock is. */
uint64_t chain(int64_t count) {
    uint64_t x = (uint64_t)count | 1;
    for (int64_t i = 0; i < count; i++) x *= x;
    return x;
}
