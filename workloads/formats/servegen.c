/* ServeGen client windows (Apache-2.0): statistics of one client, from which requests are drawn.
 *
 * chunk-N-trace.csv, no header: window start (s), rate (requests/s), CV of gaps,
 * Gamma|Weibull|empty, shape, scale. In a window of rate r > 0 gaps are drawn from the named law
 * with the file's shape and scaled to mean 1/r (empty law: exponential); the process begins anew in
 * each window, half a mean gap in. A window lasts to the next one's start. chunk-N-dataset.json
 * beside it (dataset=FILE for another): probabilities by token count, as Python dicts in strings,
 * from each start of 21,600 s on; a time without data uses the last table before it, else the first
 * after. Prompt = input_tokens, or text_tokens + sum over image, audio and video of count x tokens;
 * output = output_tokens. Without that file lengths are unknown. The seed decides all draws.
 * Memory: the tables.
 */
#include "workloads/format.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "workloads/field.h"
#include "workloads/formats/formats.h"
#include "workloads/json_input.h"
#include "workloads/table.h"

typedef struct ServeConfig {
    char *dataset;
} ServeConfig;

/* A law of token counts: cumulative probabilities. */
typedef struct Law {
    GArray *tokens;     /* gint64 */
    GArray *cumulative; /* double */
} Law;

enum { INPUT, TEXT, OUTPUT, IMAGE, IMAGES, AUDIO, AUDIOS, VIDEO, VIDEOS, N_LAWS };
static const char *const law_names[N_LAWS] = {"input_tokens", "text_tokens",  "output_tokens",
                                              "image_tokens", "image_count",  "audio_tokens",
                                              "audio_count",  "video_tokens", "video_count"};

typedef struct Epoch {
    kv_ns start;
    Law laws[N_LAWS];
} Epoch;

typedef struct Window {
    kv_ns start;
    double rate, shape;
    char law; /* 'G', 'W', 'E' */
} Window;

typedef struct ServeReader {
    FormatReader base;
    Input *input;
    GArray *windows; /* Window */
    GArray *epochs;  /* Epoch */
    guint window;
    double clock; /* s, inside the window */
    gboolean begun;
    kv_ns width; /* of the last window */
    RngStream gaps, lengths;
} ServeReader;

static int serve_probe(const char *head, gsize size)
{
    const char *end = memchr(head, '\n', size);
    gsize len = end != NULL ? (gsize)(end - head) : size;
    guint commas = 0;
    for (gsize i = 0; i < len; i++) {
        char c = head[i];
        commas += c == ',';
        if (commas != 3 && !g_ascii_isdigit(c) && strchr(",.eE+-\r", c) == NULL)
            return 0;
    }
    if (commas != 5)
        return 0;
    return memmem(head, size, ",Gamma,", 7) || memmem(head, size, ",Weibull,", 9) ||
                   memmem(head, size, ",0,0,,0,0", 9)
               ? 80
               : 0;
}

static void law_clear(Law *law)
{
    g_clear_pointer(&law->tokens, g_array_unref);
    g_clear_pointer(&law->cumulative, g_array_unref);
}

static void epoch_clear(gpointer data)
{
    for (guint i = 0; i < N_LAWS; i++)
        law_clear(&((Epoch *)data)->laws[i]);
}

static void serve_free(FormatReader *base)
{
    ServeReader *self = (ServeReader *)base;
    g_array_unref(self->windows);
    g_array_unref(self->epochs);
    g_free(self);
}

/* --- tables --- */

/* "{1396: 0.027, 1400: 0.5}"; "{}" leaves the law empty. */
static gboolean parse_law(const char *text, Law *ret)
{
    double sum = 0;
    const char *p = text;
    ret->tokens = g_array_new(FALSE, FALSE, sizeof(gint64));
    ret->cumulative = g_array_new(FALSE, FALSE, sizeof(double));
    if (*p++ != '{')
        return FALSE;
    while (*p != '}') {
        gint64 tokens;
        double weight;
        while (*p == ' ' || *p == ',')
            p++;
        gsize n = strcspn(p, ":");
        if (p[n] != ':' || !field_i64(p, n, &tokens) || tokens < 0 || tokens > G_MAXINT32)
            return FALSE;
        p += n + 1;
        while (*p == ' ')
            p++;
        n = strcspn(p, ",}");
        if (p[n] == '\0' || !field_real(p, n, &weight) || weight < 0)
            return FALSE;
        p += n;
        sum += weight;
        g_array_append_val(ret->tokens, tokens);
        g_array_append_val(ret->cumulative, sum);
    }
    return p[1] == '\0' && (ret->tokens->len == 0 || sum > 0);
}

static gboolean read_epoch(ServeReader *self, const JsonInput *json, const JNode *node,
                           GError **error)
{
    Epoch epoch = {0};
    gint64 start;
    if (!field_i64(node->key, node->key_len, &start) || start < 0 || start > 1000000000)
        return json_error(json, node, "window", "a window's start in seconds as key", error);
    epoch.start = start * KV_SECOND;
    gboolean good = TRUE;
    for (guint i = 0; i < N_LAWS && good; i++) {
        const JNode *law = json_member(json, node, law_names[i]);
        g_autofree char *text = json_text(law);
        if (law != NULL && (text == NULL || !parse_law(text, &epoch.laws[i])))
            good = json_error(json, law, law_names[i], "\"{tokens: probability, ...}\"", error);
    }
    g_array_append_val(self->epochs, epoch);
    return good;
}

static gboolean read_dataset(ServeReader *self, const char *path, GError **error)
{
    g_autoptr(Input) input = input_open(path, error);
    if (input == NULL)
        return FALSE;
    g_autoptr(JsonInput) json = json_input_new(input);
    if (!json_input_document(json, error))
        return FALSE;
    const JNode *root = json_root(json);
    for (const JNode *c = json_first(json, root); c != NULL; c = json_next(json, root, c))
        if (!read_epoch(self, json, c, error))
            return FALSE;
    return TRUE;
}

/* --- windows --- */

static gboolean read_window(ServeReader *self, const Table *table, GError **error)
{
    Window w;
    double cv;
    gsize len;
    const char *law = table_field(table, 3, &len), *rate, *shape;
    gsize n_rate, n_shape, n_cv;
    const char *cv_text = table_field(table, 2, &n_cv);
    rate = table_field(table, 1, &n_rate);
    shape = table_field(table, 4, &n_shape);
    if (!table_time(table, 0, KV_SECOND, &w.start, error))
        return FALSE;
    if (!field_real(rate, n_rate, &w.rate) || w.rate < 0 || w.rate > 1e6)
        return table_error(table, 1, error, "a rate of 0 to 1000000 a second");
    if (!field_real(cv_text, n_cv, &cv) || cv < 0)
        return table_error(table, 2, error, "a CV of 0 or more");
    w.law = len == 5 && memcmp(law, "Gamma", 5) == 0     ? 'G'
            : len == 7 && memcmp(law, "Weibull", 7) == 0 ? 'W'
            : len == 0                                   ? 'E'
                                                         : 0;
    if (w.law == 0)
        return table_error(table, 3, error, "Gamma, Weibull or nothing");
    if (!field_real(shape, n_shape, &w.shape) || (w.law != 'E' && w.shape <= 0))
        return table_error(table, 4, error, "a shape above 0");
    if (self->windows->len > 0 &&
        w.start <= g_array_index(self->windows, Window, self->windows->len - 1).start)
        return table_error(table, 0, error, "windows in order of time");
    g_array_append_val(self->windows, w);
    return TRUE;
}

static gboolean read_windows(ServeReader *self, GError **error)
{
    static const char *const names[] = {"window", "rate", "cv", "law", "shape", "scale", NULL};
    g_autoptr(Table) table = table_new(self->input, ',', names, error);
    int got;
    if (table == NULL)
        return FALSE;
    while ((got = table_next(table, error)) == 1)
        if (!read_window(self, table, error))
            return FALSE;
    guint n = self->windows->len;
    self->width = n > 1 ? g_array_index(self->windows, Window, n - 1).start -
                              g_array_index(self->windows, Window, n - 2).start
                        : 600 * KV_SECOND;
    return got == 0;
}

static FormatReader *serve_open(Input *input, const FormatArgs *args, GError **error)
{
    const ServeConfig *config = args->config;
    ServeReader *self = g_new0(ServeReader, 1);
    self->base.ops = &format_servegen;
    self->input = input;
    self->windows = g_array_new(FALSE, FALSE, sizeof(Window));
    self->epochs = g_array_new(FALSE, FALSE, sizeof(Epoch));
    g_array_set_clear_func(self->epochs, epoch_clear);
    rng_init(&self->gaps, args->seed, RNG_ARRIVALS, 0, args->replication);
    rng_init(&self->lengths, args->seed, RNG_LENGTHS, 0, args->replication);
    const char *name = input_name(input);
    g_autofree char *path = g_strdup(config->dataset);
    if (path == NULL && g_str_has_suffix(name, "-trace.csv")) {
        g_autofree char *stem = g_strndup(name, strlen(name) - strlen("trace.csv"));
        path = g_strconcat(stem, "dataset.json", NULL);
    }
    gboolean there =
        config->dataset != NULL || (path != NULL && g_file_test(path, G_FILE_TEST_EXISTS));
    if (!there)
        format_note(args->notes, "no dataset file beside the windows: lengths are unknown");
    format_note(args->notes, "requests drawn from the client's statistics, not recorded");
    if (!read_windows(self, error) || (there && !read_dataset(self, path, error))) {
        serve_free(&self->base);
        return NULL;
    }
    return &self->base;
}

/* --- drawing --- */

static double draw_gap(ServeReader *self, const Window *w)
{
    double mean = 1 / w->rate;
    if (w->law == 'G')
        return mean * rng_gamma(&self->gaps, w->shape) / w->shape;
    if (w->law == 'W')
        return mean * pow(rng_exponential(&self->gaps), 1 / w->shape) /
               exp(lgamma(1 + 1 / w->shape));
    return mean * rng_exponential(&self->gaps);
}

static gboolean has_law(const Law *law)
{
    return law->tokens != NULL && law->tokens->len > 0;
}

/* The epoch whose tables hold at `t`: the last before it with data, else the first after. */
static const Epoch *epoch_at(const ServeReader *self, kv_ns t)
{
    const Epoch *best = NULL;
    for (guint i = 0; i < self->epochs->len; i++) {
        const Epoch *e = &g_array_index(self->epochs, Epoch, i);
        if (!has_law(&e->laws[OUTPUT]))
            continue;
        if (best == NULL || e->start <= t)
            best = e;
        if (e->start > t)
            break;
    }
    return best;
}

static gint64 draw(ServeReader *self, const Law *law)
{
    if (!has_law(law))
        return 0;
    guint n = law->tokens->len, lo = 0, hi = n - 1;
    double u = rng_uniform(&self->lengths) * g_array_index(law->cumulative, double, n - 1);
    while (lo < hi) {
        guint mid = (lo + hi) / 2;
        if (g_array_index(law->cumulative, double, mid) > u)
            hi = mid;
        else
            lo = mid + 1;
    }
    return g_array_index(law->tokens, gint64, lo);
}

static void draw_lengths(ServeReader *self, LogRecord *r)
{
    const Epoch *e = epoch_at(self, r->arrival);
    if (e == NULL)
        return;
    gint64 prompt =
        has_law(&e->laws[INPUT]) ? draw(self, &e->laws[INPUT]) : draw(self, &e->laws[TEXT]);
    for (guint media = IMAGE; media < N_LAWS; media += 2) {
        gint64 tokens = draw(self, &e->laws[media]);
        prompt += tokens * draw(self, &e->laws[media + 1]);
    }
    r->prompt = MIN(prompt, G_MAXINT32);
    r->output = draw(self, &e->laws[OUTPUT]);
}

static int serve_next(FormatReader *base, LogRecord *ret, GError **error)
{
    ServeReader *self = (ServeReader *)base;
    while (self->window < self->windows->len) {
        const Window *w = &g_array_index(self->windows, Window, self->window);
        kv_ns end = self->window + 1 < self->windows->len ? (w + 1)->start : w->start + self->width;
        if (w->rate > 0) {
            self->clock += self->begun ? draw_gap(self, w) : 0.5 / w->rate;
            self->begun = TRUE;
            if (self->clock < kv_ns_to_seconds(end - w->start)) {
                log_record_init(ret);
                ret->line = self->window + 1;
                ret->arrival = w->start + kv_ns_from_seconds(self->clock);
                draw_lengths(self, ret);
                return 1;
            }
        }
        self->window++;
        self->clock = 0;
        self->begun = FALSE;
    }
    return 0;
}

static const SpecOption serve_options[] = {
    {"dataset", SPEC_STRING, G_STRUCT_OFFSET(ServeConfig, dataset), "", 0, 0, NULL,
     "length tables; absent: chunk-N-dataset.json beside chunk-N-trace.csv"},
    {NULL},
};

const FormatOps format_servegen = {
    .info = {"servegen", "ServeGen client windows (CSV + JSON): requests are drawn from them",
             serve_options, sizeof(ServeConfig)},
    .probe = serve_probe,
    .open = serve_open,
    .next = serve_next,
    .free = serve_free,
};
