/* The CSV (columns of the kernel tables under docs/results, then tables_us, plan_bytes, note), and
 * the table at the end.
 */
#include "peers_lab.h"

#include <stdlib.h>
#include <string.h>

void lab_write_header(FILE *csv)
{
    fprintf(csv, "gpu,driver,toolkit,commit,date,cell,route,rows,q_heads,kv_heads,"
                 "head_dim,page_size,dtype,layout,kv_bytes,floor_us,kernel_us,graph_us,"
                 "plan_us,wall_us,gb_per_s,launches,merge_state_bytes,max_abs_err,"
                 "mean_abs_err,repeats,tables_us,plan_bytes,note\n");
}

/* --- output --- */

static void number(FILE *f, double x, const char *format)
{
    fputc(',', f);
    if (x > 0)
        fprintf(f, format, x);
}

void lab_write_lane(const Lab *lab, const Cell *c, const Batch *b, const Lane *l)
{
    FILE *f = lab->csv;
    if (f == NULL)
        return;
    fprintf(f, "%s,%s,%d.%d,%s,%s,%s_B%d,%s,%d,%d,%d,%d,16,fp16,HND,%.0f,%.2f", lab->gpu,
            lab->driver, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10, lab->commit, lab->date,
            c->family, c->rows, l->entry->label, c->rows, c->q_heads, c->kv_heads, c->head_dim,
            b->kv_bytes, 5 + b->kv_bytes / lab->rate);
    number(f, l->runs ? l->kernel_us : 0, "%.2f");
    number(f, l->runs ? l->graph_us : 0, "%.2f");
    number(f, l->runs ? l->plan_us : 0, "%.2f");
    number(f, l->runs ? l->wall_us : 0, "%.2f");
    number(f, l->runs ? 1e-3 * b->kv_bytes / l->kernel_us : 0, "%.1f");
    number(f, l->runs ? l->launches : 0, "%.0f");
    fprintf(f, ",%lld",
            l->cuda != NULL && l->runs ? (long long)l->plan.counts.merge_state_bytes : 0LL);
    if (l->errors.values > 0)
        fprintf(f, ",%.3g,%.3g", l->errors.max_abs, l->errors.mean_abs);
    else
        fprintf(f, ",,");
    fprintf(f, ",%d", lab->rounds);
    number(f, l->runs ? l->tables_us : 0, "%.1f");
    fprintf(f, ",%lld,%s\n", l->plan_bytes, l->runs ? "" : l->note);
    fflush(f);
}

/* Best of ours, of all peers and settings, of the peers' defaults, of flashinfer-tc's. */
void lab_summarise(Lab *lab, const Cell *c, const Batch *b)
{
    const Lane *ours = NULL, *best = NULL, *plain = NULL, *tc = NULL;
    double wall = 1e30, our_wall = 1e30;
    for (int k = 0; k < N_ENTRIES; k++) {
        const Lane *l = &lab->lane[k];
        if (!l->runs)
            continue;
        const int mine = l->entry->peer == NULL;
        const Lane **to = mine ? &ours : &best;
        if (*to == NULL || l->kernel_us < (*to)->kernel_us)
            *to = l;
        if (l->entry->is_default && (plain == NULL || l->kernel_us < plain->kernel_us))
            plain = l;
        if (strcmp(l->entry->label, "flashinfer-tc") == 0)
            tc = l;
        double *w = mine ? &our_wall : &wall;
        *w = l->wall_us > 0 && l->wall_us < *w ? l->wall_us : *w;
    }
    if (ours == NULL || best == NULL || plain == NULL || lab->n_summary == 64)
        return;
    const double floor = 5 + b->kv_bytes / lab->rate;
    char name[32];
    snprintf(name, sizeof name, "%s_B%d", c->family, c->rows);
    snprintf(lab->summary[lab->n_summary++], sizeof lab->summary[0],
             "%-15s %7.0f %7.1f %7.1f %-10.10s %7.1f %-22.22s %5.2f %5.2f %5.2f wall %5.2f", name,
             b->kv_bytes * 1e-6, floor, ours->kernel_us, ours->entry->label, best->kernel_us,
             best->entry->label, best->kernel_us / ours->kernel_us,
             plain->kernel_us / ours->kernel_us, tc ? tc->kernel_us / ours->kernel_us : 0,
             wall / our_wall);
}
