#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/stored.h"

#define CAPACITY_MIN (4 * 1024)
#define CAPACITY_USUAL (256 * 1024) /* stays in the second-level cache */

struct Input {
    char *name;
    Stored *stored;
    gint64 size;
    gboolean hashed;
    char hash_text[SHA256_TEXT_SIZE];
    char *buffer; /* capacity + 1 bytes: a last line without an end gets its '\0' */
    gsize capacity, start, end;
    gsize scanned; /* no LF in [start, scanned) */
    gsize checked; /* no NUL in [start, checked), unless at nul_at */
    gsize nul_at;  /* place of the first NUL, or G_MAXSIZE */
    gboolean at_end;
    guint64 line;
};

static Input *make(const char *name, gint64 size)
{
    Input *self = g_new0(Input, 1);
    self->name = g_strdup(name);
    self->size = size;
    self->capacity =
        CAPACITY_USUAL; /* a small file fits a small buffer, with a byte to see its end */
    if (size >= 0 && size < CAPACITY_USUAL)
        self->capacity = MAX((gsize)size + 1, CAPACITY_MIN);
    self->buffer = g_malloc(self->capacity + 1);
    self->nul_at = G_MAXSIZE;
    return self;
}

/* Opened before it is looked at, so that what is looked at is what is read. */
static int open_file(const char *path, gint64 *ret_size, GError **error)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        kv_set_errno(error, KV_ERROR_INPUT, errno, "%s: cannot be opened", path);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (S_ISDIR(st.st_mode)) {
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s: is a folder, expected a file", path);
        close(fd);
        return -1;
    }
    if (S_ISREG(st.st_mode)) {
        *ret_size = st.st_size;
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    return fd;
}

Input *input_open(const char *path, GError **error)
{
    gboolean standard = strcmp(path, "-") == 0;
    gint64 size = -1;
    int fd = standard ? STDIN_FILENO : open_file(path, &size, error);
    if (fd < 0)
        return NULL;
    Input *self = make(standard ? "standard input" : path, size);
    self->stored = stored_new_fd(self->name, fd);
    return self;
}

Input *input_open_memory(const char *name, const void *data, gsize size)
{
    Input *self = make(name, (gint64)size);
    self->stored = stored_new_memory(self->name, data, size);
    return self;
}

void input_free(Input *self)
{
    if (self == NULL)
        return;
    stored_free(self->stored);
    g_free(self->buffer);
    g_free(self->name);
    g_free(self);
}

const char *input_name(const Input *self)
{
    return self->name;
}

guint64 input_line_number(const Input *self)
{
    return self->line;
}

guint64 input_bytes_read(const Input *self)
{
    return stored_bytes(self->stored);
}

gint64 input_size(const Input *self)
{
    return self->size;
}

void input_set_hash(Input *self)
{
    g_assert(!self->hashed && self->end == 0); /* before the first byte */
    self->hashed = TRUE;
    stored_set_hash(self->stored);
}

gboolean input_drain(Input *self, GError **error)
{
    return stored_drain(self->stored, error);
}

const char *input_sha256(Input *self)
{
    if (!self->hashed)
        return NULL;
    stored_hash(self->stored, self->hash_text);
    return self->hash_text;
}

/* Moves what is unread to the front, or grows the buffer when it is full of it. */
static gboolean make_room(Input *self, GError **error)
{
    gsize shift = self->start;
    if (shift > 0) {
        memmove(self->buffer, self->buffer + shift, self->end - shift);
        self->start = 0;
        self->end -= shift;
        self->scanned = MAX(self->scanned, shift) - shift;
        self->checked = MAX(self->checked, shift) - shift;
        if (self->nul_at != G_MAXSIZE)
            self->nul_at -= shift;
    }
    if (self->end < self->capacity)
        return TRUE;
    if (self->capacity >= INPUT_LINE_MAX) {
        self->line++;
        return input_error(self, error, "line over %u MiB, expected lines of text",
                           INPUT_LINE_MAX >> 20);
    }
    self->capacity *= 2;
    self->buffer = g_realloc(self->buffer, self->capacity + 1);
    return TRUE;
}

/* 1 = more bytes, 0 = end, -1 = error. */
static int fill(Input *self, GError **error)
{
    if (self->at_end)
        return 0;
    if (!make_room(self, error))
        return -1;
    gssize n =
        stored_read(self->stored, self->buffer + self->end, self->capacity - self->end, error);
    if (n < 0)
        return -1;
    self->at_end = n == 0;
    self->end += (gsize)n;
    return n > 0;
}

gboolean input_peek(Input *self, const char **ret_data, gsize *ret_size, GError **error)
{
    while (self->end - self->start < INPUT_PEEK) {
        int status = fill(self, error);
        if (status < 0)
            return FALSE;
        if (status == 0)
            break;
    }
    *ret_data = self->buffer + self->start;
    *ret_size = MIN(self->end - self->start, INPUT_PEEK);
    return TRUE;
}

int input_read(Input *self, const char **ret_data, gsize *ret_size, GError **error)
{
    if (self->start == self->end) {
        self->start = self->end = 0;
        int status = fill(self, error);
        if (status <= 0)
            return status;
    }
    *ret_data = self->buffer + self->start;
    *ret_size = self->end - self->start;
    self->start = self->end;
    return 1;
}

/* Text has no NUL; a reader of C strings would take what follows one for absent. */
static gboolean check_nul(Input *self, gsize line_end, GError **error)
{
    if (self->nul_at == G_MAXSIZE && self->checked < self->end) {
        gsize from = MAX(self->checked, self->start);
        const char *nul = memchr(self->buffer + from, '\0', self->end - from);
        self->nul_at = nul ? (gsize)(nul - self->buffer) : G_MAXSIZE;
        self->checked = self->end;
    }
    if (self->nul_at >= line_end)
        return TRUE;
    return input_error(self, error, "a NUL byte at column %" G_GSIZE_FORMAT ", expected text",
                       self->nul_at - self->start + 1);
}

/* Takes [start, line_end) as the next line. */
static int give_line(Input *self, gsize line_end, char **ret_line, gsize *ret_len, GError **error)
{
    self->line++;
    if (!check_nul(self, line_end, error))
        return -1;
    char *line = self->buffer + self->start;
    gsize len = line_end - self->start;
    self->start = self->scanned = MIN(line_end + 1, self->end);
    if (self->line == 1 && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3;
        len -= 3;
    }
    if (len > 0 && line[len - 1] == '\r')
        len--;
    line[len] = '\0';
    *ret_line = line;
    *ret_len = len;
    return 1;
}

int input_line(Input *self, char **ret_line, gsize *ret_len, GError **error)
{
    for (;;) {
        char *from = self->buffer + self->scanned;
        char *lf = memchr(from, '\n', self->end - self->scanned);
        if (lf != NULL)
            return give_line(self, (gsize)(lf - self->buffer), ret_line, ret_len, error);
        self->scanned = self->end;
        int status = fill(self, error);
        if (status < 0)
            return -1;
        if (status == 0 && self->start == self->end)
            return 0;
        if (status == 0)
            return give_line(self, self->end, ret_line, ret_len, error);
    }
}

gboolean input_error(const Input *self, GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    if (self->line > 0)
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s:%" G_GUINT64_FORMAT ": %s", self->name,
                    self->line, what);
    else
        g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s: %s", self->name, what);
    return FALSE;
}
