/* Slice: a window of time, moved to 0. */
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "workloads/transforms/transforms.h"

typedef struct SliceConfig {
    char *range;
} SliceConfig;

typedef struct Slice {
    Wrapped base;
    kv_ns from, to, zero;
    guint64 first, last, seen; /* rows */
    gboolean by_rows, begun;
} Slice;

static gboolean in_slice(const Slice *self, const Request *r, gboolean *ret_past)
{
    if (self->by_rows) {
        guint64 row = self->seen - 1;
        *ret_past = row >= self->last;
        return row >= self->first && row < self->last;
    }
    *ret_past = r->arrival >= self->to;
    return r->arrival >= self->from && r->arrival < self->to;
}

static int slice_next(RequestSource *base, Request *ret, GError **error)
{
    Slice *self = (Slice *)base;
    int got;
    while ((got = request_source_next(self->base.inner, ret, error)) == 1) {
        gboolean past;
        self->seen++;
        if (in_slice(self, ret, &past))
            break;
        if (past)
            return 0;
    }
    if (got != 1)
        return got;
    if (!self->begun)
        self->zero = ret->arrival;
    self->begun = TRUE;
    ret->arrival -= self->zero;
    ret->sent -= self->zero;
    return 1;
}

static const RequestSourceOps slice_ops = {"slice", slice_next, wrapped_next_turn, wrapped_free};

/* "A..B" into its halves; either may be empty. */
static gboolean halves(const char *text, char **ret_a, char **ret_b)
{
    const char *dots = strstr(text, "..");
    if (dots == NULL)
        return FALSE;
    *ret_a = g_strndup(text, (gsize)(dots - text));
    *ret_b = g_strdup(dots + 2);
    return TRUE;
}

static RequestSource *slice_new(gconstpointer config, RequestSource *inner, gboolean by_rows,
                                GError **error)
{
    const char *range = ((const SliceConfig *)config)->range;
    g_autofree char *a = NULL, *b = NULL;
    Slice s = {
        .base = {.base.ops = &slice_ops, .inner = inner}, .to = KV_NS_MAX, .last = G_MAXUINT64};
    gint64 first = 0, last = G_MAXINT64;
    s.by_rows = by_rows;
    gboolean good = range != NULL && halves(range, &a, &b);
    if (good && by_rows) {
        good = (a[0] == '\0' || kv_parse_count(a, &first)) &&
               (b[0] == '\0' || kv_parse_count(b, &last)) && first >= 0 && last > first;
        s.first = (guint64)first;
        s.last = (guint64)last;
    } else if (good) {
        good = (a[0] == '\0' || kv_parse_time(a, &s.from)) &&
               (b[0] == '\0' || kv_parse_time(b, &s.to)) && s.to > s.from;
    }
    if (!good) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "transform %s: '%s': expected FROM..TO, as in %s", by_rows ? "rows" : "slice",
                    range != NULL ? range : "", by_rows ? "100..200" : "300s..320s");
        return NULL;
    }
    return g_memdup2(&s, sizeof s);
}

static RequestSource *slice_wrap(gconstpointer config, RequestSource *inner,
                                 const TransformArgs *args, guint index, FormatNotes *notes,
                                 GError **error)
{
    return slice_new(config, inner, FALSE, error);
}

static RequestSource *rows_wrap(gconstpointer config, RequestSource *inner,
                                const TransformArgs *args, guint index, FormatNotes *notes,
                                GError **error)
{
    return slice_new(config, inner, TRUE, error);
}

static const SpecOption slice_options[] = {
    {"range", SPEC_STRING, G_STRUCT_OFFSET(SliceConfig, range), NULL, 0, 0, NULL,
     "FROM..TO, times from the first arrival; FROM counts, TO does not; either may be left out"},
    {NULL},
};

static const SpecOption rows_options[] = {
    {"range", SPEC_STRING, G_STRUCT_OFFSET(SliceConfig, range), NULL, 0, 0, NULL,
     "FROM..TO, in order of arrival from 0; FROM counts, TO does not; either may be left out"},
    {NULL},
};

const TransformOps transform_slice = {
    .info = {"slice", "the requests of a window of time, moved to time 0", slice_options,
             sizeof(SliceConfig)},
    .wrap = slice_wrap,
};

const TransformOps transform_rows = {
    .info = {"rows", "the requests of a range of rows, moved to time 0", rows_options,
             sizeof(SliceConfig)},
    .wrap = rows_wrap,
};
