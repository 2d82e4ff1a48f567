#include "replay/cpu_rates.h"

#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/stats.h"
#include "kernels/cpu_engine.h"
#include "replay/crew.h"

enum { REPEATS = 3, LAUNCHES = 201 };
#define BYTES ((gsize)192 << 20) /* beyond any cache's share of a thread or two */

typedef struct Copy {
    char *to;
    const char *from;
    guint members;
} Copy;

static void copy_slice(gpointer data, guint member)
{
    const Copy *c = data;
    const gsize from = BYTES / c->members * member;
    memcpy(c->to + from, c->from + from, BYTES / c->members);
}

static double copy_rate(char *to, const char *from, guint threads)
{
    g_autoptr(Crew) crew = crew_new(threads, "kvreplay-copy");
    Copy copy = {to, from, threads};
    double us[REPEATS];
    crew_run(crew, copy_slice, &copy); /* pages are there from now on */
    for (guint i = 0; i < REPEATS; i++) {
        const double begin = clock_us();
        crew_run(crew, copy_slice, &copy);
        us[i] = clock_us() - begin;
    }
    return (double)BYTES / MAX(median_of(us, REPEATS), 1);
}

/* One row of one entry: what handing a list to the threads costs. */
static double tiny_list(AttnCpu *engine, char *memory)
{
    const AttnShape shape = {1, 1, 64, 16, ATTN_F16, ATTN_HND};
    AttnPool pool = {.k = memory, .v = memory + (1 << 16), .pages = 1};
    const int32_t one = 1, zero = 0;
    const AttnBatch batch = {1, &one, &zero, &zero, memory + (2 << 16), memory + (3 << 16), 0.125f};
    AttnPartials partials = {0};
    AttnPlanConfig config;
    AttnPlan plan;
    double us[LAUNCHES];
    attn_pool_strides(&pool, &shape);
    attn_plan_init(&plan);
    attn_plan_config_init(&config, ATTN_SINGLE, 1);
    gboolean ok = attn_plan_build(&plan, &config, &shape, 1, &one) == ATTN_OK;
    for (guint i = 0; ok && i < LAUNCHES; i++) {
        const double begin = clock_us();
        ok = attn_cpu_run(engine, &shape, &pool, &batch, &plan, &partials) == ATTN_OK;
        us[i] = clock_us() - begin;
    }
    attn_plan_free(&plan);
    return ok ? median_of(us, LAUNCHES) : -1;
}

gboolean cpu_rates(const BackendConfig *config, DeviceRates *ret, GError **error)
{
    device_rates_init(ret);
    AttnCpu *engine = attn_cpu_new(config->threads);
    char *memory =
        mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (engine == NULL || memory == MAP_FAILED) {
        attn_cpu_free(engine);
        if (memory != MAP_FAILED)
            munmap(memory, 2 * BYTES);
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                    "no threads, or no %.2f GiB of memory, to measure with",
                    2.0 * (double)BYTES / (1 << 30));
        return FALSE;
    }
    memset(memory, 1, BYTES);
    ret->read = 1e-6 * attn_cpu_read_rate(engine, memory, (gint64)BYTES, REPEATS);
    ret->copy = copy_rate(memory + BYTES, memory, (guint)attn_cpu_threads(engine));
    memset(memory, 0, 4 << 16);
    ret->event_us = tiny_list(engine, memory);
    attn_cpu_free(engine);
    munmap(memory, 2 * BYTES);
    return TRUE;
}
