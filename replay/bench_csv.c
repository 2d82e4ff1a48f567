#include "replay/bench_csv.h"

#include <math.h>

void bench_csv_header(OutFile *csv)
{
    fputs("gpu,driver,toolkit,commit,date,seed,cell,family,route,rows,context,q_heads,kv_heads,"
          "head_dim,page_size,dtype,layout,kv_bytes,floor_us,kernel_us,graph_us,plan_us,wall_us,"
          "graph_wall_us,gb_per_s,percent_of_read_rate,vs_best_peer,launches,workers,"
          "merge_state_bytes,upload_bytes,checked_rows,max_abs_err,mean_abs_err,rows_diff,"
          "flashinfer_diff,empty_us,repeats,note\n",
          out_file_stream(csv));
}

static double shorter(double a, double b)
{
    return b > 0 && b < a ? b : a;
}

double bench_line_kernel(const BenchLine *line)
{
    return shorter(line->kernel_us, line->graph_us);
}

double bench_line_wall(const BenchLine *line)
{
    return shorter(line->wall_us, line->graph_wall_us);
}

double bench_floor(double read_rate, gint64 kv_bytes)
{
    return read_rate > 0 ? 5 + (double)kv_bytes / read_rate : 0;
}

double bench_best_peer(const BenchCellResult *cell)
{
    double best = 0;
    for (guint i = 0; i < cell->lines->len; i++) {
        const BenchLine *line = &g_array_index(cell->lines, BenchLine, i);
        const double us = line->peer && line->note == NULL ? bench_line_kernel(line) : 0;
        if (us > 0 && (best <= 0 || us < best))
            best = us;
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

/* A member of what the backend says of itself, fit for a column. */
static char *about(const BenchResult *result, const char *member)
{
    if (result->about == NULL)
        return g_strdup("");
    return g_strdelimit(g_strdup(json_object_get_string_member_with_default(
                            json_node_get_object(result->about), member, "")),
                        ",\"\n", ' ');
}

static void machine_columns(FILE *f, const BenchResult *result)
{
    g_autofree char *gpu = about(result, "name"), *driver = about(result, "driver"),
                    *toolkit = about(result, "toolkit");
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *date = g_date_time_format(now, "%Y-%m-%d");
    fprintf(f, "%s,%s,%s,%s,%s,%" G_GUINT64_FORMAT, gpu, driver, toolkit,
            result->commit != NULL ? result->commit : "", date, result->seed);
}

static void cell_columns(FILE *f, const BenchResult *result, const BenchCellResult *cell,
                         const char *route)
{
    const AttnShape *s = &cell->cell.shape;
    g_autofree char *name = bench_cell_name(&cell->cell);
    machine_columns(f, result);
    fprintf(f, ",%s,%s,%s,%d,%d,%d,%d,%d,%d,%s,%s,%" G_GINT64_FORMAT, name,
            bench_families[cell->cell.family], route, cell->cell.rows,
            cell->cell.family == BENCH_EQUAL ? cell->cell.context : cell->max_len, s->q_heads,
            s->kv_heads, s->head_dim, s->page_size, s->dtype == ATTN_F16 ? "fp16" : "bf16",
            s->layout == ATTN_HND ? "HND" : "NHD", cell->kv_bytes);
}

static void line_columns(FILE *f, const BenchResult *result, const BenchCellResult *cell,
                         const BenchLine *line)
{
    const gboolean timed = line->note == NULL;
    const double best = bench_best_peer(cell), us = bench_line_kernel(line);
    const double rate = timed ? (double)cell->kv_bytes / us : -1;
    number(f, result->read_rate > 0 ? bench_floor(result->read_rate, cell->kv_bytes) : -1, 2);
    number(f, line->kernel_us, 2);
    number(f, line->graph_us, 2);
    number(f, line->plan_us, 2);
    number(f, line->wall_us, 2);
    number(f, line->graph_wall_us, 2);
    number(f, timed ? 1e-3 * rate : -1, 2);
    number(f, timed && result->read_rate > 0 ? 100 * rate / result->read_rate : -1, 1);
    number(f, timed && best > 0 ? best / us : -1, 3);
    number(f, line->launches, 0);
    number(f, timed && line->workers > 0 ? line->workers : -1, 0);
    number(f, timed && !line->peer ? (double)line->merge_state_bytes : -1, 0);
    number(f, timed ? (double)line->upload_bytes : -1, 0);
    number(f, line->checked_rows, 0);
    small(f, line->max_abs_err);
    small(f, line->mean_abs_err);
    small(f, line->rows_diff);
    small(f, line->flashinfer_diff);
    number(f, result->empty_us > 0 ? result->empty_us : -1, 2);
    number(f, timed ? line->rounds : 0, 0);
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
        fputs(",,,,,,,,,,,,,,,,,,,,", f);
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
