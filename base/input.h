/* Inputs: a file, gzip, zstd or standard input ("-"), read once, by bytes or by lines.
 *
 * The compression is taken from the first bytes, not from the name. The first `INPUT_PEEK` bytes
 * can be looked at before reading (for probing), from a pipe too. Memory is a fixed buffer that
 * grows only for a line longer than it; a line over `INPUT_LINE_MAX` is an error. Lines end at LF;
 * a CR before it is taken off, a UTF-8 byte order mark before the first too; the last line needs no
 * LF; a NUL byte in a line is an error. On request the SHA-256 of the bytes as stored (before
 * decompression) is kept as the reading goes on: about 0.6 ns a byte where the processor has
 * instructions for it, 3 to 5 ns elsewhere.
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
/* Keeps the SHA-256 from here on; to be called before anything is read or peeked at. */
void input_set_hash(Input *self);
/* Of the stored bytes taken so far, hex, owned by the Input until asked again; NULL unless
 * input_set_hash() was called. Reading is ahead of what was handed out: ask at the end, or after
 * input_drain(). */
const char *input_sha256(Input *self);
/* Takes the stored bytes that are left, unparsed, so that the hash covers the whole file. */
gboolean input_drain(Input *self, GError **error);

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
