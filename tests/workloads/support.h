/* What the tests of workloads/ share: opening inputs and collecting what comes out. */
#ifndef KV_TESTS_WORKLOADS_SUPPORT_H
#define KV_TESTS_WORKLOADS_SUPPORT_H

#include "workloads/workload.h"

/* Path of a file under tests/ ("cases/01-.../trace.csv"). Free it. */
char *test_file(const char *name);
/* Writes `text` (len -1: to its '\0') to a file of that name, over an earlier one, in a folder that
 * is removed at exit. Free the path. */
char *test_write(const char *name, const char *text, gssize len);

/* Opens `path` with `format` (NULL = auto); aborts the test on an error. */
Workload *test_open(const char *path, const char *format);
/* All requests of the source in the order given, closed-loop followers right after their
 * predecessor (asked for with now = 0). Request.blocks and .observed are copied and owned by the
 * array. */
GArray *test_collect(Workload *workload);
GArray *test_read(const char *path, const char *format);
/* Opens and reads `path`; expects an error of domain KV_ERROR whose message holds all of the
 * NULL-ended texts. */
void test_refused(const char *path, const char *format, ...) G_GNUC_NULL_TERMINATED;
guint64 test_dropped(Workload *workload, const char *reason);

#define REQUEST(array, i) (&g_array_index(array, Request, i))

#endif
