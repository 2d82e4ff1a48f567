/* Every lane of a cell once on the same pages: against the reference, and against one another. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "replay/bench_private.h"

static gsize values_of(const Bench *self, const AttnShape *shape)
{
    gsize rows = 0;
    while (self->lens[rows] > 0) /* ends with a 0 */
        rows++;
    return rows * (gsize)shape->q_heads * (gsize)shape->head_dim;
}

static double value(AttnDtype dtype, guint16 bits)
{
    return (double)(dtype == ATTN_F16 ? attn_f16_to_f32(bits) : attn_bf16_to_f32(bits));
}

/* NaN where either has one. */
static double largest_difference(AttnDtype dtype, const guint16 *a, const guint16 *b, gsize n)
{
    double top = 0;
    for (gsize i = 0; i < n; i++) {
        if (a[i] == b[i] && !isnan(value(dtype, a[i])))
            continue;
        const double d = fabs(value(dtype, a[i]) - value(dtype, b[i]));
        if (isnan(d))
            return d;
        top = MAX(top, d);
    }
    return top;
}

static void check_lane(Bench *self, BenchLane *lane, gsize n)
{
    g_autoptr(GError) local = NULL;
    Execution e;
    double host_us;
    const char *refused = self->ops->refuses(self->backend, &lane->route);
    if (refused != NULL) {
        bench_line_note(lane, refused);
        return;
    }
    lane->out = g_new(guint16, n + 1);
    if (!bench_run_lane(self, lane, RUN_CHECK | RUN_NO_WALL | RUN_COLD, &e, &host_us, &local) ||
        !self->ops->outputs(self->backend, lane->out, &local)) {
        bench_line_note(lane, local->message);
        g_clear_pointer(&lane->out, g_free);
        return;
    }
    lane->line.checked_rows = e.checked_rows;
    lane->line.max_abs_err = e.max_abs_err;
    lane->line.mean_abs_err = e.mean_abs_err;
    if (backend_errors_pass(self->shape.dtype, e.max_abs_err, e.mean_abs_err))
        return;
    bench_line_note(lane, "WRONG: outputs differ from the reference by more than the tolerance");
    self->result->wrong = TRUE;
}

static void compare(Bench *self, BenchLane *lane, const BenchLane *base,
                    const BenchLane *flashinfer, gsize n)
{
    const AttnDtype dtype = self->shape.dtype;
    if (lane->out == NULL)
        return;
    if (base != NULL)
        lane->line.rows_diff = largest_difference(dtype, lane->out, base->out, n);
    if (flashinfer != NULL)
        lane->line.flashinfer_diff = largest_difference(dtype, lane->out, flashinfer->out, n);
    if (lane->line.note != NULL || backend_errors_pass(dtype, MAX(lane->line.rows_diff, 0), 0))
        return;
    bench_line_note(lane, "WRONG: a row differs from the other routes' by more than the tolerance");
    self->result->wrong = TRUE;
}

void bench_check(Bench *self)
{
    const BenchLane *base = NULL, *flashinfer = NULL;
    const gsize n = values_of(self, &self->shape);
    g_autoptr(GError) local = NULL;
    const gboolean begun = bench_begin(self, TRUE, &local);
    for (guint i = 0; i < self->n; i++) {
        BenchLane *lane = &self->lane[i];
        lane->line = (BenchLine){.label = g_strdup(lane->route.label),
                                 .peer = lane->route.ops->kind == ROUTE_PEER,
                                 .launches = -1,
                                 .kernel_us = -1,
                                 .plan_us = -1,
                                 .wall_us = -1,
                                 .graph_us = -1,
                                 .graph_wall_us = -1,
                                 .max_abs_err = -1,
                                 .mean_abs_err = -1,
                                 .rows_diff = -1,
                                 .flashinfer_diff = -1};
        if (!begun) {
            bench_line_note(lane, local->message);
            continue;
        }
        check_lane(self, lane, n);
        if (lane->line.note != NULL)
            continue;
        base = base == NULL ? lane : base;
        flashinfer = strcmp(lane->route.label, "flashinfer") == 0 ? lane : flashinfer;
    }
    for (guint i = 0; i < self->n; i++)
        compare(self, &self->lane[i], base, flashinfer, n);
    for (guint i = 0; i < self->n; i++)
        g_clear_pointer(&self->lane[i].out, g_free);
}
