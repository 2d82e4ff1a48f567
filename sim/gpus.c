#include "sim/gpus.h"
#include "base/error.h"

#define ASSUMED "assumed: 60 % of the peak rate, 85 % of the memory rate"

/* The published 16-bit rate of GeForce cards is twice this: with 16-bit accumulation. */
const GpuInfo gpu_infos[] = {
    {"rtx3060", 25.5, 360, 12, 28, 16, 0.6, 0.84,
     "28 SMs x 1.777 GHz x 512 (NVIDIA GA102 whitepaper, rates per SM)",
     "memory measured: 302 to 306.6 GB/s (arXiv 2606.26666); rate assumed, 60 %"},
    {"rtx3090", 71, 936, 24, 82, 16, 0.6, 0.85, "NVIDIA GA102 whitepaper, table 2", ASSUMED},
    {"rtx4090", 165.2, 1008, 24, 128, 16, 0.6, 0.85, "NVIDIA Ada whitepaper, appendix A", ASSUMED},
    {"a10", 125, 600, 24, 72, 32, 0.6, 0.85, "NVIDIA A10 data sheet", ASSUMED},
    {"a100", 312, 2039, 80, 108, 300, 0.6, 0.85, "NVIDIA A100 80GB SXM data sheet", ASSUMED},
    {"h100", 989.4, 3350, 80, 132, 450, 0.6, 0.85,
     "NVIDIA H100 SXM data sheet (half of its figure with sparsity)", ASSUMED},
    {"h200", 989.4, 4800, 141, 132, 450, 0.6, 0.85,
     "NVIDIA H200 SXM data sheet (half of its figure with sparsity)", ASSUMED},
    {NULL, 0, 0, 0, 0, 0, 0, 0, NULL, NULL},
};

const GpuInfo *gpu_info_find(const char *name, GError **error)
{
    g_autoptr(GString) known = g_string_new(NULL);
    for (const GpuInfo *g = gpu_infos; g->name; g++) {
        if (g_ascii_strcasecmp(g->name, name) == 0)
            return g;
        g_string_append_printf(known, " %s", g->name);
    }
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "unknown GPU '%s', expected one of%s", name,
                known->str);
    return NULL;
}
