/* Times of a cell by one route: the graph, the graph less a part, pieces, and the host's side. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/stats.h"
#include "kernels/attn_device.h"
#include "replay/layer_engine.h"

enum { WARM = 2, WALL_STEPS = 16 };

/* --- a captured graph --- */

typedef struct Captured {
    cudaGraphExec_t exec;
    gint kernels;
} Captured;

static void captured_clear(Captured *self)
{
    if (self->exec != NULL)
        cudaGraphExecDestroy(self->exec);
    *self = (Captured){0};
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Captured, captured_clear)

static gint count_kernels(cudaGraph_t graph)
{
    size_t n = 0;
    gint kernels = 0;
    if (cudaGraphGetNodes(graph, NULL, &n) != cudaSuccess)
        return 0;
    g_autofree cudaGraphNode_t *nodes = g_new0(cudaGraphNode_t, n + 1);
    if (cudaGraphGetNodes(graph, nodes, &n) != cudaSuccess)
        return 0;
    for (size_t i = 0; i < n; i++) {
        enum cudaGraphNodeType type;
        kernels +=
            cudaGraphNodeGetType(nodes[i], &type) == cudaSuccess && type == cudaGraphNodeTypeKernel;
    }
    return kernels;
}

/* Captures; an executable graph that is there is brought up to date where it can be, as an engine
 * would do, and made anew where not. */
static gboolean capture_into(LayerEngine *self, guint groups, Captured *to, GError **error)
{
    cudaGraph_t graph = NULL;
    if (!layer_capture(self, groups, &graph, error)) {
        if (graph != NULL)
            cudaGraphDestroy(graph);
        return FALSE;
    }
    cudaGraphExecUpdateResultInfo info;
    cudaError_t e = cudaSuccess;
    if (to->exec == NULL || cudaGraphExecUpdate(to->exec, graph, &info) != cudaSuccess) {
        cudaGetLastError();
        captured_clear(to);
        e = cudaGraphInstantiate(&to->exec, graph, 0);
        to->kernels = count_kernels(graph);
    }
    cudaGraphDestroy(graph);
    return cuda_ok(e, "graph", error);
}

/* Between two events, the host ahead. */
static gboolean time_once(LayerEngine *self, cudaGraphExec_t exec, double *ret_us, GError **error)
{
    const gint64 launching = 100000 + 20000 * (gint64)self->config.layers; /* ns, with room */
    float ms;
    TRY_ATTN(attn_device_spin(launching, self->stream, &attn_error));
    TRY_CUDA(cudaEventRecord(self->begin, self->stream), "event");
    TRY_CUDA(cudaGraphLaunch(exec, self->stream), "graph");
    TRY_CUDA(cudaEventRecord(self->end, self->stream), "event");
    TRY_CUDA(cudaStreamSynchronize(self->stream), "step");
    TRY_CUDA(cudaEventElapsedTime(&ms, self->begin, self->end), "event");
    *ret_us = 1e3 * (double)ms;
    return TRUE;
}

static gboolean time_graph(LayerEngine *self, cudaGraphExec_t exec, gint repeats, double *ret_us,
                           GError **error)
{
    g_autofree double *us = g_new(double, repeats + WARM);
    for (gint i = 0; i < repeats + WARM; i++)
        if (!time_once(self, exec, &us[i], error))
            return FALSE;
    *ret_us = median_of(us + WARM, repeats);
    return TRUE;
}

/* A graph of some groups alone, captured, timed and thrown away. */
static gboolean time_groups(LayerEngine *self, guint groups, gint repeats, double *ret_us,
                            GError **error)
{
    g_auto(Captured) part = {0};
    return capture_into(self, groups, &part, error) &&
           time_graph(self, part.exec, repeats, ret_us, error);
}

static LayerParts *parts_of(LayerEngine *self)
{
    guint i = 0;
    while (1 << i < self->cell.bucket)
        i++;
    return &self->parts[i];
}

static gboolean measure_graphs(LayerEngine *self, cudaGraphExec_t exec, LayerTimes *ret,
                               GError **error)
{
    LayerParts *parts = parts_of(self);
    if (!time_graph(self, exec, ret->repeats, &ret->graph_us, error))
        return FALSE;
    if (parts->gemm_us <= 0 &&
        (!time_groups(self, GROUP_GEMM | GROUP_OTHER, ret->repeats, &parts->without_attention_us,
                      error) ||
         !time_groups(self, GROUP_GEMM, ret->repeats, &parts->gemm_us, error)))
        return FALSE;
    ret->attention_us = ret->graph_us - parts->without_attention_us;
    ret->gemm_us = parts->gemm_us;
    ret->other_us = parts->without_attention_us - parts->gemm_us;
    return TRUE;
}

/* --- piece by piece --- */

typedef struct Marks {
    LayerEngine *engine;
    guint n, *group; /* groups by mark */
} Marks;

static gboolean mark_change(gpointer data, LayerStage stage, gint layer, GError **error)
{
    Marks *m = data;
    const guint group = layer_stage_group(stage);
    if (m->n > 0 && m->group[m->n - 1] == group)
        return TRUE;
    g_assert(m->n + 1 < m->engine->marks);
    m->group[m->n] = group;
    return cuda_ok(cudaEventRecord(m->engine->mark[m->n++], m->engine->stream), "event", error);
}

/* Launched one by one behind a spinning kernel, an event wherever the kind of work changes. */
static gboolean measure_direct(LayerEngine *self, LayerTimes *ret, GError **error)
{
    g_autofree guint *group = g_new0(guint, self->marks);
    Marks m = {.engine = self, .group = group};
    const gint64 launches = 14 * (gint64)self->config.layers;
    TRY_ATTN(attn_device_spin(MIN(50000 + 6000 * launches, 20000000), self->stream, &attn_error));
    if (!layer_run_step(self, GROUP_ALL, mark_change, &m, error))
        return FALSE;
    TRY_CUDA(cudaEventRecord(self->mark[m.n], self->stream), "event");
    TRY_CUDA(cudaStreamSynchronize(self->stream), "step");
    ret->direct_attention_us = ret->direct_gemm_us = ret->direct_other_us = 0;
    for (guint i = 0; i < m.n; i++) {
        float ms;
        TRY_CUDA(cudaEventElapsedTime(&ms, self->mark[i], self->mark[i + 1]), "event");
        *(group[i] == GROUP_GEMM        ? &ret->direct_gemm_us
          : group[i] == GROUP_ATTENTION ? &ret->direct_attention_us
                                        : &ret->direct_other_us) += 1e3 * (double)ms;
    }
    ret->direct_us = ret->direct_attention_us + ret->direct_gemm_us + ret->direct_other_us;
    return TRUE;
}

/* --- the host's side --- */

typedef struct HostTimes {
    double wall[WALL_STEPS], table[WALL_STEPS], plan[WALL_STEPS], launch[WALL_STEPS];
    double update;
    gint updates;
    gint64 bytes;
} HostTimes;

/* Can the captured launches run this plan: the same kernels, grids and addresses? */
static gboolean same_launches(const AttnPlan *a, const AttnPlan *b)
{
    if (a->config.route == ATTN_PERSISTENT)
        return a->config.workers == b->config.workers;
    if (a->n_tasks != b->n_tasks || a->n_launches != b->n_launches)
        return FALSE;
    for (gint i = 0; i < a->n_launches; i++)
        if (a->launches[i].kind != b->launches[i].kind ||
            a->launches[i].first != b->launches[i].first ||
            a->launches[i].count != b->launches[i].count)
            return FALSE;
    return TRUE;
}

static gboolean wall_step(LayerEngine *self, const AttnPlanConfig *config, AttnPlan *next,
                          Captured *graph, HostTimes *t, gint i, GError **error)
{
    gint64 bytes = 0;
    const double from = clock_us();
    if (!layer_cell_grow(self, error))
        return FALSE;
    const double tabled = clock_us();
    if (!layer_plan(self, config, next, error))
        return FALSE;
    const gboolean same = same_launches(&self->plan, next);
    const AttnPlan last = self->plan;
    self->plan = *next;
    *next = last;
    if (!layer_make_room(self, self->plan.n_tasks, self->plan.counts.partial_slots, error) ||
        !layer_upload(self, &bytes, error))
        return FALSE;
    const double planned = clock_us();
    if (!same && !capture_into(self, GROUP_ALL, graph, error))
        return FALSE;
    const double ready = clock_us();
    TRY_CUDA(cudaGraphLaunch(graph->exec, self->stream), "graph");
    const double launched = clock_us();
    TRY_CUDA(cudaStreamSynchronize(self->stream), "step");
    const double end = clock_us();
    if (i < 0)
        return TRUE;
    t->wall[i] = end - from - (ready - planned);
    t->table[i] = tabled - from;
    t->plan[i] = planned - tabled;
    t->launch[i] = launched - ready;
    t->update += same ? 0 : ready - planned;
    t->updates += !same;
    t->bytes = bytes + cuda_table_upload_bytes(self->table);
    return TRUE;
}

/* Steps as a server has them: every row one entry longer, then plan, launch, wait. */
static gboolean measure_wall(LayerEngine *self, const AttnPlanConfig *config, Captured *graph,
                             LayerTimes *ret, GError **error)
{
    HostTimes t = {.update = 0};
    AttnPlan next;
    const gint steps = MIN(WALL_STEPS, 2 * ret->repeats + 2);
    attn_plan_init(&next);
    gboolean ok = TRUE;
    for (gint i = -WARM; ok && i < steps; i++)
        ok = wall_step(self, config, &next, graph, &t, i, error);
    attn_plan_free(&next);
    if (!ok)
        return FALSE;
    ret->steps = steps;
    ret->updates = t.updates;
    ret->update_us = t.updates > 0 ? t.update / t.updates : 0;
    ret->wall_us = median_of(t.wall, steps);
    ret->table_us = median_of(t.table, steps);
    ret->plan_us = median_of(t.plan, steps);
    ret->launch_us = median_of(t.launch, steps);
    ret->upload_bytes = t.bytes;
    return TRUE;
}

/* --- all of it --- */

static gboolean prepare(LayerEngine *self, const Route *route, const PluginChoice *splits,
                        AttnPlanConfig *ret, AttnCounts *ret_counts, GError **error)
{
    const AttnShape *shape = &self->config.shape.attn;
    if (route->ops->kind != ROUTE_BUILTIN) {
        g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED,
                    "route %s: the layer runtime runs kvreplay's own routes", route->label);
        return FALSE;
    }
    route_plan_config(ret, route, splits, shape, layer_engine_workers(self, route));
    if (!layer_cell_begin(self, error) || !layer_plan(self, ret, &self->plan, error) ||
        !layer_make_room(self, self->plan.n_tasks, self->plan.counts.partial_slots, error) ||
        !layer_upload(self, NULL, error))
        return FALSE;
    const AttnStatus status = attn_plan_count(ret_counts, ret, shape, self->cell.bucket,
                                              cuda_table_host_lens(self->table));
    if (status == ATTN_OK)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "planning: %s", attn_strerror(status));
    return FALSE;
}

gboolean layer_engine_measure(LayerEngine *self, const Route *route, const PluginChoice *splits,
                              gint repeats, gint64 check_bytes, LayerTimes *ret, GError **error)
{
    g_auto(Captured) graph = {0};
    AttnPlanConfig config;
    double once = 0;
    *ret = (LayerTimes){.repeats = repeats};
    /* Directly first: code is loaded then, which a capture could not do. */
    if (!prepare(self, route, splits, &config, &ret->counts, error) ||
        !measure_direct(self, ret, error) || !capture_into(self, GROUP_ALL, &graph, error) ||
        !time_once(self, graph.exec, &once, error))
        return FALSE;
    ret->repeats = MAX(MIN(repeats, (gint)(1e5 / MAX(once, 1))), MIN(repeats, 3));
    ret->kernels = graph.kernels;
    /* Once more before the check: the graphs of parts leave other values behind. */
    return measure_graphs(self, graph.exec, ret, error) &&
           time_once(self, graph.exec, &once, error) &&
           layer_check_attention(self, check_bytes, &ret->checked_rows, &ret->max_abs_err,
                                 &ret->mean_abs_err, error) &&
           measure_direct(self, ret, error) && measure_wall(self, &config, &graph, ret, error);
}
