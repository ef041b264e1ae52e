/* The kinds of golden/stimuli as plans of whole tiles; their order is that of source.DRAWN. `q` is random. */

#define CAMPAIGN_LOW (CAMPAIGN_A_LOWEST + CAMPAIGN_B_LOWEST)
#define CAMPAIGN_TINIEST (CAMPAIGN_A_TINIEST + CAMPAIGN_B_TINIEST)
#define CAMPAIGN_HIGH (CAMPAIGN_A_HIGHEST + CAMPAIGN_B_HIGHEST)

/* A product exponent with room for `below` binades under it, where the formats have that many. */
MG_HD int32_t campaign_top(uint32_t word, int32_t below) {
    return campaign_pick(word, mg_least(CAMPAIGN_TINIEST + below, CAMPAIGN_HIGH), CAMPAIGN_HIGH);
}

/* Kinds that set the codes or exponents of every element on its own. */
MG_HD void campaign_set_elements(campaign_plan *p, campaign_words q) {
    const int32_t often = (q.x & 3) == 0 ? 128 : 256 >> (q.x & 3) >> 2;
    campaign_narrow(p);
    switch (p->kind) {
    case KIND_random_bits: p->raw = 1, p->c = C_RAW; break;
    case KIND_wide:
        campaign_elements(p, CAMPAIGN_A_TINIEST, CAMPAIGN_A_HIGHEST, CAMPAIGN_B_TINIEST, CAMPAIGN_B_HIGHEST);
        campaign_addend(p, C_AT, CAMPAIGN_TINIEST - 8, CAMPAIGN_HIGH + 8, FRACTION_RANDOM, 0);
        break;
    case KIND_subnormal: {
        const int32_t a_high = q.x & 1 ? CAMPAIGN_A_LOWEST : CAMPAIGN_A_HIGHEST, b_high = q.x & 1 ? CAMPAIGN_B_HIGHEST : CAMPAIGN_B_LOWEST;
        campaign_elements(p, CAMPAIGN_A_TINIEST, q.x & 2 ? CAMPAIGN_A_LOWEST : a_high, CAMPAIGN_B_TINIEST, b_high);
        campaign_addend(p, C_AT, CAMPAIGN_C_TINIEST, CAMPAIGN_C_LOWEST + 1, FRACTION_RANDOM, 80);
        break;
    }
    case KIND_special_values: p->specials = often / 2 + 4, p->c = q.y & 1 ? C_CORNER : C_AT; break;
    case KIND_special_each: p->corner_first = 256, p->c = q.y & 1 ? C_CORNER : C_AT, p->signs = q.y & 2 ? SIGNS_PLUS : SIGNS_RANDOM; break;
    case KIND_special_pairs: p->corner_first = 200, p->zeros = q.y & 1 ? 256 : 32, p->c = C_CORNER, p->c_zero = 128; break;
    case KIND_zero_partners: p->zeros = 128, p->specials = 128, p->c = q.y & 1 ? C_CORNER : C_AT, p->c_zero = 180; break;
    case KIND_corner_pairs: p->corner_first = 256; break;
    case KIND_zeros: p->zeros = 236, p->c_zero = 200, p->fraction = FRACTION_ZERO; break;
    case KIND_counts: p->zeros = q.x & 1 ? 256 : often, p->c = C_CORNER, p->c_zero = 180; break;
    default: break; /* narrow */
    }
}

/* Kinds in which large products cancel. */
MG_HD void campaign_set_cancelling(campaign_plan *p, campaign_words q) {
    const int32_t top = campaign_top(q.x, CAMPAIGN_F + 4), below = campaign_pick(q.y, 0, CAMPAIGN_F + 4);
    campaign_products(p, top, top, top - 12, top);
    campaign_addend(p, q.z & 3 ? C_AT : C_AGAINST, top - below - 2, top - below + 2, FRACTION_RANDOM, 40);
    switch (p->kind) {
    case KIND_deep_cancellation:
        p->pairs = q.z & 4 ? PAIRS_FIRST : PAIRS_NONE;
        p->c = q.z & 4 ? C_AT : C_AGAINST;
        p->c_zero = q.z & 4 ? 256 : 0;
        p->fraction = q.z & 8 ? FRACTION_ZERO : FRACTION_RANDOM;
        campaign_products(p, top, top - below, q.z & 16 ? CAMPAIGN_TINIEST : top - CAMPAIGN_F - 4, q.z & 16 ? CAMPAIGN_HIGH : top - 8);
        campaign_live(p, 256, 256, 40);
        break;
    case KIND_cancel_last_bit:
        p->pairs = PAIRS_LAST_BIT;
        p->c_zero = 128;
        campaign_products(p, top, top, top - CAMPAIGN_F - 2, top - CAMPAIGN_F + 6);
        campaign_live(p, 256, 256, q.z & 4 ? 0 : 90);
        break;
    case KIND_cancelled_groups:
        p->pairs = PAIRS_GROUPS;
        p->c = C_AT;
        campaign_products(p, top, top, top - CAMPAIGN_F - 4, top - CAMPAIGN_F / 2);
        break;
    default: /* cancelling: all products in pairs, or some of them together with small ones */
        p->pairs = q.z & 4 ? PAIRS_ALL : PAIRS_GROUPS;
        if (q.z & 8) campaign_products(p, top, top, top - CAMPAIGN_F - 4, top - CAMPAIGN_F + 8);
    }
}

/* Kinds about alignment: one term on top, others around the last bit that is kept. */
MG_HD void campaign_set_alignment(campaign_plan *p, campaign_words q) {
    const int32_t top = campaign_top(q.x, CAMPAIGN_F + 3), c_is_top = q.z & 1;
    p->fraction = q.z & 2 ? FRACTION_RANDOM : q.z & 4 ? FRACTION_ZERO : FRACTION_ONES;
    switch (p->kind) {
    case KIND_alignment_one_term:
        campaign_products(p, c_is_top ? top - CAMPAIGN_F + campaign_pick(q.y, -2, 1) : top, top - CAMPAIGN_F + campaign_pick(q.y, -2, 1), 0, 0);
        campaign_live(p, 256, c_is_top ? 0 : 256, 0);
        campaign_addend(p, C_AT, top, top, p->fraction, c_is_top ? 0 : 256);
        break;
    case KIND_c_dominant: {
        const int32_t above = campaign_pick(q.y, 0, CAMPAIGN_F + 6);
        campaign_products(p, top, top, top - 6, top);
        campaign_addend(p, C_AT, top + above, top + above + 1, FRACTION_RANDOM, 0);
        break;
    }
    case KIND_equal_exponents:
        campaign_products(p, top, top, top, top);
        p->signs = q.z & 8 ? SIGNS_PLUS : SIGNS_RANDOM;
        campaign_addend(p, C_AT, top - 1, top + 1, p->fraction, 80);
        break;
    case KIND_widest_sum:
        p->fraction = FRACTION_ONES;
        p->signs = SIGNS_PLUS;
        campaign_products(p, q.z & 8 ? CAMPAIGN_HIGH : top, q.z & 8 ? CAMPAIGN_HIGH : top, q.z & 8 ? CAMPAIGN_HIGH : top, q.z & 8 ? CAMPAIGN_HIGH : top);
        campaign_addend(p, C_AT, p->first, p->first + 2, FRACTION_ONES, 50);
        break;
    default: /* alignment_edge */
        campaign_products(p, c_is_top ? top - CAMPAIGN_F : top, top - CAMPAIGN_F, top - CAMPAIGN_F - 3, top - CAMPAIGN_F + 6);
        campaign_live(p, 256, 256, campaign_pick(q.y, 20, 256));
        campaign_addend(p, C_AT, c_is_top ? top : top - CAMPAIGN_F - 3, c_is_top ? top : top - CAMPAIGN_F + 6, FRACTION_RANDOM, c_is_top ? 0 : 128);
    }
}

/* Kinds about the last rounding: c at `x`, products around half its last place. */
MG_HD void campaign_set_rounding(campaign_plan *p, campaign_words q) {
    const int32_t half = CAMPAIGN_KEPT + 1;
    const int32_t low = mg_most(CAMPAIGN_C_LOWEST, CAMPAIGN_TINIEST + half), high = mg_least(CAMPAIGN_C_HIGHEST, CAMPAIGN_HIGH + half);
    const int32_t x = campaign_pick(q.x, mg_least(low, high), high), far = x - half - campaign_pick(q.y, 1, CAMPAIGN_F + 2 - half > 1 ? CAMPAIGN_F + 2 - half : 1);
    p->fraction = FRACTION_ZERO;
    campaign_products(p, x - half, far, CAMPAIGN_TINIEST, CAMPAIGN_TINIEST + 2);
    campaign_live(p, 256, 100, q.z & 1 ? 0 : 20);
    campaign_addend(p, C_AT, x, x, FRACTION_KEPT, 0);
    switch (p->kind) {
    case KIND_half_ulp: campaign_products(p, x - half, x - half - 1, far, far); campaign_live(p, 256, 128, q.z & 2 ? 0 : 60); break;
    case KIND_round_up: p->signs = q.z & 2 ? SIGNS_PLUS : SIGNS_RANDOM; p->c_fraction = q.z & 4 ? FRACTION_ONES : FRACTION_ZERO; break;
    case KIND_below_power:
        p->signs = q.z & 2 ? SIGNS_RANDOM : SIGNS_MINUS_REST;
        p->c_fraction = FRACTION_ZERO;
        campaign_products(p, x - half - 1, x - half - 1 + campaign_pick(q.y, 1, 2), far, far);
        campaign_live(p, 256, 150, 60);
        break;
    case KIND_product_tie:
        p->fraction = q.z & 2 ? FRACTION_ODD : FRACTION_RANDOM;
        campaign_products(p, campaign_top(q.x, 0), 0, 0, 0);
        campaign_live(p, 256, 0, 0);
        p->c_zero = 256;
        break;
    default: break; /* tie */
    }
}

/* Kinds at the ends of D's range: tiny products, the exponent floor, overflow. */
MG_HD void campaign_set_range(campaign_plan *p, campaign_words q) {
    const int32_t edge = CAMPAIGN_FLOOR - CAMPAIGN_F, last = CAMPAIGN_D_LOWEST - CAMPAIGN_KEPT;
    p->fraction = q.z & 1 ? FRACTION_RANDOM : FRACTION_ZERO;
    switch (p->kind) {
    case KIND_tiny_zero_c: {
        const int32_t tiny = q.z & 2 ? CAMPAIGN_D_LOWEST + campaign_pick(q.x, -18, 2) : CAMPAIGN_TINIEST + campaign_pick(q.x, 0, 14);
        campaign_products(p, tiny, tiny, tiny - 4, tiny);
        p->zeros = 60;
        campaign_addend(p, C_LEAST, 0, 0, FRACTION_ZERO, 180);
        break;
    }
    case KIND_subnormal_product: {
        const int32_t tiny = CAMPAIGN_TINIEST + campaign_pick(q.x, 0, CAMPAIGN_LOW - CAMPAIGN_TINIEST + 2);
        campaign_products(p, tiny, tiny, CAMPAIGN_TINIEST, tiny);
        campaign_live(p, 256, 128, 60);
        campaign_addend(p, C_AT, tiny - 3, tiny + CAMPAIGN_F + 2, FRACTION_RANDOM, 128);
        break;
    }
    case KIND_subnormal_result: {
        const int32_t at = CAMPAIGN_D_LOWEST - campaign_pick(q.x, 0, CAMPAIGN_KEPT + 2);
        campaign_products(p, at, at - 1, last - 4, at);
        campaign_live(p, 256, 128, 90);
        campaign_addend(p, C_AT, last - 2, CAMPAIGN_D_LOWEST + 1, FRACTION_RANDOM, 90);
        break;
    }
    case KIND_floor_edge:
        campaign_products(p, last + campaign_pick(q.x, -3, 3), edge + campaign_pick(q.y, -2, 2), edge - 2, edge + 3);
        campaign_live(p, q.z & 2 ? 256 : 0, 256, q.z & 4 ? 0 : 80);
        p->c_zero = 256;
        break;
    default: { /* near_overflow */
        const int32_t below = q.z & 2 ? CAMPAIGN_KEPT + campaign_pick(q.x, -1, 3) : campaign_pick(q.x, 0, 6);
        const int32_t at = CAMPAIGN_D_HIGHEST - below;
        campaign_products(p, at, at, at - 2, at);
        p->signs = q.z & 4 ? SIGNS_PLUS : SIGNS_RANDOM;
        campaign_addend(p, C_AT, CAMPAIGN_D_HIGHEST - 1, CAMPAIGN_D_HIGHEST, q.z & 8 ? FRACTION_ONES : FRACTION_KEPT, 20);
    }
    }
}

MG_HD void campaign_set_one_hot(campaign_plan *p, campaign_words q) {
    campaign_products(p, campaign_top(q.x, 0), 0, 0, 0);
    campaign_live(p, 256, 0, 0);
    campaign_addend(p, C_AT, CAMPAIGN_LOW, CAMPAIGN_HIGH, FRACTION_RANDOM, 150);
}

MG_HD void campaign_set_kind(campaign_plan *p, campaign_words q) {
    switch (p->kind) {
    case CAMPAIGN_EXHAUSTIVE: campaign_exhaustive(p); break;
    case KIND_one_hot: campaign_set_one_hot(p, q); break;
    case KIND_cancelling:
    case KIND_cancel_last_bit:
    case KIND_cancelled_groups:
    case KIND_deep_cancellation: campaign_set_cancelling(p, q); break;
    case KIND_alignment_edge:
    case KIND_alignment_one_term:
    case KIND_c_dominant:
    case KIND_equal_exponents:
    case KIND_widest_sum: campaign_set_alignment(p, q); break;
    case KIND_tie:
    case KIND_half_ulp:
    case KIND_round_up:
    case KIND_below_power:
    case KIND_product_tie: campaign_set_rounding(p, q); break;
    case KIND_tiny_zero_c:
    case KIND_near_overflow:
    case KIND_subnormal_product:
    case KIND_subnormal_result:
    case KIND_floor_edge: campaign_set_range(p, q); break;
    default: campaign_set_elements(p, q); break;
    }
}
