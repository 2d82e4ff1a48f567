/* What was asked, and the cells, for a reader. */
#include <math.h>
#include <string.h>

#include "replay/bench_judge.h"

#define SMALL 256e6 /* bytes */

typedef enum { OF_BEST, OF_DEFAULT, OF_TC, OF_ALL, OF_WALL } Against;

typedef struct Asked { /* one line of what was asked */
    const char *text;
    gboolean ragged, small;
    gint32 rows; /* at least */
    Against against;
    gboolean least; /* asked of every cell, not of the mean */
    double at_least;
} Asked;

static const Asked asked[] = {
    {"kernel, against the best of all peers and settings", FALSE, FALSE, 0, OF_BEST, TRUE, 0.98},
    {"the same, ragged cells", TRUE, FALSE, 0, OF_BEST, FALSE, 1.06},
    {"the same, below 256 MB", FALSE, TRUE, 0, OF_BEST, FALSE, 1.15},
    {"ragged, B >= 32, against the best default", TRUE, FALSE, 32, OF_DEFAULT, FALSE, 1.15},
    {"ragged, against flashinfer-tc as it comes", TRUE, FALSE, 0, OF_TC, FALSE, 1.3},
    {"ragged, B >= 32, against it", TRUE, FALSE, 32, OF_TC, FALSE, 0},
    {"with peers as routes, against the best of all", FALSE, FALSE, 0, OF_ALL, TRUE, 0.99},
    {"wall, below 256 MB, against the best peer", FALSE, TRUE, 0, OF_WALL, FALSE, 1.25},
    {"wall, ragged", TRUE, FALSE, 0, OF_WALL, FALSE, 1.1},
};

static const JudgeLine *line_at(const JudgeCell *cell, gint i)
{
    return i >= 0 ? &g_array_index(cell->lines, JudgeLine, i) : NULL;
}

static const JudgeLine *theirs(const JudgeCell *cell, Against against)
{
    switch (against) {
    case OF_BEST:
        return line_at(cell, cell->best_peer);
    case OF_DEFAULT:
        return line_at(cell, cell->best_default);
    case OF_TC:
        return line_at(cell, cell->best_tc);
    case OF_ALL:
        return line_at(cell, cell->pick_with_peers[JUDGE_BEST]);
    case OF_WALL:
        return line_at(cell, cell->best_wall_peer);
    }
    return NULL;
}

/* Their time over ours; 0 where one is missing. In wall time the best of ours, and what `learned`
 * takes for it, is another route than in kernel time. */
static double ratio(const JudgeCell *cell, Against against, JudgePick pick)
{
    const JudgeLine *a = theirs(cell, against), *b;
    if (against == OF_WALL)
        b = line_at(cell, cell->pick_wall[pick]);
    else
        b = line_at(cell, against == OF_ALL ? cell->pick_with_peers[pick] : cell->pick[pick]);
    if (a == NULL || b == NULL)
        return 0;
    return against == OF_WALL ? a->wall_us / b->wall_us : a->kernel_us / b->kernel_us;
}

static double allowed(const JudgeCell *cell, Against against)
{
    const JudgeLine *a = theirs(cell, against);
    if (a == NULL || cell->floor_us <= 0 || (against == OF_WALL && cell->empty_us <= 0))
        return 0;
    return against == OF_WALL ? a->wall_us / (cell->floor_us + cell->empty_us)
                              : a->kernel_us / cell->floor_us;
}

static gboolean covers(const Asked *a, const JudgeCell *cell, const AttnShape *shape)
{
    return (!a->ragged || cell->cell.family != BENCH_EQUAL) &&
           (!a->small || (double)cell->kv_bytes < SMALL) && cell->cell.rows >= a->rows &&
           (shape == NULL || memcmp(shape, &cell->cell.shape, sizeof *shape) == 0);
}

typedef struct Mean { /* geometric, and the least */
    double sum, least;
    const char *where;
    guint n;
} Mean;

static void add(Mean *mean, double value, const char *where)
{
    if (value <= 0)
        return;
    if (mean->n++ == 0 || value < mean->least) {
        mean->least = value;
        mean->where = where;
    }
    mean->sum += log(value);
}

static void print_mean(GString *out, const Mean *mean)
{
    if (mean->n == 0)
        g_string_append(out, " - |");
    else
        g_string_append_printf(out, " %.3f, %.3f (%s) |", exp(mean->sum / mean->n), mean->least,
                               mean->where);
}

static void asked_line(const BenchJudge *self, const Asked *a, const AttnShape *shape, GString *out)
{
    Mean mean[JUDGE_PICKS] = {{0}}, floor = {0};
    for (guint i = 0; i < self->cells->len; i++) {
        const JudgeCell *cell = self->cells->pdata[i];
        if (!covers(a, cell, shape))
            continue;
        for (JudgePick p = 0; p < JUDGE_PICKS; p++)
            add(&mean[p], ratio(cell, a->against, p), cell->name);
        add(&floor, allowed(cell, a->against), cell->name);
    }
    if (mean[JUDGE_BEST].n == 0)
        return;
    g_string_append_printf(out, "| %s | %u | ", a->text, mean[JUDGE_BEST].n);
    if (a->at_least > 0)
        g_string_append_printf(out, a->least ? "never below %.2f |" : ">= %.2f |", a->at_least);
    else
        g_string_append(out, "- |");
    for (JudgePick p = 0; p < JUDGE_PICKS; p++)
        print_mean(out, &mean[p]);
    print_mean(out, &floor);
    g_string_append_c(out, '\n');
}

static void asked_table(const BenchJudge *self, const AttnShape *shape, GString *out)
{
    if (shape != NULL)
        g_string_append_printf(out, "\nHq %d, Hkv %d, d %d:\n\n", shape->q_heads, shape->kv_heads,
                               shape->head_dim);
    g_string_append(out, "| what was asked | cells | asked | best of ours | cost | learned | the "
                         "floor allows |\n|---|---|---|---|---|---|---|\n");
    for (guint i = 0; i < G_N_ELEMENTS(asked); i++)
        asked_line(self, &asked[i], shape, out);
}

void bench_judge_asked(const BenchJudge *self, GString *out)
{
    g_string_append_printf(out, "%s. Ratios: their time / ours, geometric mean, least (cell).\n\n",
                           self->machine);
    asked_table(self, NULL, out);
    const AttnShape *last = NULL;
    for (guint i = 0; i < self->cells->len; i++) {
        const JudgeCell *cell = self->cells->pdata[i];
        if (last == NULL || memcmp(last, &cell->cell.shape, sizeof *last) != 0)
            asked_table(self, &cell->cell.shape, out);
        last = &cell->cell.shape;
    }
}

/* --- the cells --- */

static void put_route(GString *out, const JudgeLine *line)
{
    if (line == NULL)
        g_string_append(out, " - |");
    else
        g_string_append_printf(out, " %.1f %s |", line->kernel_us, line->route.label);
}

static void put_ratio(GString *out, double value)
{
    if (value > 0)
        g_string_append_printf(out, " %.2f |", value);
    else
        g_string_append(out, " - |");
}

static void cell_line(const JudgeCell *cell, GString *out)
{
    if (cell->note != NULL) {
        g_string_append_printf(out, "| %s | %.0f | %s | | | | | | | | | |\n", cell->name,
                               1e-6 * (double)cell->kv_bytes, cell->note);
        return;
    }
    g_string_append_printf(out, "| %s | %.0f | %.1f |", cell->name, 1e-6 * (double)cell->kv_bytes,
                           cell->floor_us);
    put_route(out, line_at(cell, cell->pick[JUDGE_BEST]));
    put_route(out, line_at(cell, cell->pick[JUDGE_LEARNED]));
    put_route(out, line_at(cell, cell->best_peer));
    put_route(out, line_at(cell, cell->best_default));
    put_route(out, line_at(cell, cell->best_tc));
    put_ratio(out, ratio(cell, OF_BEST, JUDGE_LEARNED));
    put_ratio(out, ratio(cell, OF_DEFAULT, JUDGE_LEARNED));
    put_ratio(out, ratio(cell, OF_ALL, JUDGE_LEARNED));
    const JudgeLine *ours = line_at(cell, cell->pick_wall[JUDGE_LEARNED]),
                    *peer = line_at(cell, cell->best_wall_peer);
    if (ours == NULL)
        ours = line_at(cell, cell->pick_wall[JUDGE_BEST]);
    if (ours != NULL && peer != NULL)
        g_string_append_printf(out, " %.1f %s / %.1f %s |", ours->wall_us, ours->route.label,
                               peer->wall_us, peer->route.label);
    else
        g_string_append(out, " - |");
    g_string_append_c(out, '\n');
}

void bench_judge_cells(const BenchJudge *self, GString *out)
{
    g_string_append(out,
                    "| cell | MB | floor | best of ours | learned takes | best peer | best "
                    "default | flashinfer-tc | vs best | vs default | with peers | wall ours / "
                    "peer |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (guint i = 0; i < self->cells->len; i++)
        cell_line(self->cells->pdata[i], out);
}

/* ", wall 12.0 us" of ours, "   wall 14.0 us  1.17" of a peer's; a bench --kernel-only has none. */
static void put_wall(GString *out, const JudgeLine *line, const JudgeLine *ours)
{
    const gboolean timed = line != NULL && line->wall_us > 0;
    if (timed && ours == NULL)
        g_string_append_printf(out, ", wall %.1f us", line->wall_us);
    else if (timed && ours->wall_us > 0)
        g_string_append_printf(out, "   wall %8.1f us %6.2f", line->wall_us,
                               line->wall_us / ours->wall_us);
    g_string_append_c(out, '\n');
}

void bench_judge_peers(const BenchJudge *self, JudgePick pick, GString *out)
{
    g_string_append_printf(out,
                           "Kernel time over that of %s, and wall time (plan each step) over its "
                           "wall time.\n\n",
                           judge_pick_names[pick]);
    for (guint i = 0; i < self->cells->len; i++) {
        const JudgeCell *cell = self->cells->pdata[i];
        const JudgeLine *ours = line_at(cell, cell->pick[pick]),
                        *wall = line_at(cell, cell->pick_wall[pick]);
        if (ours == NULL)
            continue;
        g_string_append_printf(out, "%s%s: %s %.1f us", i > 0 ? "\n" : "", cell->name,
                               ours->route.label, ours->kernel_us);
        put_wall(out, wall, NULL);
        for (guint k = 0; k < cell->lines->len; k++) {
            const JudgeLine *line = &g_array_index(cell->lines, JudgeLine, k);
            if (line->route.ops->kind == ROUTE_BUILTIN)
                continue;
            if (line->note != NULL)
                g_string_append_printf(out, "  %-26s n/a: %s\n", line->route.label, line->note);
            else {
                g_string_append_printf(out, "  %-26s %8.1f us %6.2f", line->route.label,
                                       line->kernel_us, line->kernel_us / ours->kernel_us);
                put_wall(out, line, wall);
            }
        }
    }
}

/* --- CSV --- */

static void csv_number(FILE *f, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    fputc(',', f);
    if (value > 0)
        fputs(g_ascii_formatd(text, sizeof text, "%.3f", value), f);
}

static void csv_route(FILE *f, const JudgeLine *line)
{
    fprintf(f, ",%s", line != NULL ? line->route.label : "");
    csv_number(f, line != NULL ? line->kernel_us : -1);
    csv_number(f, line != NULL ? line->wall_us : -1);
}

gboolean bench_judge_csv(const BenchJudge *self, OutFile *csv, GError **error)
{
    FILE *f = out_file_stream(csv);
    static const char *const who[] = {
        "best_ours",          "cost",           "learned",          "cost_with_peers",
        "learned_with_peers", "best_wall_ours", "learned_for_wall", "best_peer",
        "best_default",       "flashinfer_tc",  "best_wall_peer"};
    fputs("cell,rows,kv_bytes,floor_us,empty_us", f);
    for (guint i = 0; i < G_N_ELEMENTS(who); i++)
        fprintf(f, ",%s,%s_us,%s_wall_us", who[i], who[i], who[i]);
    fputc('\n', f);
    for (guint i = 0; i < self->cells->len; i++) {
        const JudgeCell *c = self->cells->pdata[i];
        const gint at[] = {c->pick[JUDGE_BEST],
                           c->pick[JUDGE_COST],
                           c->pick[JUDGE_LEARNED],
                           c->pick_with_peers[JUDGE_COST],
                           c->pick_with_peers[JUDGE_LEARNED],
                           c->pick_wall[JUDGE_BEST],
                           c->pick_wall[JUDGE_LEARNED],
                           c->best_peer,
                           c->best_default,
                           c->best_tc,
                           c->best_wall_peer};
        fprintf(f, "%s,%d,%" G_GINT64_FORMAT, c->name, c->cell.rows, c->kv_bytes);
        csv_number(f, c->floor_us);
        csv_number(f, c->empty_us);
        for (guint k = 0; k < G_N_ELEMENTS(at); k++)
            csv_route(f, line_at(c, at[k]));
        fputc('\n', f);
    }
    return out_file_ok(csv, error);
}
