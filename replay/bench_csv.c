#include "replay/bench_csv.h"

#include <math.h>

void bench_csv_header(OutFile *csv)
{
    fputs("device,seed,cell,family,route,rows,context,q_heads,kv_heads,head_dim,page_size,dtype,"
          "layout,kv_bytes,kernel_us,plan_us,wall_us,gb_per_s,percent_of_read_rate,vs_best_peer,"
          "launches,merge_state_bytes,upload_bytes,checked_rows,max_abs_err,mean_abs_err,repeats,"
          "note\n",
          out_file_stream(csv));
}

double bench_best_peer(const BenchCellResult *cell)
{
    double best = 0;
    for (guint i = 0; i < cell->lines->len; i++) {
        const BenchLine *line = &g_array_index(cell->lines, BenchLine, i);
        if (line->peer && line->note == NULL && line->kernel_us > 0 &&
            (best <= 0 || line->kernel_us < best))
            best = line->kernel_us;
    }
    return best;
}

/* A comma, and the number with `decimals` digits where there is one. Never in a locale's way. */
static void number(FILE *f, double value, int decimals)
{
    char format[16], text[G_ASCII_DTOSTR_BUF_SIZE];
    fputc(',', f);
    if (isnan(value))
        fputs("nan", f);
    else if (value >= 0) {
        g_snprintf(format, sizeof format, "%%.%df", decimals);
        fputs(g_ascii_formatd(text, sizeof text, format, value), f);
    }
}

static void small(FILE *f, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    fputc(',', f);
    if (isnan(value))
        fputs("nan", f);
    else if (value >= 0)
        fputs(g_ascii_formatd(text, sizeof text, "%.3g", value), f);
}

static void quoted(FILE *f, const char *text)
{
    fputs(",\"", f);
    for (; text != NULL && *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', f);
        fputc(*text == '\n' ? ' ' : *text, f);
    }
    fputc('"', f);
}

static void cell_columns(FILE *f, const BenchResult *result, const BenchCellResult *cell,
                         const char *route)
{
    const AttnShape *s = &cell->cell.shape;
    g_autofree char *name = bench_cell_name(&cell->cell);
    g_autofree char *device = g_strdelimit(g_strdup(result->device), ",\"\n", ' ');
    fprintf(f, "%s,%" G_GUINT64_FORMAT ",%s,%s,%s,%d,%d,%d,%d,%d,%d,%s,%s,%" G_GINT64_FORMAT,
            device, result->seed, name, bench_families[cell->cell.family], route, cell->cell.rows,
            cell->cell.family == BENCH_EQUAL ? cell->cell.context : cell->max_len, s->q_heads,
            s->kv_heads, s->head_dim, s->page_size, s->dtype == ATTN_F16 ? "fp16" : "bf16",
            s->layout == ATTN_HND ? "HND" : "NHD", cell->kv_bytes);
}

static void line_columns(FILE *f, const BenchResult *result, const BenchCellResult *cell,
                         const BenchLine *line)
{
    const gboolean timed = line->note == NULL;
    const double best = bench_best_peer(cell), us = line->kernel_us;
    const double rate = timed ? (double)cell->kv_bytes / us : -1;
    number(f, us, 2);
    number(f, line->plan_us, 2);
    number(f, line->wall_us, 2);
    number(f, timed ? 1e-3 * rate : -1, 2);
    number(f, timed && result->read_rate > 0 ? 100 * rate / result->read_rate : -1, 1);
    number(f, timed && best > 0 ? best / us : -1, 3);
    number(f, line->launches, 0);
    number(f, timed && !line->peer ? (double)line->merge_state_bytes : -1, 0);
    number(f, timed ? (double)line->upload_bytes : -1, 0);
    number(f, line->checked_rows, 0);
    small(f, line->max_abs_err);
    small(f, line->mean_abs_err);
    number(f, result->rounds, 0);
    if (timed)
        fputc(',', f);
    else
        quoted(f, line->note);
    fputc('\n', f);
}

gboolean bench_csv_cell(OutFile *csv, const BenchResult *result, const BenchCellResult *cell,
                        GError **error)
{
    FILE *f = out_file_stream(csv);
    if (cell->note != NULL) {
        cell_columns(f, result, cell, "");
        fputs(",,,,,,,,,,,,,", f);
        quoted(f, cell->note);
        fputc('\n', f);
    }
    for (guint i = 0; i < cell->lines->len; i++) {
        const BenchLine *line = &g_array_index(cell->lines, BenchLine, i);
        cell_columns(f, result, cell, line->label);
        line_columns(f, result, cell, line);
    }
    return out_file_ok(csv, error);
}
