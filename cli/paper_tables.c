/* counters.csv: every published row, the held-out seeds and the calibration seed, counted. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "cli/paper_run.h"

/* --- CSV --- */

gboolean paper_csv_open(PaperCsv *csv, const PaperRun *run, const char *file, const char *header,
                        GError **error)
{
    g_autofree char *path = g_build_filename(run->out, file, NULL);
    *csv = (PaperCsv){.out = out_file_new(path, error), .dear = run->executes};
    if (csv->out != NULL)
        fprintf(out_file_stream(csv->out), "%s\n", header);
    return csv->out != NULL;
}

static FILE *next_field(PaperCsv *csv)
{
    FILE *f = out_file_stream(csv->out);
    if (csv->begun)
        fputc(',', f);
    csv->begun = TRUE;
    return f;
}

void paper_csv_text(PaperCsv *csv, const char *text)
{
    FILE *f = next_field(csv);
    if (text == NULL)
        return;
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, f);
        return;
    }
    fputc('"', f);
    for (const char *c = text; *c != '\0'; c++) /* a line is a row: a reason may have several */
        fputs(*c == '"' ? "\"\"" : (char[]){*c == '\n' || *c == '\r' ? ' ' : *c, '\0'}, f);
    fputc('"', f);
}

void paper_csv_int(PaperCsv *csv, gint64 value)
{
    fprintf(next_field(csv), "%" G_GINT64_FORMAT, value);
}

void paper_csv_real(PaperCsv *csv, double value, gint decimals)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE], format[16];
    FILE *f = next_field(csv);
    if (!isfinite(value))
        return;
    g_snprintf(format, sizeof format, decimals < 0 ? "%%.%de" : "%%.%df", ABS(decimals));
    fputs(g_ascii_formatd(text, sizeof text, format, value), f);
}

void paper_csv_end(PaperCsv *csv)
{
    fputc('\n', out_file_stream(csv->out));
    csv->begun = FALSE;
    csv->lines++;
}

gboolean paper_csv_close(PaperCsv *csv, gboolean ok, GError **error)
{
    ok = ok && out_file_commit(csv->out, error);
    if (!ok && csv->dear && csv->lines > 0)
        out_file_keep(csv->out);
    g_clear_pointer(&csv->out, out_file_free);
    return ok;
}

/* --- counters.csv --- */

static const char counters_header[] =
    "trace,max_active,seed,set,route,splits,requests,steps,physical_pages,mean_active,"
    "mean_exact_buckets,kv_mib_per_step,launches_per_step,merge_launches_per_step,tasks_per_step,"
    "cta_per_sm,merge_mib_per_step,published_pages,published_active,published_buckets,"
    "published_kv_mib,published_launches,published_cta_per_sm,published_merge_mib,"
    "published_merge_launches,match";

/* Published KV MiB leave out trailing zeros of three decimals, the others show all they have. */
static gboolean figures_match(const PaperCounters *c, const PaperPublished *p)
{
    return paper_prints_as((double)c->physical_pages, p->figure[0], 0) &&
           paper_prints_as(c->mean_active, p->figure[1], 1) &&
           paper_prints_as(c->mean_exact_buckets, p->figure[2], 1) &&
           paper_prints_as(c->kv_mib_per_step, p->figure[3], 3);
}

static gboolean route_matches(const PaperRouteCounts *r, const PaperPublishedRoute *p)
{
    const double value[] = {r->launches, r->tasks / PAPER_CARD_SMS, r->merge_mib,
                            r->merge_launches};
    for (guint i = 0; i < G_N_ELEMENTS(value); i++)
        if (!paper_prints_as(value[i], p->count[i], 0))
            return FALSE;
    return TRUE;
}

static void counters_line(PaperCsv *csv, const PaperExperiment *e, const PaperCounters *c,
                          const PaperRouteCounts *r)
{
    const PaperPublished *p = paper_published_find(e->trace, e->max_active, e->seed);
    const PaperPublishedRoute *route = paper_published_route(p, r->route);
    paper_csv_text(csv, e->trace);
    paper_csv_int(csv, e->max_active);
    paper_csv_int(csv, e->seed);
    paper_csv_text(csv, e->seed == PAPER_CALIBRATION ? "calibration" : "held out");
    paper_csv_text(csv, r->route);
    paper_csv_real(csv, r->s > 0 ? r->s : (double)NAN, 0);
    paper_csv_int(csv, e->requests);
    paper_csv_int(csv, (gint64)c->steps);
    paper_csv_int(csv, (gint64)c->physical_pages);
    paper_csv_real(csv, c->mean_active, 6);
    paper_csv_real(csv, c->mean_exact_buckets, 6);
    paper_csv_real(csv, c->kv_mib_per_step, 6);
    paper_csv_real(csv, r->launches, 4);
    paper_csv_real(csv, r->merge_launches, 4);
    paper_csv_real(csv, r->tasks, 4);
    paper_csv_real(csv, r->tasks / PAPER_CARD_SMS, 4);
    paper_csv_real(csv, r->merge_mib, 6);
    for (guint i = 0; i < 4; i++)
        paper_csv_text(csv, p != NULL ? p->figure[i] : NULL);
    for (guint i = 0; i < 4; i++)
        paper_csv_text(csv, route != NULL ? route->count[i] : NULL);
    const gboolean match = route != NULL && figures_match(c, p) && route_matches(r, route);
    paper_csv_text(csv, route == NULL ? NULL : match ? "yes" : "no");
    paper_csv_end(csv);
}

gboolean paper_write_counters(PaperRun *run, GError **error)
{
    PaperCsv csv;
    gboolean ok = paper_csv_open(&csv, run, "counters.csv", counters_header, error);
    if (!ok)
        return FALSE;
    for (const PaperPreset *p = paper_presets; ok && p->trace != NULL; p++)
        for (gint k = -1; ok && k < PAPER_HELD_OUT; k++) {
            PaperExperiment e;
            PaperCounters c;
            gboolean published;
            ok = paper_experiment_init(&e, p->trace, p->max_active, PAPER_FIRST_HELD_OUT + k,
                                       &published, error);
            if (!ok)
                break;
            ok = paper_counters(&e, &c, error) && progress_check(run->progress, error);
            for (guint i = 0; ok && i < PAPER_ROUTES; i++)
                counters_line(&csv, &e, &c, &c.route[i]);
            paper_experiment_clear(&e);
        }
    return paper_csv_close(&csv, ok, error);
}
