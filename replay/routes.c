#include "base/error.h"
#include "replay/route.h"

#include <stddef.h>

#define AT(field) offsetof(RouteConfig, field)
#define TILE(def)                                                                                  \
    {                                                                                              \
        "tile", SPEC_INT, AT(tile), def, 1, 4096, NULL, "tokens a split is a multiple of"          \
    }
#define SPLITS                                                                                     \
    {                                                                                              \
        "s", SPEC_INT, AT(s), "0", 0, 1 << 20, NULL, "splits of every row; 0 = as --splits says"   \
    }

static const SpecOption tile_options[] = {TILE("32"), {0}};
static const SpecOption split_tile_options[] = {TILE("32"), SPLITS, {0}};
static const SpecOption bucket_options[] = {
    TILE("32"),
    SPLITS,
    {"width", SPEC_INT, AT(width), "0", 0, 1 << 24, NULL,
     "rows share a launch when their lengths round up to the same multiple; 0 = exact"},
    {0},
};
static const SpecOption persistent_options[] = {
    TILE("16"),
    {"c0", SPEC_INT, AT(c0), "0", 0, 4096, NULL,
     "cost of a row and KV head, in tiles, where shares are ranges, not parts of rows; 0 = 12 at "
     "256-byte entries, 18 on a GPU's wide CTAs"},
    {0},
};
static const SpecOption split_options[] = {
    {"split", SPEC_INT, AT(split), "0", 0, 1 << 24, NULL, "tokens a split; 0 = the peer's own"},
    {"graph", SPEC_BOOL, AT(graph), "no", 0, 0, NULL, "planned as for replay from a CUDA graph"},
    {0},
};
static const SpecOption factor_options[] = {
    {"factor", SPEC_INT, AT(factor), "1", 1, 64, NULL, "times the processor count it is told"},
    {0},
};

#define BUILTIN(symbol, text, id, table, count, about)                                             \
    static const RouteOps symbol = {                                                               \
        .info = {text, about, table, sizeof(RouteConfig)},                                         \
        .kind = ROUTE_BUILTIN,                                                                     \
        .builtin = id,                                                                             \
        .launches = count,                                                                         \
    }
#define PEER(symbol, text, table, about)                                                           \
    static const RouteOps symbol = {                                                               \
        .info = {text, about, table, sizeof(RouteConfig)},                                         \
        .kind = ROUTE_PEER,                                                                        \
        .launches = "its own",                                                                     \
    }

BUILTIN(route_single, "single", ATTN_SINGLE, tile_options, "1",
        "one task per row and KV head, no split: the floor");
BUILTIN(route_buckets, "buckets", ATTN_BUCKETS, bucket_options,
        "2 per distinct length (1 where nothing is split)",
        "a launch per length bucket, then its merge: the fan-out being studied");
BUILTIN(route_masked, "masked", ATTN_MASKED, split_tile_options, "2",
        "one rectangular (row, KV head, split) grid; empty splits write neutral states");
BUILTIN(route_workqueue, "workqueue", ATTN_WORKQUEUE, split_tile_options, "2",
        "a queue of non-empty tasks, then a segmented merge");
BUILTIN(route_fused, "workqueue-fused", ATTN_WORKQUEUE_FUSED, split_tile_options, "1",
        "the same queue; the last task of a row and KV head merges");
BUILTIN(route_persistent, "persistent", ATTN_PERSISTENT, persistent_options, "1",
        "as many workers as run at once, each an equal share of tiles; merge inside");
PEER(route_flashinfer, "flashinfer", NULL, "FlashInfer's decode kernel (CUDA cores)");
PEER(route_flashinfer_tc, "flashinfer-tc", split_options,
     "FlashInfer's prefill kernel with one query (tensor cores)");
PEER(route_flashinfer_batch, "flashinfer-batch", NULL, "FlashInfer's persistent BatchAttention");
PEER(route_vllm_pa1, "vllm-pa1", NULL, "vLLM's paged attention, no split");
PEER(route_vllm_pa2, "vllm-pa2", NULL, "vLLM's paged attention, split and reduced");
PEER(route_xqa, "trtllm-xqa", factor_options, "TensorRT-LLM's XQA decode kernel");
PEER(route_flashinfer_025, "flashinfer-0.2.5", NULL, "the decode kernel of an older FlashInfer");
PEER(route_flashinfer_tc_025, "flashinfer-tc-0.2.5", NULL,
     "the prefill kernel of an older FlashInfer");

const PluginInfo *const routes[] = {
    &route_single.info,
    &route_buckets.info,
    &route_masked.info,
    &route_workqueue.info,
    &route_fused.info,
    &route_persistent.info,
    &route_flashinfer.info,
    &route_flashinfer_tc.info,
    &route_flashinfer_batch.info,
    &route_vllm_pa1.info,
    &route_vllm_pa2.info,
    &route_xqa.info,
    &route_flashinfer_025.info,
    &route_flashinfer_tc_025.info,
    NULL,
};

const RouteOps *route_find(const char *name)
{
    return (const RouteOps *)plugin_find(routes, name);
}

char *route_setting(const Route *route)
{
    const RouteConfig *c = &route->config;
    RouteConfig usual = {0};
    if (route->ops->info.options != NULL)
        spec_defaults(&usual, route->ops->info.options);
    GString *text = g_string_new(route->ops->info.name);
    const struct {
        const char *key;
        gint64 value, usual;
    } options[] = {{"tile", c->tile, usual.tile}, {"s", c->s, 0},
                   {"width", c->width, 0},        {"c0", c->c0, 0},
                   {"split", c->split, 0},        {"factor", c->factor, 1}};
    char before = ':';
    for (guint i = 0; i < G_N_ELEMENTS(options); i++)
        if (options[i].value > 0 && options[i].value != options[i].usual) {
            g_string_append_printf(text, "%c%s=%" G_GINT64_FORMAT, before, options[i].key,
                                   options[i].value);
            before = ';';
        }
    if (c->graph)
        g_string_append_printf(text, "%cgraph=yes", before);
    return g_string_free(text, FALSE);
}

static const SpecOption fixed_options[] = {
    {"s", SPEC_INT, offsetof(SplitConfig, s), NULL, 1, 1 << 20, NULL, "splits of every row"},
    {0},
};
static const SpecOption balanced_options[] = {
    {"min", SPEC_INT, offsetof(SplitConfig, min_tokens), "0", 0, 1 << 24, NULL,
     "fewest tokens a task; 0 = 128 (persistent: 64)"},
    {0},
};
static const SplitOps splits_balanced = {
    .info = {"balanced", "tasks of nearly equal bytes, as many as run at once or a few times that",
             balanced_options, sizeof(SplitConfig)},
    .rule = ATTN_SPLITS_BALANCED,
};
static const SplitOps splits_fixed = {
    .info = {"fixed", "the same number of splits for every row (as published)", fixed_options,
             sizeof(SplitConfig)},
    .rule = ATTN_SPLITS_FIXED,
};
const PluginInfo *const split_rules[] = {&splits_balanced.info, &splits_fixed.info, NULL};

void route_plan_config(AttnPlanConfig *ret, const Route *route, const PluginChoice *splits,
                       const AttnShape *shape, gint workers)
{
    attn_plan_config_init(ret, route->ops->builtin, workers);
    const SplitConfig *split = splits->config;
    ret->rule = ((const SplitOps *)splits->info)->rule;
    if (ret->rule == ATTN_SPLITS_FIXED)
        ret->s = (int32_t)split->s;
    else if (split->min_tokens > 0)
        ret->min_tokens = (int32_t)split->min_tokens;
    if (route->config.s > 0) {
        ret->rule = ATTN_SPLITS_FIXED;
        ret->s = (int32_t)route->config.s;
    }
    if (route->config.tile > 0)
        ret->tile = (int32_t)route->config.tile;
    ret->bucket_width = (int32_t)route->config.width;
    /* The overhead of a pair is one of time, so in tiles it follows their bytes. */
    ret->c0_tiles = route->config.c0 > 0 ? (int32_t)route->config.c0 : 12 * 128 / shape->head_dim;
}

gboolean routes_differ(const GPtrArray *choices, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < choices->len; i++) {
        const PluginChoice *choice = choices->pdata[i];
        const Route route = {.ops = (const RouteOps *)choice->info,
                             .config = *(const RouteConfig *)choice->config};
        char *setting = route_setting(&route);
        if (!g_hash_table_contains(seen, setting)) {
            g_hash_table_add(seen, setting);
            continue;
        }
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--routes: %s is named twice", setting);
        g_free(setting);
        return FALSE;
    }
    return TRUE;
}
