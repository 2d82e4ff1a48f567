/* The PersistentKV families' lengths, seed for seed, with any arrivals (paper_trace.h). */
#include "workloads/lengths/lengths.h"
#include "workloads/paper_trace.h"

typedef struct PaperLengthsConfig {
    int trace;
    gint64 seed;
} PaperLengthsConfig;

typedef struct PaperLengths {
    LengthModel base;
    PaperTrace trace;
} PaperLengths;

static LengthModel *paper_open(gconstpointer config, guint64 seed, guint32 replication,
                               GError **error)
{
    const PaperLengthsConfig *c = config;
    PaperLengths *self = g_new0(PaperLengths, 1);
    length_model_init(&self->base, &lengths_paper, seed, replication);
    paper_trace_init(&self->trace, (PaperFamily)c->trace, (guint32)c->seed);
    return &self->base;
}

static void paper_next(LengthModel *base, gint32 *ret_prompt, gint32 *ret_output)
{
    paper_trace_next(&((PaperLengths *)base)->trace, ret_prompt, ret_output);
}

static const SpecOption paper_options[] = {
    {"trace", SPEC_CHOICE, G_STRUCT_OFFSET(PaperLengthsConfig, trace), "bimodal", 0, 0,
     "bucketed|homogeneous|bimodal|uniform|zipf", "family"},
    {"seed", SPEC_INT, G_STRUCT_OFFSET(PaperLengthsConfig, seed), "20260622", 0, 4294967295.0, NULL,
     "of the Mersenne Twister"},
    {NULL},
};

const LengthOps lengths_paper = {
    .info = {"paper", "the PersistentKV families' lengths, seed for seed", paper_options,
             sizeof(PaperLengthsConfig)},
    .open = paper_open,
    .next = paper_next,
};
