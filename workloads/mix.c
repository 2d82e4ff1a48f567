#include "workloads/mix.h"

#include <math.h>

#include "base/error.h"
#include "base/rng.h"
#include "workloads/key_set.h"
#include "workloads/workload_internal.h"

typedef struct Part {
    Workload *workload;
    double keep; /* probability */
    RngStream rng;
    Request head; /* next request, when has_head */
    gboolean has_head, ended;
} Part;

typedef struct Mix {
    RequestSource base;
    Part *parts;
    guint n;
    GArray *keys; /* guint64: those of the request last given */
} Mix;

static gboolean fill_head(Part *part, GError **error)
{
    while (!part->has_head && !part->ended) {
        int got = request_source_next(workload_source(part->workload), &part->head, error);
        if (got < 0)
            return FALSE;
        part->ended = got == 0;
        part->has_head = got == 1 && (part->keep >= 1 || rng_uniform(&part->rng) < part->keep);
    }
    return TRUE;
}

/* Marks a request as of part i: sessions, keys and class apart from the other parts'. */
static void adopt(Mix *self, guint i, Request *r)
{
    if (r->session != KV_NO_SESSION)
        r->session = r->session * self->n + i;
    r->klass = i;
    g_array_set_size(self->keys, 0);
    for (guint k = 0; k < r->n_blocks; k++) {
        guint64 key = key_mix(r->blocks[k] + i * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15));
        g_array_append_val(self->keys, key);
    }
    r->blocks = (const guint64 *)(gpointer)self->keys->data;
}

static int mix_next(RequestSource *base, Request *ret, GError **error)
{
    Mix *self = (Mix *)base;
    Part *best = NULL;
    for (guint i = 0; i < self->n; i++) {
        Part *part = &self->parts[i];
        if (!fill_head(part, error))
            return -1;
        if (part->has_head && (best == NULL || part->head.arrival < best->head.arrival))
            best = part;
    }
    if (best == NULL)
        return 0;
    *ret = best->head;
    best->has_head = FALSE;
    adopt(self, (guint)(best - self->parts), ret);
    return 1;
}

static int mix_next_turn(RequestSource *base, const Request *finished, kv_ns now, Request *ret,
                         GError **error)
{
    Mix *self = (Mix *)base;
    guint i = finished->klass;
    Request own = *finished;
    if (own.session != KV_NO_SESSION)
        own.session = (own.session - i) / self->n;
    int got =
        request_source_next_turn(workload_source(self->parts[i].workload), &own, now, ret, error);
    if (got == 1)
        adopt(self, i, ret);
    return got;
}

static void mix_free(RequestSource *base)
{
    Mix *self = (Mix *)base;
    for (guint i = 0; i < self->n; i++)
        workload_free(self->parts[i].workload);
    g_array_unref(self->keys);
    g_free(self->parts);
    g_free(self);
}

static const RequestSourceOps mix_ops = {"mix", mix_next, mix_next_turn, mix_free};

Workload *workload_mix(Workload *const *parts, const double *weights, guint n, guint64 seed,
                       GError **error)
{
    Mix *self = g_new0(Mix, 1);
    self->base.ops = &mix_ops;
    self->parts = g_new0(Part, n);
    self->n = n;
    self->keys = g_array_new(FALSE, FALSE, sizeof(guint64));
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    double largest = 0;
    gboolean good = n > 0;
    for (guint i = 0; i < n; i++) {
        double w = weights != NULL ? weights[i] : 1;
        self->parts[i].workload = parts[i];
        self->parts[i].keep = w;
        rng_init(&self->parts[i].rng, seed, RNG_MIX, i, 0);
        largest = MAX(largest, w);
        good = good && isfinite(w) && w > 0;
        g_ptr_array_add(names, (gpointer)workload_info(parts[i])->name);
    }
    if (!good) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "mix: expected workloads with weights above 0");
        mix_free(&self->base);
        return NULL;
    }
    for (guint i = 0; i < n; i++)
        self->parts[i].keep /= largest;
    g_ptr_array_add(names, NULL);
    g_autofree char *name = g_strjoinv(" + ", (char **)names->pdata);
    g_ptr_array_set_size(names, (int)n);
    return workload_from_source(&self->base, name, "mix", names);
}
