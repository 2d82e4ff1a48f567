#include "sim/sweep.h"
#include "base/error.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

#define MOST_VALUES 1000000

void sweep_grid_init(SweepGrid *grid)
{
    grid->axes = g_array_new(FALSE, FALSE, sizeof(SweepAxis));
}

void sweep_grid_clear(SweepGrid *grid)
{
    if (grid->axes == NULL)
        return;
    for (guint i = 0; i < grid->axes->len; i++) {
        SweepAxis *axis = &g_array_index(grid->axes, SweepAxis, i);
        g_free(axis->key);
        g_ptr_array_unref(axis->values);
    }
    g_array_unref(grid->axes);
    grid->axes = NULL;
}

/* "A..B" or "A..B:STEP", in numbers. FALSE when the text is none; a range that runs backwards has
 * no values. */
static gboolean add_range(GPtrArray *values, const char *text)
{
    g_auto(GStrv) ends = g_strsplit(text, "..", 2);
    if (g_strv_length(ends) != 2)
        return FALSE;
    g_auto(GStrv) tail = g_strsplit(ends[1], ":", 2);
    double from, to, step = 1;
    if (!kv_parse_real(ends[0], &from) || !kv_parse_real(tail[0], &to) ||
        (tail[1] && !kv_parse_real(tail[1], &step)))
        return FALSE;
    if (!(step > 0) || !((to - from) / step < MOST_VALUES))
        return TRUE; /* a range, and none that can be used: no values */
    guint n = to >= from ? (guint)floor((to - from) / step + 1e-9) + 1 : 0;
    for (guint i = 0; i < n; i++) {
        char plain[G_ASCII_DTOSTR_BUF_SIZE];
        /* 15 digits: 0.1 + 2 x 0.1 reads 0.3 */
        g_ascii_formatd(plain, sizeof plain, "%.15g", from + i * step);
        g_ptr_array_add(values, g_strdup(plain));
    }
    return TRUE;
}

gboolean sweep_grid_add(SweepGrid *grid, const char *text, GError **error)
{
    const char *equals = strchr(text, '=');
    SweepAxis axis = {NULL, g_ptr_array_new_with_free_func(g_free)};
    if (equals && equals > text && equals[1] != '\0') {
        axis.key = g_strndup(text, (gsize)(equals - text));
        if (!add_range(axis.values, equals + 1)) {
            g_auto(GStrv) parts = g_strsplit(equals + 1, "|", -1);
            for (guint i = 0; parts[i]; i++)
                g_ptr_array_add(axis.values, g_strdup(parts[i]));
        }
    }
    if (axis.values->len == 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "sweep axis '%s': expected KEY=VALUE|VALUE..., KEY=FROM..TO or "
                    "KEY=FROM..TO:STEP",
                    text);
        g_free(axis.key);
        g_ptr_array_unref(axis.values);
        return FALSE;
    }
    g_array_append_val(grid->axes, axis);
    return TRUE;
}

guint64 sweep_grid_cells(const SweepGrid *grid)
{
    guint64 n = 1;
    for (guint i = 0; i < grid->axes->len; i++)
        n *= g_array_index(grid->axes, SweepAxis, i).values->len;
    return n;
}

void sweep_grid_cell(const SweepGrid *grid, guint64 cell, const char **ret_values)
{
    for (guint i = grid->axes->len; i-- > 0;) {
        const SweepAxis *axis = &g_array_index(grid->axes, SweepAxis, i);
        ret_values[i] = axis->values->pdata[cell % axis->values->len];
        cell /= axis->values->len;
    }
}
