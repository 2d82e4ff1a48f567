/* Prints how fast the simulator is: `bench-sim [CONV.csv]`, or on a generated load without a log.
 */
#include "base/outfile.h"
#include "sim/sim.h"
#include "sim/steps_file.h"
#include "workloads/workload.h"

#include <json-glib/json-glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

typedef struct Load {
    const char *name, *workload, *arrivals, *lengths;
    gint64 requests;
    guint64 pool_pages;
    const char *scheduler, *clock;
    const char *steps; /* where to write the steps file; NULL = nowhere */
} Load;

static long peak_mib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss / 1024;
}

static void run_load(const Load *load, gboolean json)
{
    g_autoptr(GError) error = NULL;
    WorkloadConfig w;
    workload_config_init(&w);
    g_free(w.workload);
    w.workload = g_strdup(load->workload);
    if (load->arrivals) {
        g_free(w.arrivals);
        g_free(w.lengths);
        w.arrivals = g_strdup(load->arrivals);
        w.lengths = g_strdup(load->lengths);
        w.requests = load->requests;
    }
    w.seed = 1;
    SimConfig c;
    sim_config_init(&c);
    c.check = FALSE;
    c.pool_pages = load->pool_pages;
    plugin_choice_clear(&c.scheduler);
    plugin_choice_parse(&c.scheduler, "scheduler", schedulers, load->scheduler, &error);
    g_assert_no_error(error);
    PluginChoice choice = {0};
    plugin_choice_parse(&choice, "clock", step_clocks, load->clock, &error);
    g_assert_no_error(error);
    g_autoptr(StepClock) stepper = step_clock_new(&choice, &error);
    g_autoptr(Workload) workload = workload_open(&w, &error);
    g_assert_no_error(error);
    StepsHeader header = {.page_size = 16, .pool_pages = c.pool_pages};
    g_autoptr(StepsWriter) writer =
        load->steps ? steps_writer_new(load->steps, &header, &error) : NULL;
    SimResult r;
    gint64 begin = g_get_monotonic_time();
    clock_t cpu = clock();
    sim_run(&c, workload_source(workload), stepper, writer ? steps_writer_sink(writer) : NULL, NULL,
            NULL, &r, &error);
    if (writer && error == NULL)
        steps_writer_commit(writer, &error);
    double wall = (double)(g_get_monotonic_time() - begin) / 1e6;
    double busy = (double)(clock() - cpu) / CLOCKS_PER_SEC;
    g_assert_no_error(error);
    printf("%-26s %8.3f s (wall %8.3f)  %6.1f M row-steps/s  %7.0f requests/s  %6.2f M steps/s  "
           "peak %ld MiB\n",
           load->name, busy, wall, (double)r.row_steps / busy / 1e6, (double)r.requests / busy,
           (double)r.steps / busy / 1e6, peak_mib());
    fflush(stdout);
    if (json) {
        g_autoptr(JsonBuilder) b = json_builder_new();
        json_builder_begin_object(b);
        sim_result_to_json(&r, b);
        json_builder_end_object(b);
        g_autoptr(JsonNode) root = json_builder_get_root(b);
        g_autofree char *text = json_to_string(root, TRUE);
        puts(text);
    }
    plugin_choice_clear(&choice);
    workload_config_clear(&w);
    sim_config_clear(&c);
}

#define SMALL "linear"
#define FAST "linear:base=4ms,prefill_token=25us,decode_row=60us,kv_token=2ns"

int main(int argc, char **argv)
{
    const char *log = argc > 1 ? argv[1] : NULL;
    gint64 requests = argc > 2 ? atoll(argv[2]) : 200000;
    gboolean json = argc > 3;
    g_autofree char *lengths =
        log ? g_strdup_printf("empirical:file=%s", log) : g_strdup("lognormal");
    const Load overload = {
        "recorded log, overloaded", log, NULL, NULL, 0, 2560, "vllm-v1", SMALL, NULL};
    const Load steps = {
        "the same, with steps file", log, NULL, NULL, 0, 2560, "vllm-v1", SMALL, "bench.kvsteps"};
    const Load poisson = {
        "Poisson 5.5/s", NULL, "poisson:rate=5.5", lengths, requests, 20000, "vllm-v1", FAST, NULL};
    const Load dense = {"Poisson 40/s, 256 rows",
                        NULL,
                        "poisson:rate=40",
                        lengths,
                        requests / 4,
                        40000,
                        "vllm-v1",
                        "linear:base=4ms,prefill_token=2us,decode_row=30us,kv_token=2ns",
                        NULL};
    if (log) {
        run_load(&overload, json);
        run_load(&steps, FALSE);
        remove("bench.kvsteps");
    }
    run_load(&poisson, json);
    run_load(&dense, json);
    return 0;
}
