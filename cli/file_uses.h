/* The files that a command line names, held against one another before anything is done.
 *
 * A command lists what it reads and what it writes; file_uses_check() then refuses an empty name,
 * an output that is also an input or another output (the same file by device and inode, or the same
 * path with links followed; by rename the later one would replace the earlier), two outputs on
 * standard output, and an output that cannot be made: what takes an hour to measure is not to fail
 * at its last line. Devices and pipes are exempt: they are written in place. NULL is "not given".
 * Borrows the texts until it is freed.
 *
 * USAGE error for names, MACHINE error "FILE: cannot be written: ..." for the place.
 */
#ifndef KV_CLI_FILE_USES_H
#define KV_CLI_FILE_USES_H

#include <glib.h>

typedef struct FileUses FileUses;
FileUses *file_uses_new(void);
void file_uses_free(FileUses *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FileUses, file_uses_free)

/* `option` is for messages: "--csv"; NULL for a positional argument. */
void file_uses_in(FileUses *self, const char *option, const char *path);
void file_uses_in_all(FileUses *self, const char *option, char **paths); /* NULL or NULL-ended */
void file_uses_out(FileUses *self, const char *option, const char *path);
/* A folder to be made and filled: its name alone is looked at. */
void file_uses_folder(FileUses *self, const char *option, const char *path);
gboolean file_uses_check(const FileUses *self, GError **error);

#endif
