/* A sweep with cells that take a moment: `sweep-demo PATH THREADS`; for tests/sim/sweep_ranks.sh.
 */
#include "sim/sweep.h"

#include <stdio.h>
#include <stdlib.h>

static char *cell_text(gpointer data, guint64 cell, const char *const *values, GError **error)
{
    g_usleep(2000);
    return g_strdup_printf("%d", atoi(values[0]) * atoi(values[1]));
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    if (argc != 3)
        return 2;
    SweepGrid grid;
    sweep_grid_init(&grid);
    sweep_grid_add(&grid, "x=1..12", NULL);
    sweep_grid_add(&grid, "y=1..6", NULL);
    SweepConfig config = {
        .grid = &grid, .path = argv[1], .figures = "xy", .threads = (guint)atoi(argv[2])};
    gboolean ok = sweep_run(&config, cell_text, NULL, NULL, &error);
    sweep_grid_clear(&grid);
    if (!ok)
        fprintf(stderr, "sweep-demo: %s\n", error->message);
    return ok ? 0 : 1;
}
