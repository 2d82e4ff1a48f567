#include "sim/sim.h"
#include "sim/engine.h"
#include "sim/ledger.h"
#include "base/error.h"

#include <string.h>

#define LLAMA_8B_ENTRY_BYTES                                                                       \
    (2 * 32 * 8 * 128 * 2) /* K and V, layers, KV heads, head size, fp16                           \
                            */

void sim_config_init(SimConfig *config)
{
    gboolean checks = FALSE;
#ifndef NDEBUG
    checks = TRUE;
#endif
    *config = (SimConfig){
        .page_size = 16,
        .pool_pages = 2560,
        .prefix_cache = -1,
        .fast_forward = TRUE,
        .seed = 1,
        .check = checks,
        .entry_bytes = LLAMA_8B_ENTRY_BYTES,
    };
    plugin_choice_parse(&config->scheduler, "scheduler", schedulers, "vllm-v1", NULL);
}

void sim_config_clear(SimConfig *config)
{
    plugin_choice_clear(&config->scheduler);
    g_free(config->pool_layout);
    memset(config, 0, sizeof *config);
}

static gboolean run_any(const SimRun *run, SimResult *ret, GError **error)
{
    const SimConfig *c = run->config;
    if (c->page_size < 1 || c->page_size > 65536) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "page size %u: expected 1 to 65536 entries",
                    c->page_size);
        return FALSE;
    }
    gint64 begin = g_get_monotonic_time();
    const SchedulerOps *ops = (const SchedulerOps *)c->scheduler.info;
    SimResult result = {0};
    if (ops->run ? !ops->run(run, &result, error) : !engine_run(run, &result, error))
        return FALSE;
    result.wall_seconds = (double)(g_get_monotonic_time() - begin) / 1e6;
    *ret = result;
    return TRUE;
}

gboolean sim_run(const SimConfig *config, RequestSource *source, StepClock *clock, StepSink *steps,
                 RequestSink *requests, Progress *progress, SimResult *ret, GError **error)
{
    SimRun run = {config, source, clock, steps, requests, progress, NULL};
    return run_any(&run, ret, error);
}

gboolean sim_run_ledger(const SimConfig *config, RequestSource *source, StepClock *clock, FILE *out,
                        Progress *progress, SimResult *ret, GError **error)
{
    SimLedger ledger = {.out = out};
    SimRun run = {config, source, clock, NULL, NULL, progress, &ledger};
    return run_any(&run, ret, error);
}
