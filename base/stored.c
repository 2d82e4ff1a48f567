#include "base/stored.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/error.h"

#define RAW_SIZE (128 * 1024)
#define MAGIC_SIZE 4

typedef enum { NOT_KNOWN, PLAIN, GZIP, ZSTD } Packing;

struct Stored {
    const char *name;
    int fd;
    guint64 bytes;
    EVP_MD_CTX *hash; /* NULL = not asked for */
    Packing packing;
    /* stored bytes taken and not yet used: a window of `buffer`, or of the caller's memory */
    guchar *buffer;
    const guchar *raw;
    gsize raw_len;
    gboolean raw_end;
    gboolean inside; /* a member or frame is begun and not ended */
    z_stream *inflate;
    ZSTD_DStream *zstd;
};

Stored *stored_new_fd(const char *name, int fd)
{
    Stored *self = g_new0(Stored, 1);
    self->name = name;
    self->fd = fd;
    self->buffer = g_malloc(RAW_SIZE);
    return self;
}

Stored *stored_new_memory(const char *name, const void *data, gsize size)
{
    Stored *self = g_new0(Stored, 1);
    self->name = name;
    self->fd = -1;
    self->raw = data;
    self->raw_len = self->bytes = size;
    self->raw_end = TRUE;
    return self;
}

void stored_free(Stored *self)
{
    if (self == NULL)
        return;
    if (self->inflate != NULL)
        inflateEnd(self->inflate);
    g_free(self->inflate);
    ZSTD_freeDStream(self->zstd);
    EVP_MD_CTX_free(self->hash);
    if (self->fd > STDIN_FILENO)
        close(self->fd);
    g_free(self->buffer);
    g_free(self);
}

guint64 stored_bytes(const Stored *self)
{
    return self->bytes;
}

void stored_set_hash(Stored *self)
{
    self->hash = EVP_MD_CTX_new();
    int good = EVP_DigestInit_ex(self->hash, EVP_sha256(), NULL);
    g_assert(good == 1);   /* built into the library */
    if (self->raw_len > 0) /* memory: all of it is taken at once */
        EVP_DigestUpdate(self->hash, self->raw, self->raw_len);
}

void stored_hash(const Stored *self, char ret_text[SHA256_TEXT_SIZE])
{
    guchar digest[SHA256_TEXT_SIZE / 2];
    EVP_MD_CTX *copy = EVP_MD_CTX_new(); /* closing a digest ends it: close a copy */
    EVP_MD_CTX_copy_ex(copy, self->hash);
    EVP_DigestFinal_ex(copy, digest, NULL);
    EVP_MD_CTX_free(copy);
    for (gsize i = 0; i < sizeof digest; i++)
        g_snprintf(ret_text + 2 * i, 3, "%02x", digest[i]);
}

static gboolean bad(const Stored *self, GError **error, const char *what)
{
    g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "%s: %s", self->name, what);
    return FALSE;
}

static gssize take(Stored *self, void *to, gsize size, GError **error)
{
    ssize_t n;
    do
        n = read(self->fd, to, size);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        kv_set_errno(error, KV_ERROR_INPUT, errno, "%s: cannot be read", self->name);
        return -1;
    }
    if (n == 0)
        self->raw_end = TRUE;
    self->bytes += (guint64)n;
    if (self->hash != NULL && n > 0)
        EVP_DigestUpdate(self->hash, to, (gsize)n);
    return n;
}

/* More stored bytes behind those in the window. FALSE on error; at the end nothing is added. */
static gboolean refill(Stored *self, GError **error)
{
    if (self->raw_end)
        return TRUE;
    if (self->raw_len > 0)
        memmove(self->buffer, self->raw, self->raw_len);
    self->raw = self->buffer;
    gssize n = take(self, self->buffer + self->raw_len, RAW_SIZE - self->raw_len, error);
    if (n < 0)
        return FALSE;
    self->raw_len += (gsize)n;
    return TRUE;
}

static gboolean want(Stored *self, gsize size, GError **error)
{
    while (self->raw_len < size && !self->raw_end)
        if (!refill(self, error))
            return FALSE;
    return TRUE;
}

static void use(Stored *self, gsize size)
{
    self->raw += size;
    self->raw_len -= size;
}

static Packing packing_of(const guchar *raw, gsize len)
{
    if (len >= 2 && raw[0] == 0x1f && raw[1] == 0x8b)
        return GZIP;
    if (len < MAGIC_SIZE)
        return PLAIN;
    if (memcmp(raw, "\x28\xb5\x2f\xfd", MAGIC_SIZE) == 0)
        return ZSTD;
    if ((raw[0] & 0xf0) == 0x50 && memcmp(raw + 1, "\x2a\x4d\x18", 3) == 0)
        return ZSTD; /* a skippable frame in front */
    return PLAIN;
}

static gboolean set_up(Stored *self, GError **error)
{
    if (!want(self, MAGIC_SIZE, error))
        return FALSE;
    self->packing = packing_of(self->raw, self->raw_len);
    if (self->packing == GZIP) {
        self->inflate = g_new0(z_stream, 1);
        int status = inflateInit2(self->inflate, 15 + 16);
        g_assert(status == Z_OK); /* only memory can be lacking */
    } else if (self->packing == ZSTD) {
        self->zstd = ZSTD_createDStream();
    }
    return TRUE;
}

/* Between members: *ret_more tells whether another one begins. */
static gboolean next_member(Stored *self, gboolean *ret_more, GError **error)
{
    *ret_more = FALSE;
    if (!want(self, MAGIC_SIZE, error))
        return FALSE;
    if (packing_of(self->raw, self->raw_len) == self->packing) {
        *ret_more = self->inside = TRUE;
        if (self->packing == GZIP)
            inflateReset(self->inflate);
        return TRUE;
    }
    while (self->raw_len > 0) {
        if (*self->raw != 0)
            return bad(self, error, "text after the end of the compressed data");
        use(self, 1);
        if (!want(self, 1, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean step_gzip(Stored *self, char *to, gsize size, gsize *ret_got, GError **error)
{
    z_stream *z = self->inflate;
    z->next_in = (Bytef *)self->raw;
    z->avail_in = (uInt)MIN(self->raw_len, G_MAXINT);
    z->next_out = (Bytef *)to;
    z->avail_out = (uInt)MIN(size, G_MAXINT);
    uInt in = z->avail_in, out = z->avail_out;
    int status = inflate(z, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        return bad(self, error, "damaged gzip data");
    self->inside = status != Z_STREAM_END;
    use(self, in - z->avail_in);
    *ret_got = out - z->avail_out;
    return TRUE;
}

static gboolean step_zstd(Stored *self, char *to, gsize size, gsize *ret_got, GError **error)
{
    ZSTD_inBuffer in = {self->raw, self->raw_len, 0};
    ZSTD_outBuffer out = {to, size, 0};
    gsize status = ZSTD_decompressStream(self->zstd, &out, &in);
    if (ZSTD_isError(status)) {
        g_autofree char *what =
            g_strdup_printf("damaged zstd data (%s)", ZSTD_getErrorName(status));
        return bad(self, error, what);
    }
    self->inside = status != 0;
    use(self, in.pos);
    *ret_got = out.pos;
    return TRUE;
}

static gssize read_packed(Stored *self, char *to, gsize size, GError **error)
{
    gsize got = 0;
    while (got == 0) {
        gboolean more;
        if (!self->inside) {
            if (!next_member(self, &more, error))
                return -1;
            if (!more)
                return 0;
        }
        if (self->raw_len == 0 && !refill(self, error))
            return -1;
        gsize before = self->raw_len;
        if (!(self->packing == GZIP ? step_gzip : step_zstd)(self, to, size, &got, error))
            return -1;
        if (got == 0 && before == self->raw_len && self->inside) {
            if (!self->raw_end) { /* needs more than the window holds */
                if (!refill(self, error))
                    return -1;
                continue;
            }
            bad(self, error, "cut short: the compressed data has no end");
            return -1;
        }
    }
    return (gssize)got;
}

static gssize read_plain(Stored *self, char *to, gsize size, GError **error)
{
    if (self->raw_len == 0)
        return self->raw_end ? 0 : take(self, to, size, error);
    gsize n = MIN(size, self->raw_len);
    memcpy(to, self->raw, n);
    use(self, n);
    return (gssize)n;
}

gssize stored_read(Stored *self, char *to, gsize size, GError **error)
{
    g_assert(size > 0);
    if (self->packing == NOT_KNOWN && !set_up(self, error))
        return -1;
    return (self->packing == PLAIN ? read_plain : read_packed)(self, to, size, error);
}

gboolean stored_drain(Stored *self, GError **error)
{
    self->raw_len = 0;
    while (!self->raw_end) {
        if (take(self, self->buffer, RAW_SIZE, error) < 0)
            return FALSE;
    }
    return TRUE;
}
