/* linear: base + prefill_token x prompt tokens + decode_row x rows + kv_token x entries attended to
 * by the decode rows. The defaults are a guess at an 8-billion-parameter model in 4 bits on an RTX
 * 3060; `calibrate` or a fit to a recorded run gives better ones. */
#include "sim/clocks.h"

typedef struct Config {
    kv_ns base, prefill_token, decode_row, kv_token;
} Config;

#define AT(field) G_STRUCT_OFFSET(Config, field)
static const SpecOption options[] = {
    {"base", SPEC_TIME, AT(base), "16ms", 1e-9, 3600, NULL, "every step: weights, launches, host"},
    {"prefill_token", SPEC_TIME, AT(prefill_token), "640us", 0, 60, NULL,
     "each token of a prompt chunk"},
    {"decode_row", SPEC_TIME, AT(decode_row), "60us", 0, 60, NULL, "each decode row"},
    {"kv_token", SPEC_TIME, AT(kv_token), "436ns", 0, 1, NULL,
     "each entry that a decode row attends to"},
    {NULL},
};

typedef struct LinearClock {
    StepClock base;
    Config c;
} LinearClock;

static StepClock *create(gconstpointer config, GError **error)
{
    LinearClock *self = g_new0(LinearClock, 1);
    self->c = *(const Config *)config;
    return &self->base;
}

static kv_ns length(StepClock *clock, const StepLoad *load, GError **error)
{
    const Config *c = &((LinearClock *)clock)->c;
    return c->base + c->prefill_token * (kv_ns)load->prefill_tokens +
           c->decode_row * (kv_ns)load->rows + c->kv_token * (kv_ns)load->sum_length;
}

static gboolean slope(const StepClock *clock, kv_ns *ret)
{
    *ret = ((const LinearClock *)clock)->c.kv_token;
    return TRUE;
}

const StepClockOps clock_linear = {
    .info = {"linear", "a constant, and so much a prompt token, decode row and attended entry",
             options, sizeof(Config)},
    .create = create,
    .length = length,
    .slope = slope,
};
