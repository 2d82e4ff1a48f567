/* Standard input to a ledger: a scheduler's text, "PAGE_SIZE POOL_PAGES", then one request a line:
 * "ARRIVAL_NS PROMPT OUTPUT PRIORITY BLOCK_TOKENS [BLOCK ID ...]". Steps take 10 ms. */
#include "tests/sim/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_request(Log *log, const char *line)
{
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    guint n = g_strv_length(words);
    g_assert_cmpuint(n, >=, 5);
    Request *q = log_add(log, g_ascii_strtoll(words[0], NULL, 10), atoi(words[1]), atoi(words[2]));
    q->priority = atoi(words[3]);
    g_autofree guint64 *ids = g_new(guint64, n);
    for (guint i = 5; i < n; i++)
        ids[i - 5] = g_ascii_strtoull(words[i], NULL, 10);
    if (atoi(words[4]) > 0)
        log_blocks(log, atoi(words[4]), ids, n - 5);
}

int main(void)
{
    g_autofree char *line = NULL;
    size_t cap = 0;
    SimConfig config = {0};
    Log log;
    log_init(&log);
    for (guint i = 0; getline(&line, &cap, stdin) > 0; i++) {
        g_strchomp(line);
        if (i == 0) {
            config_for(&config, line, 1);
        } else if (i == 1) {
            g_auto(GStrv) words = g_strsplit(line, " ", -1);
            config.page_size = (guint32)atoi(words[0]);
            config.pool_pages = (guint64)atoi(words[1]);
        } else {
            add_request(&log, line);
        }
    }
    g_autofree char *text = run_ledger(&config, &log, "fixed:step=10ms");
    fputs(text, stdout);
    sim_config_clear(&config);
    log_clear(&log);
    return 0;
}
