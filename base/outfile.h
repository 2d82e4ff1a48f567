/* Outputs that appear under their final name only when complete.
 *
 * out_file_new(PATH) writes PATH.part in the same folder; out_file_commit() flushes, checks,
 * syncs and renames. Freed without commit, the .part is removed, unless out_file_keep() said that
 * what is whole should stay (an interrupted run) and there is any. While it is open the .part is
 * locked: a second writer of the same name is refused, in this program or another. Every write
 * error (a full disk) surfaces at commit at the latest, as an error and never as a truncated file
 * called done. PATH "-" is standard output: no .part, commit flushes and checks it.
 */
#ifndef KV_BASE_OUTFILE_H
#define KV_BASE_OUTFILE_H

#include <glib.h>
#include <stdio.h>

typedef struct OutFile OutFile;
OutFile *out_file_new(const char *path, GError **error);
FILE *out_file_stream(OutFile *self); /* owned by the OutFile */
/* TRUE while no write has failed; cheap, for long loops. */
gboolean out_file_ok(OutFile *self, GError **error);
void out_file_keep(OutFile *self);
gboolean out_file_commit(OutFile *self, GError **error);
void out_file_free(OutFile *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OutFile, out_file_free)

/* mkdir -p, with the reason when it fails (a file in the way, no permission). */
gboolean out_folder_make(const char *path, GError **error);
/* Flushes and checks standard output before a success is reported. */
gboolean out_stdout_check(GError **error);

#endif
