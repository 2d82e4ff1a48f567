/* Steps files: any bytes end in whole steps or in one error line; what is given out is consistent.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "sim/steps_file.h"

#define MAX_STEPS 5000

static void check_rows(const StepsReader *reader, const Step *step)
{
    guint32 n, scheduled = 0;
    guint64 sum = 0;
    const StepRow *rows = steps_reader_rows(reader, &n);
    for (guint32 i = 0; i < n; i++) {
        for (guint32 p = 0; p < rows[i].n_pages; p++)
            sum += rows[i].pages[p] >> 31; /* touches every id */
        scheduled += !rows[i].paused;
    }
    g_assert_cmpuint(scheduled, ==, step->rows);
    g_assert_cmpuint(sum, <, G_MAXUINT64);
}

static void check_error(const GError *error)
{
    g_assert_true(error->domain == KV_ERROR);
    g_assert_null(strchr(error->message, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;
    int fd = memfd_create("steps", MFD_CLOEXEC), status = 1;
    g_assert_true(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    path = g_strdup_printf("/proc/self/fd/%d", fd);
    StepsReader *reader = steps_reader_open(path, &error);
    const Step *step;
    for (int i = 0; reader != NULL && i < MAX_STEPS; i++) {
        status = steps_reader_next(reader, &step, &error);
        if (status <= 0)
            break;
        check_rows(reader, step);
    }
    g_assert_true((reader == NULL || status < 0) == (error != NULL));
    if (error != NULL)
        check_error(error);
    g_clear_error(&error);
    if (reader != NULL && !steps_reader_seek(reader, size % 64, &error))
        check_error(error);
    steps_reader_free(reader);
    close(fd);
    return 0;
}
