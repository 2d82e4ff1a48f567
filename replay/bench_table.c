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
            (best == NULL || line->kernel_us < best->kernel_us))
            best = line;
    }
    return best;
}

static void table_line(const BenchResult *self, const BenchCellResult *cell, const char *name,
                       const BenchLine *line, GString *out)
{
    const double rate = (double)cell->kv_bytes / line->kernel_us;
    if (line->note != NULL) {
        g_string_append_printf(out, "%-18s %-26s n/a: %s\n", name, line->label, line->note);
        return;
    }
    g_string_append_printf(out, "%-18s %-26s %10.1f %8.1f %10.1f %9.2f", name, line->label,
                           line->kernel_us, line->plan_us, line->wall_us, 1e-3 * rate);
    if (self->read_rate > 0)
        g_string_append_printf(out, " %5.1f%%", 100 * rate / self->read_rate);
    else
        g_string_append(out, "      -");
    const double best = bench_best_peer(cell);
    if (best > 0)
        g_string_append_printf(out, " %7.2f", best / line->kernel_us);
    else
        g_string_append(out, "       -");
    g_string_append_printf(out, " %9.2g\n", line->max_abs_err);
}

static void best_line(const BenchCellResult *cell, GString *out)
{
    const BenchLine *ours = fastest(cell, FALSE), *theirs = fastest(cell, TRUE);
    if (ours == NULL || theirs == NULL)
        return;
    g_string_append_printf(out, "%-18s best: %s %.1f us; best peer: %s %.1f us; %.2fx\n", "",
                           ours->label, ours->kernel_us, theirs->label, theirs->kernel_us,
                           theirs->kernel_us / ours->kernel_us);
}

void bench_result_table(const BenchResult *self, GString *out)
{
    g_string_append_printf(out, "backend %s, %s; ", self->backend, self->device);
    if (self->read_rate > 0)
        g_string_append_printf(out, "measured read rate %.1f GB/s; ", 1e-3 * self->read_rate);
    g_string_append_printf(out, "medians of %d rounds, us; seed %" G_GUINT64_FORMAT "\n",
                           self->rounds, self->seed);
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
        best_line(cell, out);
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

static void add_cell(JsonBuilder *b, const BenchCellResult *cell)
{
    g_autofree char *name = bench_cell_name(&cell->cell);
    json_builder_begin_object(b);
    add_text(b, "cell", name);
    add_number(b, "kv_bytes", (double)cell->kv_bytes);
    add_text(b, "note", cell->note);
    json_builder_set_member_name(b, "routes");
    json_builder_begin_array(b);
    for (guint i = 0; i < cell->lines->len; i++) {
        const BenchLine *line = &g_array_index(cell->lines, BenchLine, i);
        json_builder_begin_object(b);
        add_text(b, "route", line->label);
        add_number(b, "kernel_us", line->kernel_us);
        add_number(b, "plan_us", line->plan_us);
        add_number(b, "wall_us", line->wall_us);
        add_number(b, "max_abs_err", line->max_abs_err);
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
    json_builder_set_member_name(builder, "rounds");
    json_builder_add_int_value(builder, self->rounds);
    json_builder_set_member_name(builder, "cells");
    json_builder_begin_array(builder);
    for (guint i = 0; i < self->cells->len; i++)
        add_cell(builder, self->cells->pdata[i]);
    json_builder_end_array(builder);
    json_builder_end_object(builder);
}
