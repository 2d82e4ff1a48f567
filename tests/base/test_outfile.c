/* Outputs: whole or absent, and every way of failing told. */
#include "base/outfile.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/progress.h"

typedef struct Folder {
    char *path, *file, *part;
} Folder;

static void folder_up(Folder *f, gconstpointer unused)
{
    f->path = g_dir_make_tmp("kvreplay-test-XXXXXX", NULL);
    g_assert_nonnull(f->path);
    f->file = g_build_filename(f->path, "out.csv", NULL);
    f->part = g_strconcat(f->file, ".part", NULL);
}

/* Whatever a test means to leave behind is named `file` or `part`; anything else is a fault. */
static void folder_down(Folder *f, gconstpointer unused)
{
    g_unlink(f->file);
    g_unlink(f->part);
    g_assert_cmpint(g_rmdir(f->path), ==, 0);
    g_free(f->path);
    g_free(f->file);
    g_free(f->part);
}

static void assert_content(const char *path, const char *expect)
{
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, expect);
}

static gboolean exists(const char *path)
{
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

static void test_commit(Folder *f, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(OutFile) out = out_file_new(f->file, &error);
    g_assert_no_error(error);
    fputs("one\n", out_file_stream(out));
    g_assert_true(exists(f->part));
    g_assert_false(exists(f->file));
    g_assert_true(out_file_ok(out, NULL));
    g_assert_true(out_file_commit(out, &error));
    g_assert_false(exists(f->part));
    assert_content(f->file, "one\n");
}

static void test_abandoned(Folder *f, gconstpointer unused)
{
    g_assert_true(g_file_set_contents(f->file, "old", -1, NULL));
    OutFile *out = out_file_new(f->file, NULL);
    fputs("new", out_file_stream(out));
    out_file_free(out);
    g_assert_false(exists(f->part));
    assert_content(f->file, "old");
}

static void test_kept(Folder *f, gconstpointer unused)
{
    OutFile *out = out_file_new(f->file, NULL);
    fputs("half", out_file_stream(out));
    out_file_keep(out);
    out_file_free(out);
    g_assert_false(exists(f->file));
    assert_content(f->part, "half");
}

static void test_symlink(Folder *f, gconstpointer unused)
{
    g_autofree char *real = g_build_filename(f->path, "real", NULL);
    g_assert_true(g_file_set_contents(real, "old", -1, NULL));
    g_assert_cmpint(symlink("real", f->file), ==, 0);
    g_autoptr(OutFile) out = out_file_new(f->file, NULL);
    fputs("new", out_file_stream(out));
    g_assert_true(out_file_commit(out, NULL));
    g_assert_true(g_file_test(f->file, G_FILE_TEST_IS_SYMLINK));
    assert_content(real, "new");
    g_unlink(real);
}

/* A device stays a device, and a full one is an error at commit. */
static void test_full_device(void)
{
    struct stat st;
    g_autoptr(GError) error = NULL;
    g_autoptr(OutFile) out = out_file_new("/dev/full", &error);
    if (out == NULL) {
        g_test_skip("no /dev/full that can be opened");
        return;
    }
    fputs("text", out_file_stream(out));
    g_assert_false(out_file_commit(out, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_MACHINE);
    g_assert_cmpstr(error->message, ==, "/dev/full: writing failed: No space left on device");
    g_assert_cmpint(stat("/dev/full", &st), ==, 0);
    g_assert_true(S_ISCHR(st.st_mode));
}

/* The disk is full after 1 MiB: out_file_ok() tells it in mid-run, the reason is kept until commit,
 * and nothing is left. */
static void test_full_disk(Folder *f, gconstpointer unused)
{
    struct rlimit before, limit;
    g_autoptr(GError) in_loop = NULL;
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(getrlimit(RLIMIT_FSIZE, &before), ==, 0);
    signal(SIGXFSZ, SIG_IGN);
    limit = before;
    limit.rlim_cur = 1 << 20;
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
    OutFile *out = out_file_new(f->file, NULL);
    int lines = 0;
    while (lines < 100000 && out_file_ok(out, &in_loop)) {
        fprintf(out_file_stream(out), "line %d, and then some text\n", lines);
        lines++;
    }
    g_assert_cmpint(lines, <, 100000);
    g_assert_cmpstr(strstr(in_loop->message, "writing failed"), ==,
                    "writing failed: File too large");
    g_assert_false(out_file_commit(out, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_MACHINE);
    out_file_free(out);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &before), ==, 0);
    g_assert_false(exists(f->file));
    g_assert_false(exists(f->part));
}

static void check_refused(const char *path, const char *what)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *expect = g_strdup_printf("%s: %s", path, what);
    g_assert_null(out_file_new(path, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_MACHINE);
    g_assert_cmpstr(error->message, ==, expect);
}

static void test_refused(Folder *f, gconstpointer unused)
{
    g_autofree char *lost = g_build_filename(f->path, "no", "such.csv", NULL);
    check_refused(f->path, "cannot be written: a folder is in the way");
    check_refused(lost, "cannot be written: No such file or directory");
}

static void test_folder(Folder *f, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *deep = g_build_filename(f->path, "a", "b", NULL);
    g_autofree char *middle = g_build_filename(f->path, "a", NULL);
    g_autofree char *blocked = g_build_filename(f->file, "b", NULL);
    g_assert_true(out_folder_make(deep, NULL));
    g_assert_true(out_folder_make(deep, NULL));
    g_rmdir(deep);
    g_rmdir(middle);
    g_assert_true(g_file_set_contents(f->file, "", 0, NULL));
    g_assert_false(out_folder_make(blocked, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_MACHINE);
    g_assert_nonnull(strstr(error->message, "Not a directory"));
}

static void test_stdout(void)
{
    if (g_test_subprocess()) {
        g_autoptr(OutFile) out = out_file_new("-", NULL);
        fputs("to the pipe", out_file_stream(out));
        g_assert_true(out_file_commit(out, NULL));
        g_assert_true(out_stdout_check(NULL));
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stdout("*to the pipe*");
}

static void test_stdout_full(void)
{
    if (g_test_subprocess()) {
        g_autoptr(GError) error = NULL;
        int full = open("/dev/full", O_WRONLY);
        g_assert_cmpint(dup2(full, STDOUT_FILENO), >=, 0);
        printf("text");
        g_assert_false(out_stdout_check(&error));
        g_assert_error(error, KV_ERROR, KV_ERROR_MACHINE);
        _exit(strstr(error->message, "No space left") != NULL ? 0 : 1);
    }
    if (access("/dev/full", W_OK) != 0) {
        g_test_skip("no /dev/full");
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
}

static void test_progress(void)
{
    int interrupted = 0;
    g_autoptr(GError) error = NULL;
    g_autoptr(Progress) progress = progress_new(TRUE, &interrupted);
    progress_begin(progress, "steps", 10);
    for (guint64 i = 0; i < 10000; i++)
        progress_tick(progress, i);
    g_assert_true(progress_check(progress, &error));
    interrupted = 1;
    g_assert_true(progress_stop(progress));
    g_assert_false(progress_check(progress, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_INTERRUPTED);
    g_assert_cmpint(kv_error_exit_status(error), ==, 130);
    progress_end(progress);
    progress_begin(NULL, "x", 1);
    progress_tick(NULL, 1);
    progress_end(NULL);
    g_assert_false(progress_stop(NULL));
}

/* Draws on a terminal: the part done, a forecast, and in the end nothing. */
static void test_progress_terminal(void)
{
    char text[4096];
    int master = posix_openpt(O_RDWR | O_NOCTTY), saved = dup(STDERR_FILENO);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        g_test_skip("no pseudo-terminals here");
        return;
    }
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    g_assert_cmpint(dup2(slave, STDERR_FILENO), >=, 0);
    Progress *progress = progress_new(FALSE, NULL);
    progress_begin(progress, "steps", 4000);
    g_usleep(600000);
    for (guint64 i = 1; i <= 1024; i++)
        progress_tick(progress, i == 1024 ? 1000 : i);
    progress_end(progress);
    progress_free(progress);
    dup2(saved, STDERR_FILENO);
    gsize n = 0; /* what was written arrives in pieces, a little later */
    struct pollfd wait = {.fd = master, .events = POLLIN};
    do {
        g_assert_cmpint(poll(&wait, 1, 10000), ==, 1);
        ssize_t more = read(master, text + n, sizeof text - 1 - n);
        g_assert_cmpint(more, >, 0);
        n += (gsize)more;
        text[n] = '\0';
    } while (strstr(text, " left\r\033[K") == NULL);
    g_assert_nonnull(strstr(text, "steps: 25.0 %, "));
    g_assert_true(g_str_has_suffix(text, "\r\033[K"));
    close(slave);
    close(master);
    close(saved);
}

/* Two outputs of one name would mix their lines; the first one's are what counts. */
static void test_two_writers(Folder *f, gconstpointer unused)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(OutFile) first = out_file_new(f->file, &error);
    g_assert_no_error(error);
    fputs("first\n", out_file_stream(first));
    g_assert_null(out_file_new(f->file, &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_MACHINE);
    g_assert_nonnull(strstr(error->message, f->file));
    g_clear_error(&error);
    g_assert_true(exists(f->part)); /* the refused one takes nothing away */
    g_assert_true(out_file_commit(first, &error));
    assert_content(f->file, "first\n");
    g_autoptr(OutFile) second = out_file_new(f->file, &error); /* one after another is no matter */
    g_assert_no_error(error);
    g_assert_true(out_file_commit(second, &error));
    assert_content(f->file, "");
}

static void test_nothing_to_keep(Folder *f, gconstpointer unused)
{
    OutFile *out = out_file_new(f->file, NULL);
    out_file_keep(out);
    out_file_free(out);
    g_assert_false(exists(f->part));
    out = out_file_new(f->file, NULL);
    fputs("a line\n", out_file_stream(out));
    out_file_keep(out);
    out_file_free(out);
    assert_content(f->part, "a line\n");
}

static void test_no_name(void)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(out_file_new("", &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_USAGE);
    g_clear_error(&error);
    g_assert_false(out_folder_make("", &error));
    g_assert_error(error, KV_ERROR, KV_ERROR_USAGE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(name, function)                                                                        \
    g_test_add("/outfile/" name, Folder, NULL, folder_up, function, folder_down)
    ADD("commit", test_commit);
    ADD("abandoned", test_abandoned);
    ADD("kept", test_kept);
    ADD("symlink", test_symlink);
    ADD("full-disk", test_full_disk);
    ADD("refused", test_refused);
    ADD("folder", test_folder);
    ADD("two-writers", test_two_writers);
    ADD("nothing-to-keep", test_nothing_to_keep);
    g_test_add_func("/outfile/no-name", test_no_name);
    g_test_add_func("/outfile/full-device", test_full_device);
    g_test_add_func("/outfile/stdout", test_stdout);
    g_test_add_func("/outfile/stdout-full", test_stdout_full);
    g_test_add_func("/progress/all", test_progress);
    g_test_add_func("/progress/terminal", test_progress_terminal);
    return g_test_run();
}
