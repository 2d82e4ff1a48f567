/* Resample: the log's own gaps with its lengths in order, or its own requests at its arrivals,
 * drawn with replacement (a bootstrap): breaks what one has to do with the other, keeps each one's
 * law.
 *
 *   gaps     the i-th request arrives at the sum of i gaps drawn from the log's gaps
 *   lengths  the i-th arrival gets the lengths, keys and class of a request drawn from the log's
 *
 * Reads the whole stream first: about 150 bytes a request, and its keys. Sessions are not kept
 * under lengths (a drawn request is nobody's next turn).
 */
#include "base/rng.h"
#include "workloads/arena.h"
#include "workloads/transforms/transforms.h"

typedef struct ResampleConfig {
    int what;
} ResampleConfig;

typedef struct Resample {
    Wrapped base;
    gboolean lengths, ready;
    GArray *requests; /* Request */
    Arena *arena;
    RngStream rng;
    guint next;
    kv_ns clock;
} Resample;

static int read_all(Resample *self, GError **error)
{
    Request r;
    int got;
    while ((got = request_source_next(self->base.inner, &r, error)) == 1) {
        arena_keep(self->arena, &r);
        g_array_append_val(self->requests, r);
    }
    self->ready = got == 0;
    return got;
}

static kv_ns arrival_of(const Resample *self, guint64 i)
{
    return g_array_index(self->requests, Request, i).arrival;
}

static int resample_next(RequestSource *base, Request *ret, GError **error)
{
    Resample *self = (Resample *)base;
    if (!self->ready && read_all(self, error) < 0)
        return -1;
    guint n = self->requests->len, i = self->next;
    if (i == n)
        return 0;
    self->next++;
    *ret = g_array_index(self->requests, Request, i);
    kv_ns client = ret->sent - ret->arrival;
    if (self->lengths) {
        kv_ns arrival = ret->arrival;
        *ret = g_array_index(self->requests, Request, rng_below(&self->rng, n));
        ret->arrival = arrival;
        ret->session = KV_NO_SESSION;
        ret->turn = 0;
    } else if (i > 0) {
        guint64 k = 1 + rng_below(&self->rng, n - 1);
        self->clock += arrival_of(self, k) - arrival_of(self, k - 1);
        ret->arrival = self->clock;
    }
    ret->sent = ret->arrival + client;
    return 1;
}

static void resample_free(RequestSource *base)
{
    Resample *self = (Resample *)base;
    g_array_unref(self->requests);
    arena_free(self->arena);
    wrapped_free(base);
}

static const RequestSourceOps resample_ops = {"resample", resample_next, wrapped_next_turn,
                                              resample_free};

static RequestSource *resample_wrap(gconstpointer config, RequestSource *inner,
                                    const TransformArgs *args, guint index, FormatNotes *notes,
                                    GError **error)
{
    Resample *self = g_new0(Resample, 1);
    self->base = (Wrapped){.base.ops = &resample_ops, .inner = inner};
    self->lengths = ((const ResampleConfig *)config)->what == 1;
    self->requests = g_array_new(FALSE, FALSE, sizeof(Request));
    self->arena = arena_new();
    rng_init(&self->rng, args->seed, RNG_SAMPLE, index, args->replication);
    return &self->base.base;
}

static const SpecOption resample_options[] = {
    {"what", SPEC_CHOICE, G_STRUCT_OFFSET(ResampleConfig, what), NULL, 0, 0, "gaps|lengths",
     "what is drawn anew; the other is kept"},
    {NULL},
};

const TransformOps transform_resample = {
    .info = {"resample", "the log's gaps with its lengths in order, or the reverse, drawn anew",
             resample_options, sizeof(ResampleConfig)},
    .wrap = resample_wrap,
};
