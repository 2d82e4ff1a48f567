/* Recorded logs: any bytes, by the format they are taken for and by every other one, end in
 * requests or in one error line. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "base/error.h"
#include "workloads/log_source.h"

#define MAX_REQUESTS 2000

static void read_as(const FormatOps *ops, const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    PluginChoice format = {0};
    /* formats that cannot do without an option are left to their own tests */
    if (!plugin_choice_parse(&format, "format", formats, ops->info.name, NULL))
        return;
    LogSourceConfig config = {.format = format, .keep_unknown = size % 2 == 0};
    LogSource *source = log_source_new(input_open_memory("fuzz", data, size), &config, &error);
    Request request = {0};
    int status = source != NULL ? 1 : -1;
    kv_ns last = G_MININT64;
    for (int i = 0; status > 0 && i < MAX_REQUESTS; i++) {
        status = request_source_next((RequestSource *)source, &request, &error);
        g_assert_true(status <= 0 || request.arrival >= last);
        last = request.arrival;
    }
    g_assert_true((status < 0) == (error != NULL));
    if (error != NULL) {
        g_assert_true(error->domain == KV_ERROR);
        g_assert_null(strchr(error->message, '\n'));
    }
    request_source_free((RequestSource *)source);
    plugin_choice_clear(&format);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Input) input = input_open_memory("fuzz", data, size);
    g_assert_true((format_probe(input, &error) == NULL) == (error != NULL));
    for (const PluginInfo *const *f = formats; *f != NULL; f++)
        read_as((const FormatOps *)*f, data, size);
    return 0;
}
