#include "replay/backend.h"

#include <math.h>

/* In the order in which `auto` asks; counters execute nothing and are only taken when named. */
const PluginInfo *const backends[] = {
    &backend_cuda.info,
    &backend_cpu.info,
    &backend_counters.info,
    NULL,
};

void backend_free(Backend *self)
{
    if (self != NULL)
        self->ops->free(self);
}

const BackendOps *backend_choose(const PluginInfo *named, const BackendConfig *config,
                                 char **ret_reason)
{
    if (named != NULL) {
        *ret_reason = g_strdup("as asked");
        return (const BackendOps *)named;
    }
    g_autoptr(GString) passed = g_string_new(NULL);
    for (guint i = 0; backends[i] != NULL; i++) {
        const BackendOps *ops = (const BackendOps *)backends[i];
        g_autofree char *why = NULL;
        if (ops->executes && ops->available(config, &why)) {
            *ret_reason = g_strdup_printf("%s%s%s", why, passed->len > 0 ? "; " : "", passed->str);
            return ops;
        }
        if (ops->executes)
            g_string_append_printf(passed, "%snot %s: %s", passed->len > 0 ? "; " : "",
                                   ops->info.name, why);
    }
    *ret_reason = g_string_free(g_steal_pointer(&passed), FALSE);
    return &backend_counters;
}

double execution_skew(const Execution *e)
{
    if (e->ranks <= 0)
        return -1;
    double least = e->rank_us[0], most = least;
    for (gint r = 1; r < e->ranks; r++) {
        least = MIN(least, e->rank_us[r]);
        most = MAX(most, e->rank_us[r]);
    }
    return most - least;
}

void backend_errors(AttnDtype dtype, const void *out, const double *want, gsize n, double *ret_max,
                    double *ret_mean)
{
    const guint16 *half = out;
    double top = 0, sum = 0;
    for (gsize i = 0; i < n; i++) {
        const float got = dtype == ATTN_F16 ? attn_f16_to_f32(half[i]) : attn_bf16_to_f32(half[i]);
        const double e = fabs((double)got - want[i]);
        top = e <= top ? top : e;
        if (isnan(e))
            top = sum = (double)NAN;
        sum += e;
        if (isnan(sum))
            break;
    }
    *ret_max = top;
    *ret_mean = n > 0 ? sum / (double)n : 0;
}

GArray *backend_rows_to_check(const AttnShape *shape, const gint32 *lens, gint32 rows, gint64 bytes)
{
    const gint64 token = 4 * (gint64)shape->kv_heads * shape->head_dim;
    GArray *ret = g_array_new(FALSE, FALSE, sizeof(gint32));
    gint32 low = 0, high = 0;
    for (gint32 r = 1; r < rows; r++) {
        low = lens[r] < lens[low] ? r : low;
        high = lens[r] > lens[high] ? r : high;
    }
    gint64 left = bytes - (rows > 0 ? token * (lens[low] + (high != low ? lens[high] : 0)) : 0);
    for (gint32 r = 0; r < rows; r++) {
        const gboolean extreme = r == low || r == high, fits = lens[r] * token <= left;
        if (bytes > 0 && !extreme && !fits)
            continue;
        left -= extreme ? 0 : lens[r] * token;
        g_array_append_val(ret, r);
    }
    return ret;
}

gboolean backend_errors_pass(AttnDtype dtype, double max, double mean)
{
    const double times = dtype == ATTN_F16 ? 1 : 8;
    return max < 2e-3 * times && mean < 3e-4 * times;
}
