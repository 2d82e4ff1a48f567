/* The time series of a run: `sim-series WORKLOAD SCHEDULER POOL_PAGES CLOCK` prints one line a
 * step: start ns, duration ns, requests running, waiting, pages used. For tools/validate-vllm. */
#include "sim/sim.h"
#include "workloads/workload.h"

#include <stdio.h>

static gboolean print_step(StepSink *sink, const Step *s, GError **error)
{
    printf("%" G_GINT64_FORMAT " %" G_GINT64_FORMAT " %u %u %u\n", s->start, s->duration,
           s->rows + s->n_prefill, s->waiting, s->pages_used);
    return TRUE;
}

static gboolean run(char **argv, GError **error)
{
    WorkloadConfig w;
    workload_config_init(&w);
    g_free(w.workload);
    w.workload = g_strdup(argv[1]);
    SimConfig c;
    sim_config_init(&c);
    c.check = FALSE;
    c.pool_pages = g_ascii_strtoull(argv[3], NULL, 10);
    PluginChoice scheduler = {0}, choice = {0};
    if (!plugin_choice_parse(&scheduler, "scheduler", schedulers, argv[2], error) ||
        !plugin_choice_parse(&choice, "clock", step_clocks, argv[4], error))
        return FALSE;
    plugin_choice_clear(&c.scheduler);
    c.scheduler = scheduler;
    g_autoptr(StepClock) clock = step_clock_new(&choice, error);
    g_autoptr(Workload) workload = clock ? workload_open(&w, error) : NULL;
    StepSink sink = {.step = print_step};
    SimResult result;
    gboolean ok = workload &&
                  sim_run(&c, workload_source(workload), clock, &sink, NULL, NULL, &result, error);
    plugin_choice_clear(&choice);
    workload_config_clear(&w);
    sim_config_clear(&c);
    return ok;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    if (argc != 5) {
        fprintf(stderr, "usage: %s WORKLOAD SCHEDULER POOL_PAGES CLOCK\n", argv[0]);
        return 2;
    }
    if (!run(argv, &error)) {
        fprintf(stderr, "%s: %s\n", argv[0], error->message);
        return 1;
    }
    return 0;
}
