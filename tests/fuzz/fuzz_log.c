/* One reader of recorded logs (KV_FORMAT, set by the build): any bytes end in requests or in an
 * INPUT error of one line; requests come in order and within the promised ranges. */
#include <string.h>

#include "base/error.h"
#include "tests/fuzz/fuzz.h"
#include "workloads/log_source.h"

#ifndef KV_MAP
#define KV_MAP NULL
#endif

static void check_request(const Request *r, kv_ns last)
{
    g_assert_true(r->prompt >= 0 && r->output >= 0 && r->turn >= 0);
    g_assert_true(r->wait != KV_NS_NONE || r->arrival >= last);
    g_assert_true(r->n_blocks == 0 || (r->blocks != NULL && r->block_tokens > 0));
}

/* Statistics can stand for any number of requests, so not to the end at all costs. */
static void drain(RequestSource *source, GError **error)
{
    Request r, next;
    kv_ns last = 0;
    guint left = 20000;
    while (left-- > 0 && request_source_next(source, &r, error) == 1) {
        check_request(&r, last);
        last = r.arrival;
        while (request_source_next_turn(source, &r, 0, &next, error) == 1) {
            check_request(&next, 0);
            r = next;
        }
        if (*error != NULL)
            return;
    }
}

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    g_autoptr(GError) error = NULL;
    PluginChoice format = {0};
    gboolean known = plugin_choice_parse(&format, "format", formats, KV_FORMAT, &error);
    g_assert_true(known);
    LogSourceConfig config = {.format = format, .map = KV_MAP, .keep_unknown = TRUE, .seed = 1};
    Input *input = input_open_memory(
        "fuzz", data, strcmp(format.info->name, "servegen") == 0 ? MIN(size, 200) : size);
    LogSource *log = log_source_new(input, &config, &error);
    if (log != NULL) {
        drain((RequestSource *)log, &error);
        request_source_free((RequestSource *)log);
    }
    if (error != NULL) {
        g_assert_true(error->domain == KV_ERROR);
        g_assert_null(strpbrk(error->message, "\r\n"));
    }
    plugin_choice_clear(&format);
    return 0;
}
