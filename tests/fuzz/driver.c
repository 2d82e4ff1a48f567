/* Stands in for libFuzzer: driver FOLDER...; speaks TAP, one line a corpus file. Folders are
 * walked. */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/fuzz/fuzz.h"

#define MUTATIONS 300
#define CUTS 64

/* An exact-sized copy, so that a read past the end is a read past an allocation. Never NULL. */
static void feed(const guint8 *data, gsize size)
{
    guint8 *copy = g_malloc(MAX(size, 1));
    if (size > 0)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    g_free(copy);
}

/* One change that parsers tend to mind: a byte, a bit, a stretch doubled, dropped or cut off. */
static void mutate(RngStream *s, GByteArray *bytes)
{
    static const char likely[] = "\0\xff\n\r,:=\"'{}[]-+.eE09 \t\x80";
    if (bytes->len == 0)
        return;
    guint at = (guint)rng_below(s, bytes->len);
    guint span = 1 + (guint)rng_below(s, MIN(bytes->len - at, 16u));
    switch (rng_below(s, 6)) {
    case 0:
        bytes->data[at] ^= (guint8)(1u << rng_below(s, 8));
        break;
    case 1:
        bytes->data[at] = (guint8)likely[rng_below(s, sizeof likely)];
        break;
    case 2:
        bytes->data[at] = (guint8)rng_u32(s);
        break;
    case 3:
        g_byte_array_remove_range(bytes, at, span);
        break;
    case 4: {
        guint8 piece[16];
        memcpy(piece, bytes->data + at, span);
        g_byte_array_append(bytes, piece, span);
        break;
    }
    default:
        g_byte_array_set_size(bytes, at);
    }
}

static void run_file(const guint8 *data, gsize size, guint64 entity)
{
    feed(data, size);
    for (guint i = 0; i < CUTS; i++)
        feed(data, size * i / CUTS);
    for (guint64 m = 0; m < MUTATIONS; m++) {
        RngStream s;
        rng_init(&s, entity, RNG_TEST, m, 0);
        g_autoptr(GByteArray) bytes = g_byte_array_new();
        if (size > 0)
            g_byte_array_append(bytes, data, (guint)size);
        for (guint64 n = 1 + rng_below(&s, 4); n > 0; n--)
            mutate(&s, bytes);
        feed(bytes->data, bytes->len);
    }
}

/* Appends the paths of all files under `path`; FALSE when it is not there. */
static gboolean collect(const char *path, GPtrArray *files)
{
    g_autoptr(GDir) folder = g_dir_open(path, 0, NULL);
    if (folder == NULL) {
        g_ptr_array_add(files, g_strdup(path));
        return g_file_test(path, G_FILE_TEST_IS_REGULAR);
    }
    for (const char *name; (name = g_dir_read_name(folder)) != NULL;) {
        g_autofree char *below = g_build_filename(path, name, NULL);
        if (!collect(below, files))
            return FALSE;
    }
    return TRUE;
}

static int compare_paths(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv)
{
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(g_free);
    for (int i = 1; i < argc; i++) {
        if (!collect(argv[i], files)) {
            fprintf(stderr, "%s: no such corpus\n", argv[i]);
            return 2;
        }
    }
    g_ptr_array_sort(files, compare_paths);
    printf("1..%u\n", files->len);
    for (guint i = 0; i < files->len; i++) {
        const char *path = g_ptr_array_index(files, i);
        g_autofree char *name = g_path_get_basename(path);
        g_autofree char *text = NULL;
        gsize size;
        if (!g_file_get_contents(path, &text, &size, NULL))
            return 1;
        printf("# %s\n", path); /* the last one named is the one that crashed */
        fflush(stdout);
        run_file((const guint8 *)text, size, i);
        printf("ok %u %s\n", i + 1, name);
    }
    return files->len > 0 ? 0 : 1;
}
