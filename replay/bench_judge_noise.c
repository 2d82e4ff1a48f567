/* How far a bench's times can be trusted, from the bench itself: over equal rows several built-in
 * routes run one and the same plan, so that their times differ by nothing but the measurement; and
 * which cells are below what was asked with peers as routes, with the route that was fastest there.
 */
#include <string.h>

#include "base/stats.h"
#include "replay/bench_judge.h"

#define ASKED 0.99

static const JudgeLine *line_of(const JudgeCell *cell, guint i)
{
    return &g_array_index(cell->lines, JudgeLine, i);
}

static gboolean same_plan(const JudgeLine *a, const JudgeLine *b)
{
    const AttnCounts *x = &a->counts, *y = &b->counts;
    return a->route.ops->kind == ROUTE_BUILTIN && b->route.ops->kind == ROUTE_BUILTIN &&
           a->kernel_us > 0 && b->kernel_us > 0 && a->workers == b->workers &&
           x->launches == y->launches && x->merge_launches == y->merge_launches &&
           x->tasks == y->tasks && x->grid_tasks == y->grid_tasks &&
           x->longest_tokens == y->longest_tokens && x->merge_state_bytes == y->merge_state_bytes;
}

/* Times over the least of their plan's in the cell, less 1, of cells from `from` to `to` us. */
static void spreads(const BenchJudge *self, double from, double to, GArray *ret)
{
    for (guint c = 0; c < self->cells->len; c++) {
        const JudgeCell *cell = self->cells->pdata[c];
        for (guint i = 0; i < cell->lines->len; i++) {
            double least = line_of(cell, i)->kernel_us;
            guint same = 0;
            for (guint k = 0; k < cell->lines->len; k++)
                if (k != i && same_plan(line_of(cell, i), line_of(cell, k))) {
                    least = MIN(least, line_of(cell, k)->kernel_us);
                    same++;
                }
            const double over = line_of(cell, i)->kernel_us / least - 1;
            if (same > 0 && over > 0 && least >= from && least < to)
                g_array_append_val(ret, over);
        }
    }
}

static void put_spreads(const BenchJudge *self, GString *out)
{
    static const double border[] = {0, 30, 100, 500, 1e9};
    static const char *const name[] = {"below 30 us", "30 to 100", "100 to 500", "from 500 us"};
    g_string_append(out, "One plan under several routes' names: a time over the least of them.\n\n"
                         "| time | times | median | 90 % | worst |\n|---|---|---|---|---|\n");
    for (guint b = 0; b < G_N_ELEMENTS(name); b++) {
        g_autoptr(GArray) over = g_array_new(FALSE, FALSE, sizeof(double));
        spreads(self, border[b], border[b + 1], over);
        double *x = (double *)(void *)over->data;
        if (over->len == 0)
            continue;
        sort_doubles(x, over->len);
        g_string_append_printf(out, "| %s | %u | %.1f %% | %.1f %% | %.1f %% |\n", name[b],
                               over->len, 100 * quantile_linear(x, over->len, 0.5),
                               100 * quantile_linear(x, over->len, 0.9), 100 * x[over->len - 1]);
    }
}

static void put_below(const BenchJudge *self, GString *out)
{
    guint below = 0, same = 0;
    g_string_append_printf(out,
                           "\nCells below %.2f with peers as routes:\n\n| cell | best over taken | "
                           "taken us | best us | |\n|---|---|---|---|---|\n",
                           ASKED);
    for (guint c = 0; c < self->cells->len; c++) {
        const JudgeCell *cell = self->cells->pdata[c];
        const gint at[] = {cell->pick_with_peers[JUDGE_LEARNED], cell->pick_with_peers[JUDGE_BEST]};
        if (at[0] < 0 || at[1] < 0)
            continue;
        const JudgeLine *taken = line_of(cell, (guint)at[0]), *best = line_of(cell, (guint)at[1]);
        if (best->kernel_us >= ASKED * taken->kernel_us)
            continue;
        const gboolean one = same_plan(taken, best);
        below++;
        same += one;
        g_string_append_printf(out, "| %s | %.3f | %.1f %s | %.1f %s | %s |\n", cell->name,
                               best->kernel_us / taken->kernel_us, taken->kernel_us,
                               taken->route.label, best->kernel_us, best->route.label,
                               one ? "the same plan" : "");
    }
    g_string_append_printf(out,
                           "\n%u of %u cells; in %u of them the best ran the plan that was "
                           "taken.\n",
                           below, self->cells->len, same);
}

void bench_judge_noise(const BenchJudge *self, GString *out)
{
    put_spreads(self, out);
    put_below(self, out);
}
