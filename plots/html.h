/* Pieces of an HTML page. Everything that comes from a log goes through html_text(). */
#ifndef KV_PLOTS_HTML_H
#define KV_PLOTS_HTML_H

#include <json-glib/json-glib.h>

/* Escapes & < > " ' and drops control characters; invalid UTF-8 becomes U+FFFD. */
void html_text(GString *page, const char *text);
/* Four significant digits, thousands set apart: 22,361,870; 0.03125; 1.2e-5. */
void html_number(GString *page, double value);
void html_count(GString *page, gint64 value);
/* JSON inside <script>: "<" is written \u003c, so that no text can end the element. */
void html_json(GString *page, const char *json);
/* "data:TYPE;base64,..." */
void html_data_uri(GString *page, const char *type, const char *data, gsize size);
/* A value of summary.json in words. */
void html_json_value(GString *page, JsonNode *node);

#endif
