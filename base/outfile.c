#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

#define BUFFER_SIZE (256 * 1024)

struct OutFile {
    char *name; /* as the caller gave it, for messages */
    char *path; /* where it ends up (symbolic links followed); NULL: written in place */
    char *part; /* where it is until then; NULL likewise */
    FILE *stream;
    int fd;
    int failed; /* errno of the first write that failed, 0 while none has */
    gboolean keep;
};

/* --- the stream: stdio over our own write, since stdio forgets why a write failed --- */

static ssize_t cookie_write(void *cookie, const char *data, size_t size)
{
    OutFile *self = cookie;
    size_t done = 0;
    while (done < size && self->failed == 0) {
        ssize_t n = write(self->fd, data + done, size - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            self->failed = errno;
    }
    return (ssize_t)done; /* less than `size` makes stdio set its error flag */
}

static int cookie_close(void *cookie)
{
    OutFile *self = cookie;
    int fd = self->fd;
    self->fd = -1;
    if (close(fd) == 0)
        return 0;
    if (self->failed == 0)
        self->failed = errno;
    return -1;
}

static void open_stream(OutFile *self)
{
    static const cookie_io_functions_t functions = {.write = cookie_write, .close = cookie_close};
    self->stream = fopencookie(self, "w", functions);
    g_assert(self->stream != NULL); /* only memory can be lacking */
    setvbuf(self->stream, NULL, _IOFBF, BUFFER_SIZE);
}

/* --- opening --- */

/* Where PATH leads: *ret_in_place for a device or a pipe, which must not be replaced by a file. */
static gboolean resolve(const char *path, char **ret_target, gboolean *ret_in_place, GError **error)
{
    struct stat st;
    *ret_in_place = FALSE;
    *ret_target = NULL;
    if (stat(path, &st) != 0) {
        *ret_target = g_strdup(path);
        return TRUE;
    }
    if (S_ISDIR(st.st_mode)) {
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                    "%s: cannot be written: a folder is in the way", path);
        return FALSE;
    }
    *ret_in_place = !S_ISREG(st.st_mode);
    char *real = realpath(path, NULL);
    *ret_target = g_strdup(real ? real : path);
    free(real);
    return TRUE;
}

/* The .part, locked for as long as it is open: two writers of one name, in this program or another,
 * would mix their lines. A file system without locks has none. */
static int open_part(const char *name, const char *part, GError **error)
{
    for (;;) {
        struct stat opened, there;
        const int fd = open(part, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0) {
            kv_set_errno(error, KV_ERROR_MACHINE, errno, "%s: cannot be written", name);
            return -1;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                        "%s: cannot be written: another output is being written to %s", name, part);
            close(fd);
            return -1;
        }
        /* between open and lock its writer may have ended and renamed it */
        if (fstat(fd, &opened) == 0 && stat(part, &there) == 0 && opened.st_dev == there.st_dev &&
            opened.st_ino == there.st_ino) {
            if (!S_ISREG(opened.st_mode) || ftruncate(fd, 0) == 0)
                return fd;
            kv_set_errno(error, KV_ERROR_MACHINE, errno, "%s: cannot be written", name);
            close(fd);
            return -1;
        }
        close(fd);
    }
}

OutFile *out_file_new(const char *path, GError **error)
{
    if (*path == '\0') {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "an output file with an empty name");
        return NULL;
    }
    g_autoptr(OutFile) self = g_new0(OutFile, 1);
    gboolean in_place = TRUE;
    g_autofree char *target = NULL;
    self->fd = -1;
    if (strcmp(path, "-") == 0) {
        self->name = g_strdup("standard output");
        fflush(stdout);
        self->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    } else {
        self->name = g_strdup(path);
        if (!resolve(path, &target, &in_place, error))
            return NULL;
        if (!in_place) {
            self->path = g_strdup(target);
            self->part = g_strconcat(target, ".part", NULL);
        }
        self->fd = in_place ? open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)
                            : open_part(self->name, self->part, error);
    }
    if (self->fd < 0) {
        if (in_place)
            kv_set_errno(error, KV_ERROR_MACHINE, errno, "%s: cannot be written", self->name);
        g_clear_pointer(&self->part, g_free); /* not ours to remove */
        return NULL;
    }
    open_stream(self);
    return g_steal_pointer(&self);
}

FILE *out_file_stream(OutFile *self)
{
    return self->stream;
}

gboolean out_file_ok(OutFile *self, GError **error)
{
    if (self->failed != 0)
        kv_set_errno(error, KV_ERROR_MACHINE, self->failed, "%s: writing failed", self->name);
    return self->failed == 0;
}

void out_file_keep(OutFile *self)
{
    self->keep = TRUE;
}

/* --- ending --- */

/* The folder's entry is what a rename changes. Best effort: not every file system can. */
static void sync_folder(const char *path)
{
    g_autofree char *folder = g_path_get_dirname(path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

gboolean out_file_commit(OutFile *self, GError **error)
{
    g_assert(self->stream != NULL); /* once only */
    fflush(self->stream);
    if (self->failed == 0 && self->part != NULL && fsync(self->fd) != 0)
        self->failed = errno;
    if (self->failed == 0 && self->part != NULL) { /* renamed while it is locked still */
        if (rename(self->part, self->path) != 0) {
            kv_set_errno(error, KV_ERROR_MACHINE, errno, "%s: cannot be renamed from %s",
                         self->name, self->part);
            return FALSE;
        }
        g_clear_pointer(&self->part, g_free);
        sync_folder(self->path);
    }
    fclose(self->stream);
    self->stream = NULL;
    return out_file_ok(self, error);
}

void out_file_free(OutFile *self)
{
    if (self == NULL)
        return;
    if (self->stream != NULL)
        fflush(self->stream);
    struct stat st;
    if (self->part != NULL && (!self->keep || (stat(self->part, &st) == 0 && st.st_size == 0)))
        unlink(self->part);
    if (self->stream != NULL)
        fclose(self->stream);
    g_free(self->name);
    g_free(self->path);
    g_free(self->part);
    g_free(self);
}

gboolean out_folder_make(const char *path, GError **error)
{
    if (*path == '\0') {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "an output folder with an empty name");
        return FALSE;
    }
    if (g_mkdir_with_parents(path, 0777) != 0) {
        kv_set_errno(error, KV_ERROR_MACHINE, errno, "%s: folder cannot be made", path);
        return FALSE;
    }
    if (access(path, W_OK | X_OK) != 0) {
        kv_set_errno(error, KV_ERROR_MACHINE, errno, "%s: folder cannot be written to", path);
        return FALSE;
    }
    return TRUE;
}

gboolean out_stdout_check(GError **error)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return TRUE;
    kv_set_errno(error, KV_ERROR_MACHINE, errno ? errno : EIO, "standard output: writing failed");
    return FALSE;
}
