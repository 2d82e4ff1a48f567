/* The bench's results for a person and as JSON. */
#include "replay/bench.h"

#include <math.h>

/* Fastest of ours, or of the peers; NULL where none was timed. */
static const BenchLine *fastest(const BenchCellResult *cell, gboolean peer)
{
    const BenchLine *best = NULL;
    for (guint i = 0; i < cell->lines->len; i++) {
        const BenchLine *line = &g_array_index(cell->lines, BenchLine, i);
        if (line->peer == peer && line->note == NULL &&
            (best == NULL || bench_line_kernel(line) < bench_line_kernel(best)))
            best = line;
    }
    return best;
}

static void table_line(const BenchResult *self, const BenchCellResult *cell, const char *name,
                       const BenchLine *line, GString *out)
{
    const double us = bench_line_kernel(line), rate = (double)cell->kv_bytes / us;
    if (line->note != NULL) {
        g_string_append_printf(out, "%-18s %-26s n/a: %s\n", name, line->label, line->note);
        return;
    }
    g_string_append_printf(out, "%-18s %-26s %10.1f %8.1f %10.1f %9.2f", name, line->label, us,
                           line->plan_us, bench_line_wall(line), 1e-3 * rate);
    if (self->read_rate > 0)
        g_string_append_printf(out, " %5.1f%%", 100 * rate / self->read_rate);
    else
        g_string_append(out, "      -");
    const double best = bench_best_peer(cell);
    if (best > 0)
        g_string_append_printf(out, " %7.2f", best / us);
    else
        g_string_append(out, "       -");
    g_string_append_printf(out, " %9.2g\n", line->max_abs_err);
}

static void best_line(const BenchResult *self, const BenchCellResult *cell, GString *out)
{
    const BenchLine *ours = fastest(cell, FALSE), *theirs = fastest(cell, TRUE);
    const double floor = bench_floor(self->read_rate, cell->kv_bytes);
    if (ours == NULL)
        return;
    const double us = bench_line_kernel(ours);
    g_string_append_printf(out, "%-18s best: %s %.1f us", "", ours->label, us);
    if (floor > 0)
        g_string_append_printf(out, ", %.2f of the floor", us / floor);
    if (theirs != NULL)
        g_string_append_printf(out, "; best peer: %s %.1f us; %.2fx", theirs->label,
                               bench_line_kernel(theirs), bench_line_kernel(theirs) / us);
    g_string_append_c(out, '\n');
}

void bench_result_table(const BenchResult *self, GString *out)
{
    g_string_append_printf(out, "backend %s, %s; ", self->backend, self->device);
    if (self->read_rate > 0)
        g_string_append_printf(out, "measured read rate %.1f GB/s; ", 1e-3 * self->read_rate);
    g_string_append_printf(
        out, "medians, us, the shorter with and without a graph; seed %" G_GUINT64_FORMAT "\n",
        self->seed);
    g_string_append_printf(out, "%-18s %-26s %10s %8s %10s %9s %6s %7s %9s\n", "cell", "route",
                           "kernel", "plan", "wall", "GB/s", "read", "vs peer", "max err");
    for (guint i = 0; i < self->cells->len; i++) {
        const BenchCellResult *cell = self->cells->pdata[i];
        g_autofree char *name = bench_cell_name(&cell->cell);
        if (cell->note != NULL)
            g_string_append_printf(out, "%-18s %s\n", name, cell->note);
        for (guint k = 0; k < cell->lines->len; k++)
            table_line(self, cell, k == 0 ? name : "", &g_array_index(cell->lines, BenchLine, k),
                       out);
        best_line(self, cell, out);
    }
}

static void add_number(JsonBuilder *b, const char *name, double value)
{
    json_builder_set_member_name(b, name);
    if (isnan(value) || value < 0)
        json_builder_add_null_value(b);
    else
        json_builder_add_double_value(b, value);
}

static void add_text(JsonBuilder *b, const char *name, const char *value)
{
    json_builder_set_member_name(b, name);
    if (value != NULL)
        json_builder_add_string_value(b, value);
    else
        json_builder_add_null_value(b);
}

static void add_cell(JsonBuilder *b, const BenchResult *result, const BenchCellResult *cell)
{
    const double floor = bench_floor(result->read_rate, cell->kv_bytes);
    g_autofree char *name = bench_cell_name(&cell->cell);
    json_builder_begin_object(b);
    add_text(b, "cell", name);
    add_number(b, "kv_bytes", (double)cell->kv_bytes);
    add_number(b, "floor_us", floor > 0 ? floor : -1);
    add_number(b, "rounds", cell->rounds);
    add_text(b, "note", cell->note);
    json_builder_set_member_name(b, "routes");
    json_builder_begin_array(b);
    for (guint i = 0; i < cell->lines->len; i++) {
        const BenchLine *line = &g_array_index(cell->lines, BenchLine, i);
        json_builder_begin_object(b);
        add_text(b, "route", line->label);
        add_number(b, "kernel_us", line->kernel_us);
        add_number(b, "graph_us", line->graph_us);
        add_number(b, "plan_us", line->plan_us);
        add_number(b, "wall_us", line->wall_us);
        add_number(b, "graph_wall_us", line->graph_wall_us);
        add_number(b, "max_abs_err", line->max_abs_err);
        add_number(b, "flashinfer_diff", line->flashinfer_diff);
        add_text(b, "note", line->note);
        json_builder_end_object(b);
    }
    json_builder_end_array(b);
    json_builder_end_object(b);
}

void bench_result_to_json(const BenchResult *self, JsonBuilder *builder)
{
    json_builder_begin_object(builder);
    add_text(builder, "backend", self->backend);
    json_builder_set_member_name(builder, "device");
    json_builder_add_value(builder, json_node_copy(self->about));
    add_number(builder, "read_rate_gbps", self->read_rate > 0 ? 1e-3 * self->read_rate : -1);
    json_builder_set_member_name(builder, "cells");
    json_builder_begin_array(builder);
    for (guint i = 0; i < self->cells->len; i++)
        add_cell(builder, self, self->cells->pdata[i]);
    json_builder_end_array(builder);
    json_builder_end_object(builder);
}
