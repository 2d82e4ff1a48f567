/* Inputs: lines and bytes, plain and packed, whole and damaged. */
#include "base/input.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/error.h"

static GBytes *gzip(const char *text, gsize len)
{
    z_stream z = {0};
    g_assert_cmpint(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), ==, Z_OK);
    gsize room = deflateBound(&z, len) + 64;
    guchar *out = g_malloc(room);
    z.next_in = (Bytef *)text;
    z.avail_in = (uInt)len;
    z.next_out = out;
    z.avail_out = (uInt)room;
    g_assert_cmpint(deflate(&z, Z_FINISH), ==, Z_STREAM_END);
    gsize size = room - z.avail_out;
    deflateEnd(&z);
    return g_bytes_new_take(out, size);
}

static GBytes *zstd(const char *text, gsize len)
{
    gsize room = ZSTD_compressBound(len);
    guchar *out = g_malloc(room);
    gsize size = ZSTD_compress(out, room, text, len, 3);
    g_assert_false(ZSTD_isError(size));
    return g_bytes_new_take(out, size);
}

static Input *open_bytes(GBytes *bytes)
{
    return input_open_memory("mem", g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes));
}

/* All lines joined with '|', then the error's message if there was one. */
static char *lines_of(Input *input)
{
    GString *out = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    char *line;
    gsize len;
    int status;
    while ((status = input_line(input, &line, &len, &error)) > 0) {
        g_assert_cmpuint(strlen(line), ==, len);
        g_string_append_printf(out, "%s|", line);
    }
    if (status < 0) {
        g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
        g_string_append_printf(out, "!%s", error->message);
    }
    return g_string_free(out, FALSE);
}

static void check_lines(const char *text, gsize len, const char *expect)
{
    g_autoptr(Input) input = input_open_memory("mem", text, len);
    g_autofree char *got = lines_of(input);
    g_assert_cmpstr(got, ==, expect);
}

#define CHECK_LINES(text, expect) check_lines(text, sizeof(text) - 1, expect)

static void test_line_ends(void)
{
    CHECK_LINES("", "");
    CHECK_LINES("a\nb\n", "a|b|");
    CHECK_LINES("a\nb", "a|b|");
    CHECK_LINES("a\r\nb\r\n", "a|b|");
    CHECK_LINES("a\r\nb\r", "a|b|");
    CHECK_LINES("\n\na\n\n", "||a||");
    CHECK_LINES("a\rb\n", "a\rb|");
    CHECK_LINES("\xef\xbb\xbf"
                "a\n\xef\xbb\xbf"
                "b\n",
                "a|\xef\xbb\xbf"
                "b|");
    CHECK_LINES("\r\n", "|");
    CHECK_LINES("x", "x|");
}

static void test_nul(void)
{
    CHECK_LINES("a\nb\nc\0d\ne\n", "a|b|!mem:3: a NUL byte at column 2, expected text");
    CHECK_LINES("\0", "!mem:1: a NUL byte at column 1, expected text");
    CHECK_LINES("ab\n\0\n", "ab|!mem:2: a NUL byte at column 1, expected text");
}

/* Lines around the size of the buffer, in all three packings. */
static void test_long_lines(void)
{
    static const gsize sizes[] = {1, 65535, 65536, 262143, 262144, 262145, 1000000};
    GString *text = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        for (gsize k = 0; k < sizes[i]; k++)
            g_string_append_c(text, (char)('a' + (i + k) % 26));
        g_string_append(text, i % 2 ? "\n" : "\r\n");
    }
    GBytes *packed[] = {g_bytes_new(text->str, text->len), gzip(text->str, text->len),
                        zstd(text->str, text->len)};
    for (gsize p = 0; p < G_N_ELEMENTS(packed); p++) {
        g_autoptr(Input) input = open_bytes(packed[p]);
        const char *head;
        gsize head_size, len;
        char *line;
        g_assert_true(input_peek(input, &head, &head_size, NULL));
        g_assert_cmpmem(head, head_size, text->str, INPUT_PEEK);
        for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
            g_assert_cmpint(input_line(input, &line, &len, NULL), ==, 1);
            g_assert_cmpuint(len, ==, sizes[i]);
            g_assert_cmpuint(input_line_number(input), ==, i + 1);
            for (gsize k = 0; k < len; k++)
                if (line[k] != (char)('a' + (i + k) % 26))
                    g_assert_cmpint(line[k], ==, 'a' + (int)((i + k) % 26));
        }
        g_assert_cmpint(input_line(input, &line, &len, NULL), ==, 0);
        g_assert_cmpuint(input_bytes_read(input), ==, g_bytes_get_size(packed[p]));
        g_bytes_unref(packed[p]);
    }
    g_string_free(text, TRUE);
}

static GBytes *joined(GBytes *a, const void *b, gsize b_size)
{
    GByteArray *all = g_byte_array_new();
    g_byte_array_append(all, g_bytes_get_data(a, NULL), (guint)g_bytes_get_size(a));
    g_byte_array_append(all, b, (guint)b_size);
    return g_byte_array_free_to_bytes(all);
}

static void check_bytes(GBytes *bytes, const char *expect)
{
    g_autoptr(Input) input = open_bytes(bytes);
    g_autofree char *got = lines_of(input);
    g_assert_cmpstr(got, ==, expect);
}

static void test_members(void)
{
    GBytes *(*packers[])(const char *, gsize) = {gzip, zstd};
    for (gsize i = 0; i < G_N_ELEMENTS(packers); i++) {
        g_autoptr(GBytes) one = packers[i]("a\nb", 3);
        g_autoptr(GBytes) two = packers[i]("c\nd\n", 4);
        g_autoptr(GBytes) none = packers[i]("", 0);
        g_autoptr(GBytes) both = joined(one, g_bytes_get_data(two, NULL), g_bytes_get_size(two));
        g_autoptr(GBytes) zeros = joined(both, "\0\0\0\0\0\0\0\0", 8);
        g_autoptr(GBytes) text = joined(both, "text", 4);
        check_bytes(both, "a|bc|d|");
        check_bytes(zeros, "a|bc|d|");
        check_bytes(none, "");
        check_bytes(text, "a|bc|d|!mem: text after the end of the compressed data");
    }
}

/* Cut anywhere: an error, never a short stream called whole. */
static void test_cut(void)
{
    GBytes *(*packers[])(const char *, gsize) = {gzip, zstd};
    for (gsize i = 0; i < G_N_ELEMENTS(packers); i++) {
        g_autoptr(GBytes) whole = packers[i]("first line\nsecond line\n", 23);
        for (gsize size = 4; size < g_bytes_get_size(whole); size++) {
            g_autoptr(GBytes) cut = g_bytes_new_from_bytes(whole, 0, size);
            g_autoptr(Input) input = open_bytes(cut);
            g_autofree char *got = lines_of(input);
            g_assert_true(g_str_has_suffix(got, "!mem: cut short: the compressed data has no end"));
        }
    }
}

static void test_damaged(void)
{
    g_autoptr(GBytes) packed = gzip("some text that is packed\n", 25);
    g_autofree char *bytes = g_memdup2(g_bytes_get_data(packed, NULL), g_bytes_get_size(packed));
    bytes[g_bytes_get_size(packed) - 6] ^= 1; /* in the checksum */
    g_autoptr(Input) input = input_open_memory("mem", bytes, g_bytes_get_size(packed));
    g_autofree char *got = lines_of(input);
    g_assert_true(g_str_has_suffix(got, "!mem: damaged gzip data"));
}

static void test_read_chunks(void)
{
    g_autofree char *text = g_malloc(700000);
    for (gsize i = 0; i < 700000; i++)
        text[i] = (char)(i * 2654435761u >> 24);
    text[0] = 'x';
    g_autoptr(GBytes) packed = zstd(text, 700000);
    g_autoptr(Input) input = open_bytes(packed);
    const char *data;
    gsize size, done = 0;
    g_assert_true(input_peek(input, &data, &size, NULL));
    while (input_read(input, &data, &size, NULL) == 1) {
        g_assert_cmpmem(data, size, text + done, size);
        done += size;
    }
    g_assert_cmpuint(done, ==, 700000);
}

typedef struct Folder {
    char *path, *file;
} Folder;

static void folder_up(Folder *f, gconstpointer unused)
{
    f->path = g_dir_make_tmp("kvreplay-test-XXXXXX", NULL);
    g_assert_nonnull(f->path);
    f->file = g_build_filename(f->path, "log.csv", NULL);
}

static void folder_down(Folder *f, gconstpointer unused)
{
    g_unlink(f->file);
    g_assert_cmpint(g_rmdir(f->path), ==, 0);
    g_free(f->path);
    g_free(f->file);
}

/* SHA-256 of "abc" is the standard's own example (FIPS 180-4). */
static void test_file(Folder *f, gconstpointer unused)
{
    g_assert_true(g_file_set_contents(f->file, "abc", 3, NULL));
    g_autoptr(Input) input = input_open(f->file, NULL);
    g_assert_nonnull(input);
    g_assert_cmpint(input_size(input), ==, 3);
    g_assert_null(input_sha256(input));
    input_set_hash(input);
    g_autofree char *got = lines_of(input);
    g_assert_cmpstr(got, ==, "abc|");
    g_assert_cmpstr(input_sha256(input), ==,
                    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void test_drain(Folder *f, gconstpointer unused)
{
    g_autofree char *text = g_strnfill(3000000, 'a');
    char *line;
    gsize len;
    text[9] = '\n';
    g_assert_true(g_file_set_contents(f->file, text, 3000000, NULL));
    g_autoptr(Input) input = input_open(f->file, NULL);
    input_set_hash(input);
    g_assert_cmpint(input_line(input, &line, &len, NULL), ==, 1);
    g_assert_true(input_drain(input, NULL));
    g_autofree char *expect =
        g_compute_checksum_for_data(G_CHECKSUM_SHA256, (guchar *)text, 3000000);
    g_assert_cmpstr(input_sha256(input), ==, expect);
    g_assert_cmpuint(input_bytes_read(input), ==, 3000000);
}

static void test_stdin(Folder *f, gconstpointer unused)
{
    const char *head;
    gsize size;
    g_assert_true(g_file_set_contents(f->file, "p\nq", 3, NULL));
    int saved = dup(STDIN_FILENO), fd = open(f->file, O_RDONLY);
    g_assert_cmpint(dup2(fd, STDIN_FILENO), ==, STDIN_FILENO);
    close(fd);
    g_autoptr(Input) input = input_open("-", NULL);
    g_assert_true(input_peek(input, &head, &size, NULL));
    g_autofree char *got = lines_of(input);
    g_assert_cmpstr(got, ==, "p|q|");
    g_assert_cmpstr(input_name(input), ==, "standard input");
    g_assert_cmpint(input_size(input), ==, -1);
    dup2(saved, STDIN_FILENO);
    close(saved);
}

static void check_refused(const char *path, const char *what)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(input_open(path, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_INPUT);
    g_autofree char *expect = g_strdup_printf("%s: %s", path, what);
    g_assert_cmpstr(error->message, ==, expect);
}

static void test_refused(Folder *f, gconstpointer unused)
{
    check_refused(f->path, "is a folder, expected a file");
    check_refused(f->file, "cannot be opened: No such file or directory");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/input/line-ends", test_line_ends);
    g_test_add_func("/input/nul", test_nul);
    g_test_add_func("/input/long-lines", test_long_lines);
    g_test_add_func("/input/members", test_members);
    g_test_add_func("/input/cut", test_cut);
    g_test_add_func("/input/damaged", test_damaged);
    g_test_add_func("/input/read-chunks", test_read_chunks);
#define ADD(name, function)                                                                        \
    g_test_add("/input/" name, Folder, NULL, folder_up, function, folder_down)
    ADD("file", test_file);
    ADD("drain", test_drain);
    ADD("stdin", test_stdin);
    ADD("refused", test_refused);
    return g_test_run();
}
