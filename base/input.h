/* Inputs: a file, gzip, zstd or standard input ("-"), read once, by bytes or by lines.
 *
 * The compression is taken from the first bytes, not from the name. The first `INPUT_PEEK` bytes
 * can be looked at before reading (for probing), from a pipe too. Memory is a fixed buffer that
 * grows only for a line longer than it; a line over `INPUT_LINE_MAX` is an error. Lines end at LF;
 * a CR before it is taken off; the last line needs no LF. SHA-256 of the bytes as stored (before
 * decompression) is kept as the reading goes on.
 */
#ifndef KV_BASE_INPUT_H
#define KV_BASE_INPUT_H

#include <glib.h>

#define INPUT_PEEK (64 * 1024)
#define INPUT_LINE_MAX (256u << 20)

typedef struct Input Input;
/* Refuses a directory, a missing or unreadable file (INPUT, named). */
Input *input_open(const char *path, GError **error);
/* Reads from memory (not copied, must outlive the Input); for tests and fuzzing. */
Input *input_open_memory(const char *name, const void *data, gsize size);
void input_free(Input *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Input, input_free)

const char *input_name(const Input *self);    /* for messages: the path, or "standard input" */
guint64 input_line_number(const Input *self); /* of the line last returned, from 1 */
guint64 input_bytes_read(const Input *self);  /* stored bytes so far */
gint64 input_size(const Input *self);         /* stored bytes in all; -1 for a pipe */
const char *input_sha256(Input *self);        /* of what was read so far, hex; owned by the Input */

/* First bytes (decompressed), at most INPUT_PEEK, without consuming them. */
gboolean input_peek(Input *self, const char **ret_data, gsize *ret_size, GError **error);
/* Next chunk of bytes, valid until the next call. 1 = got some, 0 = end, -1 = error. */
int input_read(Input *self, const char **ret_data, gsize *ret_size, GError **error);
/* Next line without its end, valid until the next call; data[len] is '\0' and may be written to.
 * 1 = got one, 0 = end, -1 = error. Do not mix with input_read(). */
int input_line(Input *self, char **ret_line, gsize *ret_len, GError **error);

/* Sets an INPUT error "NAME:LINE: ..." for the line last returned. Returns FALSE. */
gboolean input_error(const Input *self, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

#endif
