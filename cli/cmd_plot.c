/* kvreplay plot and kvreplay report: pictures and pages from recorded runs. */
#include <string.h>

#include "base/error.h"
#include "base/outfile.h"
#include "cli/commands.h"
#include "cli/file_uses.h"
#include "cli/parse.h"
#include "plots/plots.h"

static const char plot_examples[] =
    "Examples:\n"
    "  kvreplay plot my-run\n"
    "  kvreplay plot my-run --only launches --terminal\n"
    "  kvreplay plot before after --out compared      (several runs over one another)\n";

gboolean cmd_plot(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_autofree char *out = NULL, *only = NULL;
    gboolean terminal = FALSE, scripts = FALSE, quiet = FALSE;
    const GOptionEntry entries[] = {
        {"out", 'o', 0, G_OPTION_ARG_FILENAME, &out, "folder for the pictures (default RUN/plots)",
         "DIR"},
        {"only", 0, 0, G_OPTION_ARG_STRING, &only, "one picture (kvreplay list plots)", "NAME"},
        {"terminal", 0, 0, G_OPTION_ARG_NONE, &terminal, "draw as text on standard output", NULL},
        {"scripts", 0, 0, G_OPTION_ARG_NONE, &scripts,
         "write data and scripts, do not call gnuplot", NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "no progress", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(GOptionContext) context = command_context(inv, "RUN...", plot_examples, entries);
    ParseOutcome outcome = command_parse(context, 64, &argc, &argv, error);
    if (outcome != PARSE_GO)
        return outcome == PARSE_DONE;
    if (argc < 2) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "name the output folder of a run");
        return FALSE;
    }
    g_autoptr(FileUses) files = file_uses_new();
    for (int i = 1; i < argc; i++)
        file_uses_in(files, NULL, argv[i]);
    file_uses_folder(files, "--out", out);
    if (!file_uses_check(files, error))
        return FALSE;
    if (out == NULL) /* beside a lone CSV, inside a run's folder */
        out = g_file_test(argv[1], G_FILE_TEST_IS_DIR) ? g_build_filename(argv[1], "plots", NULL)
                                                       : g_strconcat(argv[1], ".plots", NULL);
    argv[argc] = NULL;
    g_autoptr(Progress) progress = progress_new(quiet, inv->interrupted);
    g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
    PlotRequest request = {.runs = (const char *const *)argv + 1,
                           .out = out,
                           .only = only,
                           .terminal = terminal,
                           .scripts_only = scripts,
                           .notes = notes};
    g_autoptr(GPtrArray) made = g_ptr_array_new_with_free_func(g_free);
    if (!plots_draw(&request, made, progress, error))
        return FALSE;
    for (guint i = 0; !quiet && i < notes->len; i++)
        g_printerr("%s\n", (const char *)g_ptr_array_index(notes, i));
    if (!terminal)
        for (guint i = 0; i < made->len; i++)
            g_print("%s/%s\n", out, (const char *)g_ptr_array_index(made, i));
    return TRUE;
}

static const char report_examples[] =
    "Example:\n  kvreplay report my-run    (writes my-run/report.html)\n";

gboolean cmd_report(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_autofree char *out = NULL;
    const GOptionEntry entries[] = {
        {"out", 'o', 0, G_OPTION_ARG_FILENAME, &out, "page to write (default RUN/report.html)",
         "FILE"},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(GOptionContext) context = command_context(inv, "RUN", report_examples, entries);
    ParseOutcome outcome = command_parse(context, 1, &argc, &argv, error);
    if (outcome != PARSE_GO)
        return outcome == PARSE_DONE;
    if (argc < 2) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "name the output folder of a run");
        return FALSE;
    }
    if (out == NULL)
        out = g_build_filename(argv[1], "report.html", NULL);
    g_autoptr(FileUses) files = file_uses_new();
    file_uses_folder(files, NULL, argv[1]);
    file_uses_out(files, "--out", out);
    if (!file_uses_check(files, error) || !report_write(argv[1], out, error))
        return FALSE;
    g_print("%s\n", out);
    return TRUE;
}
