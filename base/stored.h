/* Stored bytes, made plain: gzip and zstd undone, anything else passed through.
 *
 * The layer below input.h: a Stored reads a file descriptor or memory and fills a caller's buffer
 * with decompressed bytes. The compression shows in the first bytes; several gzip members or zstd
 * frames behind one another count as one stream. Data that ends inside a member is an error, so is
 * text behind the last one (zero bytes, which tapes and block devices leave, are let pass).
 */
#ifndef KV_BASE_STORED_H
#define KV_BASE_STORED_H

#include <glib.h>

typedef struct Stored Stored;
/* `name` for messages, borrowed. Owns `fd`, and closes it unless it is standard input. */
Stored *stored_new_fd(const char *name, int fd);
Stored *stored_new_memory(const char *name, const void *data, gsize size);
void stored_free(Stored *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Stored, stored_free)

/* Up to `size` bytes into `to`. Bytes got, 0 = end, -1 = error. */
gssize stored_read(Stored *self, char *to, gsize size, GError **error);
/* Reads what is left without decompressing it, for the hash and the count. */
gboolean stored_drain(Stored *self, GError **error);
guint64 stored_bytes(const Stored *self); /* stored bytes taken so far */
/* Keeps the SHA-256 of each stored byte taken; to be called before the first. */
void stored_set_hash(Stored *self);
#define SHA256_TEXT_SIZE 65
/* Of the bytes taken so far, in hex. */
void stored_hash(const Stored *self, char ret_text[SHA256_TEXT_SIZE]);

#endif
