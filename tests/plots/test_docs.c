/* The pages say what the program does: every picture, every CSV column, summary.json's schema.
 *
 * KV_RUN_FOLDER, where set, names a run's output folder to be held against them as well.
 */
#include <string.h>

#include "plots/csv_rows.h"
#include "plots/plots.h"
#include "schema.h"

static char *read_doc(const char *name)
{
    g_autofree char *path = g_test_build_filename(G_TEST_DIST, "../../docs", name, NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    g_file_get_contents(path, &text, NULL, &error);
    g_assert_no_error(error);
    return g_steal_pointer(&text);
}

static void test_pictures(void)
{
    g_autofree char *page = read_doc("plots.md");
    for (guint i = 0; plots[i] != NULL; i++) {
        g_autofree char *row = g_strdup_printf("\n| `%s` | ", plots[i]->name);
        if (strstr(page, row) == NULL)
            g_error("docs/plots.md has no row for the picture %s", plots[i]->name);
    }
}

/* The text under "## NAME", up to the next heading. */
static char *section_of(const char *doc, const char *name)
{
    g_autofree char *page = read_doc(doc), *heading = g_strdup_printf("\n## %s\n", name);
    const char *begin = strstr(page, heading);
    g_assert_nonnull(begin);
    const char *end = strstr(begin + 4, "\n## ");
    return g_strndup(begin, end != NULL ? (gsize)(end - begin) : strlen(begin));
}

/* Every column has a row in the table under the file's heading. */
static void check_columns(const char *folder, const char *name)
{
    g_autofree char *text = section_of("outputs.md", name);
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(CsvRows) rows = csv_rows_open(path, &error);
    g_assert_no_error(error);
    for (guint i = 0; i < csv_rows_n_columns(rows); i++) {
        g_autofree char *cell = g_strdup_printf("`%s`", csv_rows_name(rows, i));
        if (strstr(text, cell) == NULL)
            g_error("docs/outputs.md, %s: column %s is not there", name, csv_rows_name(rows, i));
    }
}

static void test_columns(void)
{
    g_autofree char *run = g_test_build_filename(G_TEST_DIST, "data/run", NULL);
    check_columns(run, "requests.csv");
    check_columns(run, "replay.csv");
}

static void check_summary(const char *folder)
{
    g_autofree char *path = g_build_filename(folder, "summary.json", NULL);
    g_autofree char *schema_text = read_doc("summary.schema.json");
    g_autoptr(JsonParser) parser = json_parser_new(), schema_parser = json_parser_new();
    g_autoptr(GError) error = NULL;
    json_parser_load_from_data(schema_parser, schema_text, -1, &error);
    g_assert_no_error(error);
    json_parser_load_from_file(parser, path, &error);
    g_assert_no_error(error);
    JsonObject *schema = json_node_get_object(json_parser_get_root(schema_parser));
    schema_check(schema, schema, json_parser_get_root(parser), "summary.json");
}

static void test_schema(void)
{
    g_autofree char *run = g_test_build_filename(G_TEST_DIST, "data/run", NULL);
    check_summary(run);
}

static void test_real_run(void)
{
    const char *run = g_getenv("KV_RUN_FOLDER");
    if (run == NULL) {
        g_test_skip("KV_RUN_FOLDER is not set");
        return;
    }
    check_columns(run, "requests.csv");
    check_columns(run, "replay.csv");
    check_summary(run);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/docs/pictures", test_pictures);
    g_test_add_func("/docs/columns", test_columns);
    g_test_add_func("/docs/schema", test_schema);
    g_test_add_func("/docs/real-run", test_real_run);
    return g_test_run();
}
