#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "replay/bench.h"

const char *const bench_families[] = {"equal",  "bimodal", "uniform", "zipf",
                                      "ragged", "spike",   NULL};

enum { MAX_ROWS = 4096, MAX_CONTEXT = 1 << 24, MAX_CELLS = 100000 };

/* The values of one cell set, key by key. */
typedef struct Grid {
    GArray *len;   /* gint32: see parse_len */
    GArray *rows;  /* gint32 */
    GArray *heads; /* gint32: q << 16 | kv */
    GArray *dim, *page, *dtype, *layout;
} Grid;

static void grid_clear(Grid *g)
{
    GArray *all[] = {g->len, g->rows, g->heads, g->dim, g->page, g->dtype, g->layout};
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        if (all[i] != NULL)
            g_array_unref(all[i]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Grid, grid_clear)

static gboolean bad(GError **error, const char *key, const char *text, const char *expected)
{
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "cells: %s=%s: expected %s", key, text, expected);
    return FALSE;
}

static gboolean count_in(const char *text, gint64 min, gint64 max, gint32 *ret)
{
    gint64 value;
    if (!kv_parse_count(text, &value) || value < min || value > max)
        return FALSE;
    *ret = (gint32)value;
    return TRUE;
}

/* 2K is 2048 here, as contexts are told. */
static gboolean parse_context(const char *text, gint32 *ret)
{
    const gsize n = strlen(text);
    if (n > 1 && (text[n - 1] == 'k' || text[n - 1] == 'K')) {
        g_autofree char *digits = g_strndup(text, n - 1);
        gint32 thousands;
        if (!count_in(digits, 1, MAX_CONTEXT / 1024, &thousands))
            return FALSE;
        *ret = thousands * 1024;
        return TRUE;
    }
    return count_in(text, 1, MAX_CONTEXT, ret);
}

/* A length of Grid: the family above CONTEXT_BITS, the context below. */
enum { CONTEXT_BITS = 25 };

static gboolean parse_len(const char *text, gint32 *ret)
{
    for (gint32 i = 1; bench_families[i] != NULL; i++) {
        gint32 context = 0;
        const gsize n = strlen(bench_families[i]);
        const gboolean asks = i == BENCH_RAGGED || i == BENCH_SPIKE;
        if (strncmp(text, bench_families[i], n) != 0 || text[n] != (asks ? ':' : '\0'))
            continue;
        if (asks && !parse_context(text + n + 1, &context))
            return FALSE;
        *ret = i << CONTEXT_BITS | context;
        return TRUE;
    }
    return parse_context(text, ret);
}

static gboolean parse_heads(const char *text, gint32 *ret)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", -1);
    gint32 q, kv;
    if (g_strv_length(parts) != 2 || !count_in(parts[0], 1, 1024, &q) ||
        !count_in(parts[1], 1, 1024, &kv) || q % kv != 0)
        return FALSE;
    *ret = q << 16 | kv;
    return TRUE;
}

static gboolean parse_value(Grid *g, const char *key, const char *text, GArray **ret_to,
                            gint32 *ret, GError **error)
{
    if (strcmp(key, "len") == 0) {
        *ret_to = g->len;
        return parse_len(text, ret) ||
               bad(error, key, text,
                   "a number of tokens (8k), bimodal, uniform, zipf, ragged:8k or "
                   "spike:8k");
    }
    if (strcmp(key, "rows") == 0) {
        *ret_to = g->rows;
        return count_in(text, 1, MAX_ROWS, ret) || bad(error, key, text, "1 to 4096");
    }
    if (strcmp(key, "heads") == 0) {
        *ret_to = g->heads;
        return parse_heads(text, ret) ||
               bad(error, key, text, "query heads:KV heads, the first a multiple of the second");
    }
    if (strcmp(key, "dim") == 0 || strcmp(key, "page") == 0) {
        *ret_to = key[0] == 'd' ? g->dim : g->page;
        return count_in(text, 1, 1024, ret) || bad(error, key, text, "a number");
    }
    if (strcmp(key, "dtype") == 0) {
        *ret_to = g->dtype;
        *ret = strcmp(text, "bf16") == 0 ? ATTN_BF16 : ATTN_F16;
        return *ret == ATTN_BF16 || strcmp(text, "fp16") == 0 ||
               bad(error, key, text, "fp16 or bf16");
    }
    if (strcmp(key, "layout") == 0) {
        *ret_to = g->layout;
        *ret = strcmp(text, "nhd") == 0 ? ATTN_NHD : ATTN_HND;
        return *ret == ATTN_NHD || strcmp(text, "hnd") == 0 || bad(error, key, text, "hnd or nhd");
    }
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                "cells: unknown key %s: expected len, rows, heads, dim, page, dtype or layout",
                key);
    return FALSE;
}

static GArray *array_new(void)
{
    return g_array_new(FALSE, FALSE, sizeof(gint32));
}

static gboolean parse_grid(Grid *g, const char *text, GError **error)
{
    *g = (Grid){array_new(), array_new(), array_new(), array_new(),
                array_new(), array_new(), array_new()};
    gboolean given = FALSE;
    g_auto(GStrv) settings = g_strsplit(text, ";", -1);
    for (guint i = 0; settings[i] != NULL; i++) {
        char *setting = g_strstrip(settings[i]), *equal = strchr(setting, '=');
        if (setting[0] == '\0')
            continue;
        if (equal == NULL) {
            g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                        "cells: %s: expected key=value[,value...];... or quick, full, published or "
                        "calibration",
                        setting);
            return FALSE;
        }
        *equal = '\0';
        g_auto(GStrv) values = g_strsplit(equal + 1, ",", -1);
        for (guint k = 0; k == 0 || values[k] != NULL; k++) { /* none at all is an empty one */
            GArray *to;
            gint32 value;
            if (!parse_value(g, g_strstrip(setting), values[k] != NULL ? g_strstrip(values[k]) : "",
                             &to, &value, error))
                return FALSE;
            for (guint have = 0; have < to->len; have++)
                if (g_array_index(to, gint32, have) == value)
                    return bad(error, setting, values[k], "each value once");
            g_array_append_val(to, value);
            given = TRUE;
        }
    }
    if (!given) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "cells: empty: expected key=value[,value...];... or quick, full, published or "
                    "calibration");
        return FALSE;
    }
    const gint32 defaults[] = {8192, 8, 32 << 16 | 8, 128, 16, ATTN_F16, ATTN_HND};
    GArray *all[] = {g->len, g->rows, g->heads, g->dim, g->page, g->dtype, g->layout};
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        if (all[i]->len == 0)
            g_array_append_val(all[i], defaults[i]);
    return TRUE;
}

gboolean bench_cell_check(const BenchCell *cell)
{
    const gboolean by_context =
        cell->family == BENCH_EQUAL || cell->family == BENCH_RAGGED || cell->family == BENCH_SPIKE;
    return cell->rows >= 1 && cell->rows <= MAX_ROWS && cell->context >= (by_context ? 1 : 0) &&
           cell->context <= MAX_CONTEXT && attn_shape_check(&cell->shape) == ATTN_OK;
}

static gboolean add_cell(BenchConfig *config, const Grid *g, gsize index, GError **error)
{
    const GArray *all[] = {g->rows, g->len, g->page, g->dtype, g->layout, g->dim, g->heads};
    gint32 v[G_N_ELEMENTS(all)]; /* rows change fastest, shapes slowest */
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        v[i] = g_array_index(all[i], gint32, index % all[i]->len);
        index /= all[i]->len;
    }
    const BenchCell cell = {
        .family = (BenchFamily)(v[1] >> CONTEXT_BITS),
        .context = v[1] & ((1 << CONTEXT_BITS) - 1),
        .rows = v[0],
        .shape = {.q_heads = v[6] >> 16,
                  .kv_heads = v[6] & 0xffff,
                  .head_dim = v[5],
                  .page_size = v[2],
                  .dtype = (AttnDtype)v[3],
                  .layout = (AttnLayout)v[4]},
    };
    if (!bench_cell_check(&cell)) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "cells: %d:%d heads, dim %d, page %d: group sizes 1 to 16, dims 64, 128 and "
                    "256, pages that are powers of two up to 128",
                    cell.shape.q_heads, cell.shape.kv_heads, cell.shape.head_dim,
                    cell.shape.page_size);
        return FALSE;
    }
    g_array_append_val(config->cells, cell);
    return TRUE;
}

#define GRID "len=2k,8k,32k,128k,bimodal,uniform,zipf;rows=1,2,4,8,16,32,64"
static const char *const quick[] = {"len=2k,8k,bimodal,zipf;rows=1,4,8", NULL};
static const char *const full[] = {GRID, GRID ";heads=32:32", GRID ";heads=32:4", GRID ";dim=64",
                                   NULL};
static const char *const published[] = {"len=8k,16k,32k,64k,128k;rows=1", "len=32k,bimodal;rows=4",
                                        "len=bimodal,uniform,zipf;rows=8", NULL};
/* Other cells than those, what matters most first, so that a time limit leaves out the least: every
 * shape coarsely, with rows that fill a card's processors well (15, 31) and badly; then the usual
 * shape densely, short steps above all, which differ most; then more of the other shapes. None
 * stands twice: with one row `ragged` and `spike` are equal lengths. */
#define COARSE "len=384,3k,12k,ragged:6k,spike:24k;rows=1,3,6,15,31,60"
#define DRAWN "len=bimodal,uniform,zipf;rows=3,6,15,31,60"
#define LONG "len=40k,96k;rows=1,3,6,15,31"
#define MORE "len=96,700,1300,5k,20k;rows=3,10,20,48,96"
static const char *const calibration[] = {
    COARSE,
    DRAWN,
    LONG,
    COARSE ";dim=64",
    DRAWN ";dim=64",
    LONG ";dim=64",
    COARSE ";heads=32:4",
    DRAWN ";heads=32:4",
    LONG ";heads=32:4",
    COARSE ";heads=32:32",
    DRAWN ";heads=32:32",
    LONG ";heads=32:32",
    "len=3k,12k,40k;rows=2,4,8;heads=32:32", /* rows that fill or halve a card, by heads */
    "len=3k,12k,40k;rows=16,32;dim=64",
    "len=3k,12k,40k;rows=32,64;heads=32:4",
    "len=1500,3k,6k,12k,24k,40k;rows=2,4,8,16",     /* rows whose parts are one a worker */
    "len=333,1111,2777,8199,21111;rows=1,2,4,8,16", /* lengths as logs have them: no round number */
    "len=3k,12k,40k;rows=2,4,8;dim=64",
    "len=3k,12k,40k;rows=2,4,8,16;heads=32:4",
    "len=96,300,700,1300,2500,5k;rows=1,3,5,7,10,14,20,28,48,96,192",
    "len=48,180;rows=5,14,28,96",
    "len=ragged:300,ragged:700,ragged:1500,ragged:3k,spike:700,spike:1500,spike:6k;"
    "rows=3,5,7,10,14,20,28,48,96,192",
    "len=10k,20k,ragged:12k,ragged:24k,ragged:96k,spike:96k;rows=3,5,7,12,24,48",
    MORE ";dim=64",
    MORE ";heads=32:4",
    MORE ";heads=32:32",
    NULL,
};
static const struct {
    const char *name;
    const char *const *cells;
} sets[] = {
    {"quick", quick}, {"full", full}, {"published", published}, {"calibration", calibration}};

gboolean bench_add_cells(BenchConfig *config, const char *text, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(sets); i++) {
        if (strcmp(text, sets[i].name) != 0)
            continue;
        for (const char *const *cells = sets[i].cells; *cells != NULL; cells++)
            if (!bench_add_cells(config, *cells, error))
                return FALSE;
        return TRUE;
    }
    g_auto(Grid) grid = {0};
    if (!parse_grid(&grid, text, error))
        return FALSE;
    const gsize n = (gsize)grid.len->len * grid.rows->len * grid.heads->len * grid.dim->len *
                    grid.page->len * grid.dtype->len * grid.layout->len;
    if (n + config->cells->len > MAX_CELLS) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "cells: more than %d", MAX_CELLS);
        return FALSE;
    }
    for (gsize i = 0; i < n; i++)
        if (!add_cell(config, &grid, i, error))
            return FALSE;
    return TRUE;
}

char *bench_cell_name(const BenchCell *cell)
{
    const AttnShape *s = &cell->shape;
    GString *name = g_string_new(NULL);
    if (cell->family != BENCH_EQUAL)
        g_string_append(name, bench_families[cell->family]);
    if (cell->context > 0 && cell->context % 1024 == 0)
        g_string_append_printf(name, "%dK", cell->context / 1024);
    else if (cell->context > 0)
        g_string_append_printf(name, "%d", cell->context);
    g_string_append_printf(name, "_B%d", cell->rows);
    if (s->q_heads != 32)
        g_string_append_printf(name, "_H%dx%d", s->q_heads, s->kv_heads);
    else if (s->kv_heads != 8)
        g_string_append_printf(name, "_G%d", attn_group(s));
    if (s->head_dim != 128)
        g_string_append_printf(name, "_d%d", s->head_dim);
    if (s->page_size != 16)
        g_string_append_printf(name, "_p%d", s->page_size);
    if (s->dtype != ATTN_F16)
        g_string_append(name, "_bf16");
    if (s->layout != ATTN_HND)
        g_string_append(name, "_nhd");
    return g_string_free(name, FALSE);
}

/* The lengths of the published batches (arXiv 2606.26666), drawn from our own stream. */
static gint32 draw(const BenchCell *cell, RngStream *rng, gint32 row)
{
    const BenchFamily family = cell->family;
    if (family == BENCH_EQUAL || ((family == BENCH_RAGGED || family == BENCH_SPIKE) && row == 0))
        return cell->context;
    if (family == BENCH_SPIKE)
        return MAX(cell->context / 16, 1);
    if (family == BENCH_RAGGED)
        return 1 + (gint32)rng_below(rng, (guint64)cell->context);
    if (family == BENCH_BIMODAL)
        return row % 4 == 0 ? 24576 + (gint32)rng_below(rng, 40961)
                            : 2048 + (gint32)rng_below(rng, 10241);
    if (family == BENCH_UNIFORM)
        return 4096 + (gint32)rng_below(rng, 28673);
    const double rank = 1 + (double)rng_below(rng, 32);
    const gint32 len = (gint32)(2048 + 65536 / sqrt(rank)) + (gint32)rng_below(rng, 1025) - 512;
    return MAX(len, 1024);
}

void bench_cell_lens(const BenchCell *cell, guint64 seed, gint32 *lens)
{
    RngStream rng;
    rng_init(&rng, seed, RNG_LENGTHS, (guint64)cell->family, (guint32)cell->rows);
    for (gint32 r = 0; r < cell->rows; r++)
        lens[r] = draw(cell, &rng, r);
}
