#include "workloads/paper_trace.h"

#include <math.h>

typedef struct PaperConfig {
    int trace;
    gint64 requests, max_active, seed;
} PaperConfig;

typedef struct PaperSource {
    RequestSource base;
    PaperTrace trace;
    gint64 requests, max_active;
} PaperSource;

static gint32 randint(Mt19937 *mt, guint32 lo, guint32 hi)
{
    return (gint32)(mt19937_next(mt) % (hi - lo) + lo);
}

void paper_trace_init(PaperTrace *self, PaperFamily family, guint32 seed)
{
    self->family = family;
    self->index = 0;
    mt19937_seed(&self->mt, seed);
}

static gint32 zipf_prompt(Mt19937 *mt)
{
    gint32 rank = randint(mt, 1, 33);
    gint32 prompt = (gint32)(2048.0 + 65536.0 / sqrt((double)rank));
    gint32 jitter = (gint32)(mt19937_next(mt) % 1025) - 512;
    return MAX(prompt + jitter, 1024);
}

void paper_trace_next(PaperTrace *self, gint32 *ret_prompt, gint32 *ret_decode)
{
    Mt19937 *mt = &self->mt;
    guint32 i = self->index++;
    gint32 prompt = 0, lo = 0, hi = 0;
    switch (self->family) {
    case PAPER_BUCKETED:
        prompt = 8192 << (i % 4);
        lo = 32, hi = 97;
        break;
    case PAPER_HOMOGENEOUS:
        prompt = 32768;
        lo = 32, hi = 97;
        break;
    case PAPER_BIMODAL:
        prompt = i % 4 == 0 ? randint(mt, 24576, 65537) : randint(mt, 2048, 12289);
        lo = i % 4 == 0 ? 32 : 8, hi = i % 4 == 0 ? 129 : 65;
        break;
    case PAPER_UNIFORM:
        prompt = randint(mt, 4096, 32769);
        lo = 16, hi = 97;
        break;
    case PAPER_ZIPF:
        prompt = zipf_prompt(mt);
        lo = 8, hi = 129;
        break;
    }
    *ret_decode = randint(mt, (guint32)lo, (guint32)hi);
    *ret_prompt = MAX((prompt + 15) / 16 * 16, 16);
}

static int paper_next(RequestSource *base, Request *ret, GError **error)
{
    PaperSource *self = (PaperSource *)base;
    guint32 i = self->trace.index;
    if (i >= self->requests)
        return 0;
    *ret = (Request){.id = i,
                     .arrival = i / self->max_active,
                     .deadline = KV_NS_NONE,
                     .session = KV_NO_SESSION,
                     .wait = KV_NS_NONE};
    ret->sent = ret->arrival;
    paper_trace_next(&self->trace, &ret->prompt, &ret->output);
    return 1;
}

static void paper_free(RequestSource *base)
{
    g_free(base);
}

static const RequestSourceOps paper_ops = {"paper", paper_next, NULL, paper_free};

static RequestSource *paper_open(const GeneratorArgs *args, GError **error)
{
    const PaperConfig *config = args->config;
    PaperSource *self = g_new0(PaperSource, 1);
    self->base.ops = &paper_ops;
    self->requests = config->requests;
    self->max_active = config->max_active;
    paper_trace_init(&self->trace, (PaperFamily)config->trace, (guint32)config->seed);
    return &self->base;
}

static const SpecOption paper_options[] = {
    {"trace", SPEC_CHOICE, G_STRUCT_OFFSET(PaperConfig, trace), "bimodal", 0, 0,
     "bucketed|homogeneous|bimodal|uniform|zipf", "family"},
    {"requests", SPEC_INT, G_STRUCT_OFFSET(PaperConfig, requests), "24", 1, 1e9, NULL, "requests"},
    {"max_active", SPEC_INT, G_STRUCT_OFFSET(PaperConfig, max_active), "8", 1, 65536, NULL,
     "requests that arrive in one step"},
    {"seed", SPEC_INT, G_STRUCT_OFFSET(PaperConfig, seed), "20260622", 0, 4294967295.0, NULL,
     "of the Mersenne Twister"},
    {NULL},
};

const GeneratorOps generator_paper = {
    .info = {"paper",
             "the PersistentKV experiments' traces, seed for seed; 1 step = 1 ns of arrival",
             paper_options, sizeof(PaperConfig)},
    .open = paper_open,
};

const PluginInfo *const generators[] = {&generator_paper.info, NULL};
