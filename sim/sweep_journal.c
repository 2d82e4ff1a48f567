#include "sim/sweep_journal.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HEAD "kvreplay-sweep 1 "

struct SweepJournal {
    GMutex lock;
    char *path;
    int fd;
    off_t empty; /* size of a journal without a cell */
};

static gboolean write_all(int fd, const char *text, gsize size)
{
    while (size > 0) {
        ssize_t n = write(fd, text, size);
        if (n < 0 && errno != EINTR)
            return FALSE;
        if (n > 0) {
            text += n;
            size -= (gsize)n;
        }
    }
    return TRUE;
}

static gboolean fail(SweepJournal *self, GError **error)
{
    kv_set_errno(error, KV_ERROR_MACHINE, errno, "%s", self->path);
    return FALSE;
}

/* One line at `p`; NULL when it is not whole. Sets the text's place. */
static const char *next_line(const char *p, guint64 *ret_cell, const char **ret_text,
                             gsize *ret_size)
{
    char *end;
    *ret_cell = g_ascii_strtoull(p, &end, 10);
    if (end == p || *end != ',')
        return NULL;
    const char *number = end + 1;
    guint64 size = g_ascii_strtoull(number, &end, 10);
    if (end == number || *end != ',')
        return NULL;
    *ret_text = end + 1;
    if (strlen(*ret_text) <= size || (*ret_text)[size] != '\n')
        return NULL;
    *ret_size = (gsize)size;
    return *ret_text + size + 1;
}

/* Walks the whole lines; bytes up to the end of the last one. `lines` may be NULL. */
static gsize read_lines(const char *path, const char *digest, char **lines, guint64 n)
{
    g_autofree char *data = NULL, *head = g_strconcat(HEAD, digest, "\n", NULL);
    if (!g_file_get_contents(path, &data, NULL, NULL) || !g_str_has_prefix(data, head))
        return 0;
    const char *p = data + strlen(head), *text, *after;
    guint64 cell;
    gsize size;
    while ((after = next_line(p, &cell, &text, &size))) {
        if (lines && cell < n) {
            g_free(lines[cell]);
            lines[cell] = g_strndup(text, size);
        }
        p = after;
    }
    return (gsize)(p - data);
}

void sweep_journal_read(const char *path, const char *digest, char **lines, guint64 n)
{
    read_lines(path, digest, lines, n);
}

SweepJournal *sweep_journal_open(const char *path, const char *digest, gboolean go_on,
                                 GError **error)
{
    SweepJournal *self = g_new0(SweepJournal, 1);
    g_mutex_init(&self->lock);
    self->path = g_strdup(path);
    gsize whole = go_on ? read_lines(path, digest, NULL, 0) : 0;
    g_autofree char *head = g_strconcat(HEAD, digest, "\n", NULL);
    self->empty = (off_t)strlen(head);
    self->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (self->fd < 0 || ftruncate(self->fd, (off_t)whole) != 0 ||
        lseek(self->fd, 0, SEEK_END) < 0 ||
        (whole == 0 && !write_all(self->fd, head, strlen(head)))) {
        fail(self, error);
        sweep_journal_close(self);
        return NULL;
    }
    return self;
}

gboolean sweep_journal_add(SweepJournal *self, guint64 cell, const char *text, GError **error)
{
    g_autofree char *line =
        g_strdup_printf("%" G_GUINT64_FORMAT ",%" G_GSIZE_FORMAT ",%s\n", cell, strlen(text), text);
    g_mutex_lock(&self->lock);
    gboolean ok = write_all(self->fd, line, strlen(line)) && fdatasync(self->fd) == 0;
    if (!ok)
        fail(self, error);
    g_mutex_unlock(&self->lock);
    return ok;
}

void sweep_journal_close(SweepJournal *self)
{
    if (self == NULL)
        return;
    if (self->fd >= 0) {
        if (lseek(self->fd, 0, SEEK_END) == self->empty)
            unlink(self->path); /* nothing to go on from */
        close(self->fd);
    }
    g_mutex_clear(&self->lock);
    g_free(self->path);
    g_free(self);
}
