#include "sim/sweep.h"
#include "sim/sweep_journal.h"
#include "sim/sweep_ranks.h"
#include "base/error.h"
#include "base/outfile.h"

#include <glib/gstdio.h>
#include <string.h>

typedef struct Sweep {
    const SweepConfig *config;
    SweepCell cell;
    gpointer data;
    Progress *progress;
    SweepRanks *ranks;
    SweepJournal *journal;
    char *digest;
    guint64 cells;
    char **lines; /* by cell; done before this run, or (rank 0, at the end) by anybody */
    GMutex lock;
    guint64 done;
    gint stop; /* atomic */
    GError *error;
} Sweep;

static char *make_digest(const SweepConfig *config)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    for (guint i = 0; i < config->grid->axes->len; i++) {
        const SweepAxis *axis = &g_array_index(config->grid->axes, SweepAxis, i);
        g_checksum_update(sum, (const guchar *)axis->key, (gssize)strlen(axis->key) + 1);
        for (guint k = 0; k < axis->values->len; k++) {
            const char *value = axis->values->pdata[k];
            g_checksum_update(sum, (const guchar *)value, (gssize)strlen(value) + 1);
        }
        g_checksum_update(sum, (const guchar *)"", 1);
    }
    const char *rest[] = {config->figures, config->scenario ? config->scenario : ""};
    for (gsize i = 0; i < G_N_ELEMENTS(rest); i++)
        g_checksum_update(sum, (const guchar *)rest[i], (gssize)strlen(rest[i]) + 1);
    return g_strdup(g_checksum_get_string(sum));
}

static char *journal_path(const Sweep *s, guint rank)
{
    return g_strdup_printf("%s.journal.%u", s->config->path, rank);
}

/* Every journal there is: those of ranks that this job no longer has, too. */
static void each_journal(const Sweep *s, void (*use)(const Sweep *s, const char *path))
{
    g_autofree char *folder = g_path_get_dirname(s->config->path);
    g_autofree char *base = g_path_get_basename(s->config->path);
    g_autofree char *prefix = g_strconcat(base, ".journal.", NULL);
    GDir *dir = g_dir_open(folder, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        if (g_str_has_prefix(name, prefix))
            use(s, path);
    }
    if (dir)
        g_dir_close(dir);
}

static void read_journal(const Sweep *s, const char *path)
{
    sweep_journal_read(path, s->digest, s->lines, s->cells);
}

static void remove_journal(const Sweep *s, const char *path)
{
    g_remove(path);
}

static gboolean run_cell(Sweep *s, guint64 cell, GError **error)
{
    g_autofree const char **values = g_new0(const char *, s->config->grid->axes->len + 1);
    sweep_grid_cell(s->config->grid, cell, values);
    if (!progress_check(s->progress, error))
        return FALSE;
    g_autofree char *text = s->cell(s->data, cell, values, error);
    if (text == NULL || !sweep_journal_add(s->journal, cell, text, error))
        return FALSE;
    g_mutex_lock(&s->lock);
    progress_tick(s->progress, ++s->done);
    g_mutex_unlock(&s->lock);
    return TRUE;
}

static gpointer work(gpointer data)
{
    Sweep *s = data;
    while (!g_atomic_int_get(&s->stop)) {
        guint64 cell = sweep_ranks_take(s->ranks);
        if (cell >= s->cells)
            return NULL;
        GError *error = NULL;
        if (s->lines[cell] || run_cell(s, cell, &error))
            continue;
        g_atomic_int_set(&s->stop, 1);
        g_mutex_lock(&s->lock);
        if (s->error == NULL)
            g_propagate_error(&s->error, error);
        else
            g_error_free(error);
        g_mutex_unlock(&s->lock);
    }
    return NULL;
}

static void run_cells(Sweep *s)
{
    guint threads = s->config->threads ? s->config->threads : g_get_num_processors();
    threads = (guint)MIN((guint64)MIN(threads, 1024), MAX(s->cells, 1));
    GThread **pool = g_new0(GThread *, threads);
    for (guint i = 1; i < threads; i++)
        pool[i] = g_thread_new("sweep", work, s);
    work(s);
    for (guint i = 1; i < threads; i++)
        g_thread_join(pool[i]);
    g_free(pool);
}

static void print_field(FILE *f, const char *text)
{
    if (strpbrk(text, ",\"\n") == NULL) {
        fputs(text, f);
        return;
    }
    fputc('"', f);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', f);
        fputc(*text, f);
    }
    fputc('"', f);
}

static gboolean write_csv(Sweep *s, GError **error)
{
    const SweepGrid *grid = s->config->grid;
    guint n = grid->axes->len;
    g_autoptr(OutFile) out = out_file_new(s->config->path, error);
    if (out == NULL)
        return FALSE;
    FILE *f = out_file_stream(out);
    for (guint i = 0; i < n; i++) {
        print_field(f, g_array_index(grid->axes, SweepAxis, i).key);
        fputc(',', f);
    }
    fprintf(f, "%s\n", s->config->figures);
    g_autofree const char **values = g_new0(const char *, n + 1);
    for (guint64 cell = 0; cell < s->cells; cell++) {
        sweep_grid_cell(grid, cell, values);
        for (guint i = 0; i < n; i++) {
            print_field(f, values[i]);
            fputc(',', f);
        }
        fprintf(f, "%s\n", s->lines[cell]);
    }
    return out_file_commit(out, error);
}

static gboolean gather(Sweep *s, GError **error)
{
    each_journal(s, read_journal);
    for (guint64 cell = 0; cell < s->cells; cell++) {
        if (s->lines[cell])
            continue;
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                    "sweep: cell %" G_GUINT64_FORMAT " is in no journal beside %s", cell,
                    s->config->path);
        return FALSE;
    }
    if (!write_csv(s, error))
        return FALSE;
    each_journal(s, remove_journal);
    return TRUE;
}

/* Between the barriers: everybody reads what is done, then everybody opens the own journal. */
static gboolean begin(Sweep *s, GError **error)
{
    guint rank = sweep_ranks_rank(s->ranks);
    if (s->config->resume)
        each_journal(s, read_journal);
    for (guint64 cell = 0; cell < s->cells; cell++)
        s->done += s->lines[cell] != NULL;
    sweep_ranks_agree(s->ranks, TRUE);
    if (!s->config->resume && rank == 0)
        each_journal(s, remove_journal);
    sweep_ranks_agree(s->ranks, TRUE);
    g_autofree char *path = journal_path(s, rank);
    s->journal = sweep_journal_open(path, s->digest, s->config->resume, error);
    return s->journal != NULL;
}

gboolean sweep_run(const SweepConfig *config, SweepCell cell, gpointer data, Progress *progress,
                   GError **error)
{
    Sweep s = {.config = config, .cell = cell, .data = data, .progress = progress};
    s.ranks = sweep_ranks_open();
    s.digest = make_digest(config);
    s.cells = sweep_grid_cells(config->grid);
    s.lines = g_new0(char *, s.cells + 1);
    g_mutex_init(&s.lock);
    progress_begin(progress, "sweep", s.cells);
    if (begin(&s, &s.error))
        run_cells(&s);
    gboolean ok = sweep_ranks_agree(s.ranks, s.error == NULL);
    sweep_journal_close(s.journal);
    if (ok && sweep_ranks_rank(s.ranks) == 0)
        ok = gather(&s, &s.error);
    ok = sweep_ranks_agree(s.ranks, ok);
    if (!ok && s.error == NULL)
        g_set_error(&s.error, KV_ERROR, KV_ERROR_MACHINE, "sweep: another rank failed");
    progress_end(progress);
    for (guint64 i = 0; i < s.cells; i++)
        g_free(s.lines[i]);
    g_free(s.lines);
    g_free(s.digest);
    g_mutex_clear(&s.lock);
    sweep_ranks_close(s.ranks);
    if (s.error)
        g_propagate_error(error, s.error);
    return ok;
}
