#include "tests/workloads/support.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "base/error.h"

char *test_file(const char *name)
{
    return g_build_filename(g_getenv("KVREPLAY_TESTS"), name, NULL);
}

/* The process's own folder for inputs, removed with all in it at exit. */
static char folder[64];

static void remove_folder(void)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    for (const char *name; dir != NULL && (name = g_dir_read_name(dir)) != NULL;) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_remove(path);
    }
    if (dir != NULL)
        g_dir_close(dir);
    g_rmdir(folder);
}

static const char *own_folder(void)
{
    if (folder[0] == '\0') {
        g_autofree char *shape = g_build_filename(g_get_tmp_dir(), "kvreplay-test-XXXXXX", NULL);
        g_assert_cmpuint(strlen(shape), <, sizeof folder);
        strcpy(folder, shape);
        g_assert_nonnull(g_mkdtemp(folder));
        atexit(remove_folder);
    }
    return folder;
}

char *test_write(const char *name, const char *text, gssize len)
{
    char *path = g_build_filename(own_folder(), name, NULL);
    g_assert_true(g_file_set_contents(path, text, len, NULL));
    return path;
}

static Workload *try_open(const char *path, const char *format, GError **error)
{
    WorkloadConfig config;
    workload_config_init(&config);
    config.workload = g_strdup(path);
    if (format != NULL) {
        g_free(config.format);
        config.format = g_strdup(format);
    }
    Workload *workload = workload_open(&config, error);
    workload_config_clear(&config);
    return workload;
}

Workload *test_open(const char *path, const char *format)
{
    g_autoptr(GError) error = NULL;
    Workload *workload = try_open(path, format, &error);
    g_assert_no_error(error);
    return workload;
}

static void request_clear(gpointer data)
{
    Request *request = data;
    g_free((gpointer)request->blocks);
    if (request->observed != NULL)
        g_free((gpointer)request->observed->itl);
    g_free((gpointer)request->observed);
}

static void keep(GArray *all, const Request *request)
{
    Request copy = *request;
    copy.blocks = g_memdup2(request->blocks, request->n_blocks * sizeof(guint64));
    if (request->observed != NULL) {
        Observed *seen = g_memdup2(request->observed, sizeof(Observed));
        seen->itl = g_memdup2(seen->itl, seen->n_itl * sizeof(kv_ns));
        copy.observed = seen;
    }
    g_array_append_val(all, copy);
}

GArray *test_collect(Workload *workload)
{
    g_autoptr(GError) error = NULL;
    GArray *all = g_array_new(FALSE, FALSE, sizeof(Request));
    g_array_set_clear_func(all, request_clear);
    RequestSource *source = workload_source(workload);
    Request request;
    int got;
    while ((got = request_source_next(source, &request, &error)) == 1) {
        do {
            keep(all, &request);
            Request last = request;
            got = request_source_next_turn(source, &last, 0, &request, &error);
        } while (got == 1);
        g_assert_no_error(error);
    }
    g_assert_no_error(error);
    g_assert_cmpint(got, ==, 0);
    return all;
}

GArray *test_read(const char *path, const char *format)
{
    g_autoptr(Workload) workload = test_open(path, format);
    return test_collect(workload);
}

void test_refused(const char *path, const char *format, ...)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Workload) workload = try_open(path, format, &error);
    Request request;
    int got = 1;
    while (workload != NULL && got == 1)
        got = request_source_next(workload_source(workload), &request, &error);
    g_assert_nonnull(error);
    g_assert_true(error->domain == KV_ERROR);
    g_assert_null(strchr(error->message, '\n'));
    va_list args;
    va_start(args, format);
    for (const char *text; (text = va_arg(args, const char *)) != NULL;)
        if (strstr(error->message, text) == NULL)
            g_error("expected '%s' in: %s", text, error->message);
    va_end(args);
}

guint64 test_dropped(Workload *workload, const char *reason)
{
    guint64 *count = g_hash_table_lookup(workload_info(workload)->dropped, reason);
    return count != NULL ? *count : 0;
}
