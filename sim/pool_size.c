#include "sim/pool_size.h"

#include <math.h>

#define GIB 1073741824.0

void pool_size_config_init(PoolSizeConfig *config, double memory_gib)
{
    *config = (PoolSizeConfig){
        .memory_gib = memory_gib,
        .utilization = 0.9,
        .reserve_gib =
            1.15, /* what vLLM 0.19 kept of an RTX 4090 for an 8 B model, 2048 tokens a step */
        .weights = NUMBER_FP16,
        .kv = NUMBER_FP16,
        .tp = 1,
        .page_size = 16,
    };
}

PoolSize pool_size(const PoolSizeConfig *c, const ModelInfo *m)
{
    PoolSize s = {0};
    guint split = MIN(MAX(c->tp, 1), m->kv_heads);
    s.budget = c->memory_gib * GIB * c->utilization;
    s.weights = model_info_parameters(m) * number_bytes(c->weights) / MAX(c->tp, 1);
    s.reserve = c->reserve_gib * GIB;
    s.left = s.budget - s.weights - s.reserve;
    s.entry_bytes = model_info_entry_bytes(m, number_bytes(c->kv)) / split;
    s.page_bytes = s.entry_bytes * c->page_size;
    if (s.left > 0)
        s.pages = (guint64)floor(s.left / s.page_bytes);
    s.entries = s.pages * c->page_size;
    return s;
}

static void put_gib(GString *out, const char *what, double bytes)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(number, sizeof number, "%9.3f", bytes / GIB);
    g_string_append_printf(out, "%-28s %s GiB\n", what, number);
}

char *pool_size_text(const PoolSizeConfig *c, const ModelInfo *m)
{
    PoolSize s = pool_size(c, m);
    GString *out = g_string_new(NULL);
    put_gib(out, "memory x utilization", s.budget);
    put_gib(out, "- weights", s.weights);
    put_gib(out, "- activations, context", s.reserve);
    put_gib(out, "= left for the pool", s.left);
    g_string_append_printf(out, "%-28s %9.0f bytes (%u entries of %.0f)\n", "/ a page",
                           s.page_bytes, c->page_size, s.entry_bytes);
    g_string_append_printf(out,
                           "= pages                      %9" G_GUINT64_FORMAT " (%" G_GUINT64_FORMAT
                           " entries)\n",
                           s.pages, s.entries);
    return g_string_free(out, FALSE);
}
