/* MMPP: Poisson arrivals whose rate is switched by a two-state Markov chain (Fischer and
 * Meier-Hellstern 1993): `rate_on` for an exponential time of mean `on`, then `rate_off` for one of
 * mean `off`. With rate_off 0 it is the on-off (interrupted Poisson) process of bursts.
 *
 * Mean rate = (rate_on on + rate_off off)/(on + off). The chain begins in its on state, with an
 * arrival.
 */
#include "base/error.h"
#include "workloads/arrivals/arrivals.h"

typedef struct MmppConfig {
    double rate_on, rate_off;
    kv_ns on, off;
} MmppConfig;

typedef struct Mmpp {
    ArrivalProcess base;
    double rate[2], stay[2]; /* [0] off, [1] on */
    int state;
    double left; /* s, in this state */
    double now;
} Mmpp;

static ArrivalProcess *mmpp_open(gconstpointer config, guint64 seed, guint32 replication,
                                 GError **error)
{
    const MmppConfig *c = config;
    if (c->rate_on <= 0 && c->rate_off <= 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "arrivals mmpp: expected a rate above 0");
        return NULL;
    }
    Mmpp *self = g_new0(Mmpp, 1);
    arrival_process_init(&self->base, &arrivals_mmpp, seed, replication);
    self->rate[0] = c->rate_off;
    self->rate[1] = c->rate_on;
    self->stay[0] = kv_ns_to_seconds(c->off);
    self->stay[1] = kv_ns_to_seconds(c->on);
    self->state = 1;
    self->left = self->stay[1] * rng_exponential(&self->base.rng);
    return &self->base;
}

static int mmpp_next(ArrivalProcess *base, kv_ns *ret, GError **error)
{
    Mmpp *self = (Mmpp *)base;
    while (base->begun) {
        double rate = self->rate[self->state];
        double gap = rate > 0 ? rng_exponential(&base->rng) / rate : 1e300;
        if (gap <= self->left) { /* no memory: what is left of the stay needs no new draw */
            self->left -= gap;
            self->now += gap;
            break;
        }
        self->now += self->left;
        self->state = !self->state;
        self->left = self->stay[self->state] * rng_exponential(&base->rng);
    }
    base->begun = TRUE;
    if (!(self->now < 9.2e9))
        return 0;
    *ret = kv_ns_from_seconds(self->now);
    return 1;
}

static const SpecOption mmpp_options[] = {
    {"rate_on", SPEC_REAL, G_STRUCT_OFFSET(MmppConfig, rate_on), "10", 0, 1e9, NULL,
     "requests a second in a burst"},
    {"rate_off", SPEC_REAL, G_STRUCT_OFFSET(MmppConfig, rate_off), "0", 0, 1e9, NULL,
     "... between bursts"},
    {"on", SPEC_TIME, G_STRUCT_OFFSET(MmppConfig, on), "5s", 1e-6, 1e9, NULL,
     "mean length of a burst"},
    {"off", SPEC_TIME, G_STRUCT_OFFSET(MmppConfig, off), "15s", 1e-6, 1e9, NULL,
     "mean time between bursts"},
    {NULL},
};

const ArrivalOps arrivals_mmpp = {
    .info = {"mmpp", "bursts: two rates switched by a Markov chain", mmpp_options,
             sizeof(MmppConfig)},
    .open = mmpp_open,
    .next = mmpp_next,
};
