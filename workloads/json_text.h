/* JSON text, written straight: shortest numbers that read back the same, fixed decimals where
 * asked.
 *
 * (json-glib prints every real with 17 digits, which turns 0.1 into 0.10000000000000001.) Commas
 * and indentation are kept by the writer; names and texts are escaped; what is not UTF-8 is
 * replaced.
 */
#ifndef KV_WORKLOADS_JSON_TEXT_H
#define KV_WORKLOADS_JSON_TEXT_H

#include <glib.h>

typedef struct JsonText {
    GString *text;
    guint depth;
    gboolean fresh; /* nothing yet in the object or array at hand */
} JsonText;

void json_text_init(JsonText *self);
char *json_text_finish(JsonText *self); /* the text, with a last line end. Free it */
void json_text_begin(JsonText *self, const char *name,
                     char open); /* '{' or '['; name NULL in arrays */
void json_text_end(JsonText *self, char close);
void json_text_string(JsonText *self, const char *name, const char *value); /* NULL = null */
void json_text_int(JsonText *self, const char *name, gint64 value);
void json_text_real(JsonText *self, const char *name, double value); /* not finite = null */
/* The text as it stands, which must be JSON (a number with fixed decimals ...). */
void json_text_raw(JsonText *self, const char *name, const char *value);

#endif
