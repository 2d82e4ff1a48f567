/* JSON logs: one object a line, or one document, with fields read by name and errors that say
 * where.
 *
 * Functions that read a field take the node (NULL = not there, an error that names the field) and
 * the field's name for the message. A number in quotes counts as the number: several logs write
 * them so.
 */
#ifndef KV_WORKLOADS_JSON_INPUT_H
#define KV_WORKLOADS_JSON_INPUT_H

#include "base/input.h"
#include "base/ns.h"
#include "workloads/json_doc.h"

typedef struct JsonInput JsonInput;
JsonInput *json_input_new(Input *input); /* borrowed */
void json_input_free(JsonInput *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JsonInput, json_input_free)

/* Next line that is not blank, an object. 1 = got one, 0 = end, -1 = error. */
int json_input_next(JsonInput *self, GError **error);
/* All that is left as one value. */
gboolean json_input_document(JsonInput *self, GError **error);
/* Parses a text that came out of another (JSON in a string); nodes of the input stay valid. `line`
 * is for messages. Free with json_input_free. */
JsonInput *json_input_nested(const JsonInput *outer, const char *text, gsize len, const JNode *at,
                             GError **error);

const JNode *json_root(const JsonInput *self);
guint64 json_line(const JsonInput *self, const JNode *node); /* NULL = of the record */
/* Member of an object; NULL if absent, if null, and if `object` is NULL or none. */
const JNode *json_member(const JsonInput *self, const JNode *object, const char *name);
/* The first of "a|b|c" that is there. */
const JNode *json_any(const JsonInput *self, const JNode *object, const char *names);
/* Children of an object or array; NULL at the end. An INTS array has none. */
const JNode *json_first(const JsonInput *self, const JNode *parent);
const JNode *json_next(const JsonInput *self, const JNode *parent, const JNode *child);

gboolean json_i64(const JsonInput *self, const JNode *node, const char *name, gint64 min,
                  gint64 max, gint64 *ret, GError **error);
gboolean json_tokens(const JsonInput *self, const JNode *node, const char *name, gint64 *ret,
                     GError **error); /* 0 .. 2^31-1 */
gboolean json_time(const JsonInput *self, const JNode *node, const char *name, kv_ns unit,
                   kv_ns *ret, GError **error); /* decimal number of `unit` ns */
gboolean json_real(const JsonInput *self, const JNode *node, const char *name, double *ret,
                   GError **error);
/* Whole numbers of an array; an absent or empty array gives none. */
gboolean json_ids(const JsonInput *self, const JNode *node, const char *name,
                  const guint64 **ret_ids, gsize *ret_n, GError **error);
/* Walks an array's elements whatever they are: an INTS array has no nodes for them. */
typedef struct JsonCursor {
    const JsonInput *json;
    const JNode *array, *child;
    guint64 i;
} JsonCursor;
void json_cursor_init(JsonCursor *self, const JsonInput *json, const JNode *array);
gboolean json_cursor_i64(JsonCursor *self, const char *name, gint64 min, gint64 max, gint64 *ret,
                         GError **error);
/* null counts as KV_NS_NONE. */
gboolean json_cursor_time(JsonCursor *self, const char *name, kv_ns unit, kv_ns *ret,
                          GError **error);
const JNode *json_cursor_node(JsonCursor *self); /* NULL for the numbers of an INTS array */
guint64 json_length(const JNode *array);         /* elements; 0 if it is none */

/* Text with its escapes resolved; NULL when absent or no string. Free it. */
char *json_text(const JNode *node);
gboolean json_text_is(const JNode *node, const char *text);
gboolean json_error(const JsonInput *self, const JNode *node, const char *name,
                    const char *expected, GError **error);

#endif
