/* JSON that somebody else may have written: a file whose root is an object, and its members by name
 * and kind, where a member of another kind reads as one that is not there (json-glib's own getters
 * complain on standard error, or hand out NULL).
 *
 * Errors: INPUT, "FILE:LINE: ...". Files may be gzip or zstd; at most JSON_READ_MAX bytes, and
 * JSON_READ_DEPTH objects and arrays within one another: json-glib parses by recursion, so that it
 * is to be given no text that nests deeper.
 */
#ifndef KV_BASE_JSON_READ_H
#define KV_BASE_JSON_READ_H

#include <json-glib/json-glib.h>

enum { JSON_READ_MAX = 64 << 20, JSON_READ_DEPTH = 500 };

/* The line of the bracket that is one too deep; 0 = none is. */
guint64 json_too_deep(const char *text, gsize size);

/* `what` names it in messages: "a device profile". The node is the caller's, and holds an object.
 */
JsonNode *json_read_file(const char *path, const char *what, GError **error);

const char *json_member_text(JsonObject *o, const char *key, const char *absent);
double json_member_real(JsonObject *o, const char *key, double absent); /* a finite number */
gint64 json_member_int(JsonObject *o, const char *key, gint64 absent);
gboolean json_member_flag(JsonObject *o, const char *key);
JsonObject *json_member_object(JsonObject *o, const char *key); /* NULL = none; NULL gives NULL */

#endif
