/* Inputs: any bytes, taken for plain, gzip or zstd, end in lines or in an error. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "base/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Input) input = input_open_memory("fuzz", data, size);
    const char *head;
    char *line;
    gsize len, total = 0;
    int status = input_peek(input, &head, &len, &error) ? 1 : -1;
    while (status > 0 && total < 64 << 20 &&
           (status = input_line(input, &line, &len, &error)) > 0) {
        g_assert_cmpuint(strlen(line), ==, len);
        total += len;
    }
    g_assert_true((status < 0) == (error != NULL));
    return 0;
}
