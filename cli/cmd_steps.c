/* kvreplay steps: look into, check, compare and export steps files. */
#include <string.h>

#include "base/error.h"
#include "base/outfile.h"
#include "cli/commands.h"
#include "cli/file_uses.h"
#include "cli/parse.h"
#include "cli/stages.h"
#include "cli/steps_print.h"

static const char examples[] =
    "Examples:\n"
    "  kvreplay steps run.kvsteps                     (header and totals)\n"
    "  kvreplay steps run.kvsteps --csv - --to 100\n"
    "  kvreplay steps run.kvsteps --rows 4711         (one step's rows and block tables)\n"
    "  kvreplay steps run.kvsteps --check\n"
    "  kvreplay steps a.kvsteps --compare b.kvsteps   (exit 1 at the first difference)\n";

typedef struct StepsOptions {
    char *csv, *jsonl, *compare, *ledger;
    gint64 rows, from, to;
    gboolean check, json;
} StepsOptions;

static void steps_options_clear(StepsOptions *o)
{
    g_free(o->csv);
    g_free(o->jsonl);
    g_free(o->compare);
    g_free(o->ledger);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(StepsOptions, steps_options_clear)

static gboolean print_lines(StepsReader *reader, const StepsOptions *o, GError **error)
{
    const char *path = o->csv != NULL ? o->csv : o->jsonl;
    g_autoptr(OutFile) out = out_file_new(path, error);
    if (out == NULL)
        return FALSE;
    StepsRange range = {(guint64)o->from, o->to > 0 ? (guint64)o->to : G_MAXUINT64};
    gboolean ok = o->csv != NULL ? steps_print_csv(reader, range, out, error)
                                 : steps_print_jsonl(reader, range, out, error);
    return ok && out_file_commit(out, error);
}

/* A steps file holds what a replay needs, not the waiting line or free list: its header's scenario
 * is simulated again, from the same workload. */
static gboolean print_ledger(const StepsReader *reader, const char *path, const char *kind,
                             const Invocation *inv, GError **error)
{
    if (strcmp(kind, "vllm") != 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "--ledger: '%s', expected vllm", kind);
        return FALSE;
    }
    const char *text = steps_reader_header(reader)->scenario;
    if (text == NULL || *text == '\0') {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                    "%s: its header holds no scenario to run again", path);
        return FALSE;
    }
    g_autoptr(Scenario) scenario = scenario_new();
    g_autoptr(Progress) progress = progress_new(TRUE, inv->interrupted);
    SimResult result;
    return scenario_load_text(scenario, path, text, strlen(text), error) &&
           stage_ledger(scenario, "-", progress, &result, error);
}

gboolean cmd_steps(const Invocation *inv, int argc, char **argv, GError **error)
{
    g_auto(StepsOptions) o = {.rows = G_MININT64};
    const GOptionEntry entries[] = {
        {"csv", 0, 0, G_OPTION_ARG_FILENAME, &o.csv, "one line per step, '-' for standard output",
         "FILE"},
        {"jsonl", 0, 0, G_OPTION_ARG_FILENAME, &o.jsonl,
         "one JSON object per step, deltas included", "FILE"},
        {"rows", 0, 0, G_OPTION_ARG_INT64, &o.rows, "print one step's rows and block tables",
         "STEP"},
        {"from", 0, 0, G_OPTION_ARG_INT64, &o.from, "first step", "STEP"},
        {"to", 0, 0, G_OPTION_ARG_INT64, &o.to, "step to stop before; 0 = the end", "STEP"},
        {"check", 0, 0, G_OPTION_ARG_NONE, &o.check, "read all of it and recount every step", NULL},
        {"compare", 0, 0, G_OPTION_ARG_FILENAME, &o.compare, "find the first step that differs",
         "FILE"},
        {"ledger", 0, 0, G_OPTION_ARG_STRING, &o.ledger,
         "vllm: simulate the file's scenario again and print every decision", "KIND"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &o.json, "header and totals as one JSON object", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(GOptionContext) context = command_context(inv, "FILE.kvsteps", examples, entries);
    ParseOutcome outcome = command_parse(context, 1, &argc, &argv, error);
    if (outcome != PARSE_GO)
        return outcome == PARSE_DONE;
    if (argc < 2 || o.from < 0 || o.to < 0 || (o.to > 0 && o.to <= o.from) ||
        (o.rows < 0 && o.rows != G_MININT64)) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    argc < 2 ? "name a steps file"
                             : "steps are numbered from 0, and --to is above --from");
        return FALSE;
    }
    g_autoptr(FileUses) files = file_uses_new();
    file_uses_in(files, NULL, argv[1]);
    file_uses_in(files, "--compare", o.compare);
    file_uses_out(files, "--csv", o.csv);
    file_uses_out(files, "--jsonl", o.jsonl);
    if (!file_uses_check(files, error))
        return FALSE;
    g_autoptr(StepsReader) reader = steps_reader_open(argv[1], error);
    if (reader == NULL)
        return FALSE;
    if (o.compare != NULL) {
        g_autoptr(StepsReader) other = steps_reader_open(o.compare, error);
        return other != NULL && steps_compare(reader, other, argv[1], o.compare, stdout, error);
    }
    if (o.ledger != NULL)
        return print_ledger(reader, argv[1], o.ledger, inv, error);
    if (o.rows >= 0)
        return steps_print_rows(reader, (guint64)o.rows, stdout, error);
    if (o.csv != NULL || o.jsonl != NULL)
        return print_lines(reader, &o, error);
    return steps_print_totals(reader, o.check, o.json, stdout, error);
}
