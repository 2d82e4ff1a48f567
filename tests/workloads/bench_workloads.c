/* How fast logs are read: MB/s of input on one core and peak memory, from a pipe.
 *
 *   bench_workloads [MB]        default 300 MB a format
 *
 * A thread of its own writes the log into a pipe, timestamps running on; the figures are of the
 * reading thread: by its processor time (what one core can do) and by the clock (with the writer
 * beside it). "give out" drains the source, "describe" makes the whole description.
 */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "workloads/describe.h"

typedef struct Writer {
    int fd;
    guint64 bytes; /* to write, about */
    void (*fill)(GString *out, guint64 *state, RngStream *rng);
    const char *header;
} Writer;

static char *digits(char *p, guint64 v, int n)
{
    for (int i = n - 1; i >= 0; i--, v /= 10)
        p[i] = (char)('0' + v % 10);
    return p + n;
}

/* One row of Azure 2023: about 0.18 s after the one before, days running on within November. */
static void azure_row(GString *out, guint64 *state, RngStream *rng)
{
    guint32 r = rng_u32(rng);
    *state += 100000 + r % 1600000; /* ticks of 100 ns */
    guint64 t = *state / 10000000, day = t / 86400;
    char row[64], *p = row;
    p = digits(p, 2023 + day / 336, 4);
    *p++ = '-';
    p = digits(p, 1 + day / 28 % 12, 2);
    *p++ = '-';
    p = digits(p, 1 + day % 28, 2);
    *p++ = ' ';
    p = digits(p, t / 3600 % 24, 2);
    *p++ = ':';
    p = digits(p, t / 60 % 60, 2);
    *p++ = ':';
    p = digits(p, t % 60, 2);
    *p++ = '.';
    p = digits(p, *state % 10000000, 7);
    *p++ = ',';
    p = digits(p, 1000 + r % 3000, 4);
    *p++ = ',';
    p = digits(p, 100 + (r >> 16) % 500, 3);
    *p++ = '\r';
    *p++ = '\n';
    g_string_append_len(out, row, p - row);
}

/* One row of Mooncake: some chain of 1..30 ids out of a fixed tree. */
static void mooncake_row(GString *out, guint64 *state, RngStream *rng)
{
    char number[24];
    guint n = 1 + (guint)rng_below(rng, 30), branch = (guint)rng_below(rng, 4000);
    *state += rng_below(rng, 600);
    g_string_append_printf(out,
                           "{\"timestamp\": %" G_GUINT64_FORMAT
                           ", \"input_length\": %u, \"output_length\": %u, \"hash_ids\": [0",
                           *state, 512 * n - 100, 1 + branch % 1000);
    for (guint i = 1; i < n; i++) {
        char *end = digits(number, 100000 + branch * 30 + i, 6);
        g_string_append_len(out, ", ", 2);
        g_string_append_len(out, number, end - number);
    }
    g_string_append_len(out, "]}\n", 3);
}

static gpointer write_all(gpointer data)
{
    Writer *w = data;
    GString *out = g_string_sized_new(1 << 20);
    guint64 state = 0, written = 0;
    RngStream rng;
    rng_init(&rng, 1, RNG_TEST, 0, 0);
    g_string_append(out, w->header);
    while (written < w->bytes) {
        while (out->len < 1 << 16)
            w->fill(out, &state, &rng);
        for (gsize done = 0; done < out->len;) {
            gssize n = write(w->fd, out->str + done, out->len - done);
            if (n <= 0)
                goto over;
            done += (gsize)n;
        }
        written += out->len;
        g_string_truncate(out, 0);
    }
over:
    close(w->fd);
    w->bytes = written;
    g_string_free(out, TRUE);
    return NULL;
}

static double seconds(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static guint64 drain(Workload *workload, GError **error)
{
    Request r;
    guint64 n = 0;
    while (request_source_next(workload_source(workload), &r, error) == 1)
        n++;
    return n;
}

static gboolean bench(const char *name, gboolean describe, Writer writer)
{
    int fds[2];
    g_autoptr(GError) error = NULL;
    if (pipe(fds) != 0)
        return FALSE;
    writer.fd = fds[1];
    GThread *thread = g_thread_new("writer", write_all, &writer);
    g_autofree char *path = g_strdup_printf("/dev/fd/%d", fds[0]);
    WorkloadConfig config;
    workload_config_init(&config);
    config.workload = g_strdup(path);
    double cpu = seconds(CLOCK_THREAD_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
    Workload *workload = workload_open(&config, &error);
    guint64 requests = 0;
    if (workload != NULL && describe) {
        g_autofree Description *d = workload_describe(workload, NULL, &error);
        requests = d != NULL ? d->requests : 0;
    } else if (workload != NULL) {
        requests = drain(workload, &error);
    }
    cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    close(fds[0]);
    g_thread_join(thread);
    workload_free(workload);
    workload_config_clear(&config);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    if (error != NULL) {
        printf("%s: %s\n", name, error->message);
        return FALSE;
    }
    double mb = (double)writer.bytes / 1e6;
    printf("%-10s %-9s %8.0f MB %10" G_GUINT64_FORMAT
           " requests  %7.1f MB/s of one core  %7.1f MB/s by "
           "the clock  peak RSS %ld MiB\n",
           name, describe ? "describe" : "give out", mb, requests, mb / cpu, mb / wall,
           usage.ru_maxrss / 1024);
    return TRUE;
}

int main(int argc, char **argv)
{
    guint64 mb = argc > 1 ? g_ascii_strtoull(argv[1], NULL, 10) : 300;
    Writer azure = {.bytes = mb * 1000000,
                    .fill = azure_row,
                    .header = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"};
    Writer mooncake = {.bytes = mb * 1000000, .fill = mooncake_row, .header = ""};
    return bench("azure", FALSE, azure) && bench("azure", TRUE, azure) &&
                   bench("mooncake", FALSE, mooncake) && bench("mooncake", TRUE, mooncake)
               ? 0
               : 1;
}
