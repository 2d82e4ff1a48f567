#include "cli/file_uses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "base/error.h"

typedef enum { USE_IN, USE_OUT, USE_FOLDER } Use;

typedef struct FileUse {
    const char *option, *path;
    Use use;
} FileUse;

struct FileUses {
    GArray *all; /* FileUse */
};

FileUses *file_uses_new(void)
{
    FileUses *self = g_new(FileUses, 1);
    self->all = g_array_new(FALSE, FALSE, sizeof(FileUse));
    return self;
}

void file_uses_free(FileUses *self)
{
    if (self == NULL)
        return;
    g_array_unref(self->all);
    g_free(self);
}

static void add(FileUses *self, const char *option, const char *path, Use use)
{
    const FileUse file = {option != NULL ? option : "argument", path, use};
    if (path != NULL)
        g_array_append_val(self->all, file);
}

void file_uses_in(FileUses *self, const char *option, const char *path)
{
    add(self, option, path, USE_IN);
}

void file_uses_in_all(FileUses *self, const char *option, char **paths)
{
    for (; paths != NULL && *paths != NULL; paths++)
        add(self, option, *paths, USE_IN);
}

void file_uses_out(FileUses *self, const char *option, const char *path)
{
    add(self, option, path, USE_OUT);
}

void file_uses_folder(FileUses *self, const char *option, const char *path)
{
    add(self, option, path, USE_FOLDER);
}

static gboolean is_standard(const FileUse *file)
{
    return strcmp(file->path, "-") == 0;
}

/* Links followed; of a file that is not there yet, its folder's. */
static char *true_path(const char *path)
{
    char *real = realpath(path, NULL);
    if (real == NULL) {
        g_autofree char *folder = g_path_get_dirname(path), *base = g_path_get_basename(path);
        char *at = realpath(folder, NULL);
        char *joined = g_build_filename(at != NULL ? at : folder, base, NULL);
        free(at);
        return joined;
    }
    char *copy = g_strdup(real);
    free(real);
    return copy;
}

static gboolean same_file(const FileUse *x, const FileUse *y)
{
    GStatBuf a, b;
    if (is_standard(x) || is_standard(y))
        return is_standard(x) && is_standard(y);
    const gboolean have_a = g_stat(x->path, &a) == 0, have_b = g_stat(y->path, &b) == 0;
    if (have_a && have_b)
        return a.st_dev == b.st_dev && a.st_ino == b.st_ino && S_ISREG(a.st_mode);
    if (have_a || have_b)
        return FALSE;
    g_autofree char *p = true_path(x->path), *q = true_path(y->path);
    return strcmp(p, q) == 0;
}

static gboolean check_place(const FileUse *file, GError **error)
{
    GStatBuf st;
    if (is_standard(file))
        return TRUE;
    if (g_stat(file->path, &st) == 0 && S_ISDIR(st.st_mode)) {
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                    "%s: cannot be written: a folder is in the way", file->path);
        return FALSE;
    }
    if (g_stat(file->path, &st) == 0 && !S_ISREG(st.st_mode))
        return TRUE;
    g_autofree char *real = true_path(file->path);
    g_autofree char *folder = g_path_get_dirname(real);
    if (g_stat(folder, &st) != 0)
        kv_set_errno(error, KV_ERROR_MACHINE, errno, "%s: cannot be written", file->path);
    else if (!S_ISDIR(st.st_mode))
        kv_set_errno(error, KV_ERROR_MACHINE, ENOTDIR, "%s: cannot be written", file->path);
    else if (access(folder, W_OK | X_OK) != 0)
        kv_set_errno(error, KV_ERROR_MACHINE, errno, "%s: cannot be written", file->path);
    else
        return TRUE;
    return FALSE;
}

static gboolean check_pair(const FileUse *out, const FileUse *other, GError **error)
{
    if (!same_file(out, other))
        return TRUE;
    if (other->use == USE_IN && is_standard(out))
        return TRUE; /* a filter */
    if (other->use == USE_IN)
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s: %s is the input itself", out->option,
                    out->path);
    else
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s and %s both want %s", other->option,
                    out->option, is_standard(out) ? "standard output" : out->path);
    return FALSE;
}

gboolean file_uses_check(const FileUses *self, GError **error)
{
    for (guint i = 0; i < self->all->len; i++) {
        const FileUse *file = &g_array_index(self->all, FileUse, i);
        if (*file->path == '\0') {
            g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "%s: an empty name", file->option);
            return FALSE;
        }
    }
    for (guint i = 0; i < self->all->len; i++) {
        const FileUse *out = &g_array_index(self->all, FileUse, i);
        if (out->use != USE_OUT)
            continue;
        for (guint k = 0; k < self->all->len; k++) {
            const FileUse *other = &g_array_index(self->all, FileUse, k);
            if ((k < i || (k != i && other->use == USE_IN)) && other->use != USE_FOLDER &&
                !check_pair(out, other, error))
                return FALSE;
        }
    }
    for (guint i = 0; i < self->all->len; i++) {
        const FileUse *out = &g_array_index(self->all, FileUse, i);
        if (out->use == USE_OUT && !check_place(out, error))
            return FALSE;
    }
    return TRUE;
}
