#include "workloads/column_map.h"

#include <string.h>

#include "base/error.h"
#include "workloads/field.h"
#include "workloads/names.h"
#include "workloads/time_unit.h"

static const char *const target_names[MAP_TARGETS] = {
    "arrival", "sent",  "wait", "deadline", "ttft",    "e2e",   "prompt",
    "output",  "total", "turn", "priority", "session", "class",
};

const char *map_target_name(MapTarget target)
{
    return target_names[target];
}

void column_map_free(ColumnMap *self)
{
    if (self == NULL)
        return;
    for (guint i = 0; i < MAP_TARGETS; i++)
        g_free(self->names[i]);
    g_free(self);
}

static gboolean usage(GError **error, const char *what, const char *expected)
{
    g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "map: '%s': expected %s", what, expected);
    return FALSE;
}

/* A name at *p, quoted or up to one of `stops`; moves *p behind it. */
static char *take_name(const char **p, const char *stops)
{
    if (**p != '"') {
        gsize n = strcspn(*p, stops);
        char *name = g_strndup(*p, n);
        *p += n;
        return g_strstrip(name);
    }
    const char *end = strchr(*p + 1, '"');
    if (end == NULL)
        return NULL;
    char *name = g_strndup(*p + 1, (gsize)(end - *p - 1));
    *p = end + 1;
    return name;
}

static gboolean parse_unit(const char *text, kv_ns *ret)
{
    static const struct {
        const char *name;
        kv_ns unit;
    } units[] = {{"iso", KV_NS_NONE}, {"s", KV_SECOND}, {"ms", KV_MS}, {"us", KV_US}, {"ns", 1}};
    for (guint i = 0; i < G_N_ELEMENTS(units); i++) {
        if (strcmp(units[i].name, text) == 0) {
            *ret = units[i].unit;
            return TRUE;
        }
    }
    return FALSE;
}

static gboolean parse_item(ColumnMap *self, const char **p, GError **error)
{
    const char *start = *p;
    g_autofree char *target = take_name(p, "=,");
    if (target == NULL || **p != '=')
        return usage(error, start, "TARGET=COLUMN[:unit]");
    guint t = 0;
    while (t < MAP_TARGETS && strcmp(target, target_names[t]) != 0)
        t++;
    if (t == MAP_TARGETS)
        return usage(
            error, target,
            "arrival, sent, wait, deadline, ttft, e2e, prompt, output, total, turn, priority, "
            "session or class");
    ++*p;
    g_autofree char *name = take_name(p, t < MAP_TIMES ? ":," : ",");
    if (name == NULL || name[0] == '\0' || self->names[t] != NULL)
        return usage(error, start, "one column for each target");
    self->names[t] = g_steal_pointer(&name);
    if (**p == ':' && t < MAP_TIMES) {
        ++*p;
        g_autofree char *unit = take_name(p, ",");
        if (!parse_unit(unit, &self->units[t]))
            return usage(error, unit, "iso, s, ms, us or ns");
    }
    if (**p != ',' && **p != '\0')
        return usage(error, *p, "a comma");
    return TRUE;
}

ColumnMap *column_map_parse(const char *text, GError **error)
{
    g_autoptr(ColumnMap) self = g_new0(ColumnMap, 1);
    if (text == NULL) {
        usage(error, "", "--map prompt=COLUMN,output=COLUMN,arrival=COLUMN[:unit]");
        return NULL;
    }
    for (const char *p = text; *p != '\0';) {
        if (!parse_item(self, &p, error))
            return NULL;
        p += *p == ',';
    }
    if (self->names[MAP_PROMPT] == NULL && self->names[MAP_TOTAL] == NULL) {
        usage(error, text, "a column for prompt (or total and output)");
        return NULL;
    }
    return g_steal_pointer(&self);
}

gboolean map_units(ColumnMap *map, GArray *const *times, const Input *input, FormatNotes *notes,
                   GError **error)
{
    for (guint t = 0; t < MAP_TIMES; t++) {
        g_autofree char *reason = NULL;
        if (map->names[t] == NULL || map->units[t] != 0)
            continue;
        if (t != MAP_ARRIVAL && map->names[MAP_ARRIVAL] != NULL && map->units[MAP_ARRIVAL] > 0) {
            map->units[t] = map->units[MAP_ARRIVAL]; /* one log, one unit */
            continue;
        }
        if (times[t]->len == 0) {
            map->units[t] = KV_NS_NONE; /* no bare numbers: calendar times */
            continue;
        }
        map->units[t] =
            time_unit_choose((const double *)(gpointer)times[t]->data, times[t]->len, 0, &reason);
        if (map->units[t] == 0) {
            g_set_error(
                error, KV_ERROR, KV_ERROR_INPUT,
                "%s:1: column '%s': unit of time unclear (%s): expected it named, as in %s=%s:ms",
                input_name(input), map->names[t], reason[0] != '\0' ? reason : "too few rows",
                target_names[t], map->names[t]);
            return FALSE;
        }
        g_autofree char *note = g_strdup_printf("column '%s' read as %s (%s)", map->names[t],
                                                time_unit_name(map->units[t]), reason);
        format_note(notes, note);
    }
    return TRUE;
}

/* --- records --- */

static gboolean bad(MapState *self, MapTarget t, const LogRecord *r, const char *text, gsize len,
                    const char *expected, GError **error)
{
    g_autofree char *what = g_strdup_printf("column '%s'", self->map->names[t]);
    return field_error(self->input, r->line, error, what, text, len, expected);
}

static gboolean get_time(MapState *self, MapFetch fetch, gpointer row, MapTarget t,
                         const LogRecord *r, kv_ns *ret, GError **error)
{
    gsize len = 0;
    const char *text = self->map->names[t] != NULL ? fetch(row, t, &len) : NULL;
    *ret = KV_NS_NONE;
    if (text == NULL)
        return TRUE;
    gboolean iso = self->map->units[t] == KV_NS_NONE;
    if (iso ? field_calendar(text, len, ret) : field_time(text, len, self->map->units[t], ret))
        return TRUE;
    return bad(self, t, r, text, len, iso ? "a time like 2023-11-16 18:15:46.68" : "a number",
               error);
}

static gboolean get_i64(MapState *self, MapFetch fetch, gpointer row, MapTarget t,
                        const LogRecord *r, gint64 min, gint64 max, gint64 *ret, GError **error)
{
    gsize len = 0;
    const char *text = self->map->names[t] != NULL ? fetch(row, t, &len) : NULL;
    if (text == NULL)
        return TRUE;
    gint64 v;
    if (!field_i64(text, len, &v) || v < min || v > max)
        return bad(self, t, r, text, len, "a whole number of tokens or turns", error);
    *ret = v;
    return TRUE;
}

static gboolean get_lengths(MapState *self, MapFetch fetch, gpointer row, LogRecord *r,
                            GError **error)
{
    gint64 total = -1, turn = 0, priority = 0;
    if (!get_i64(self, fetch, row, MAP_PROMPT, r, 0, G_MAXINT32, &r->prompt, error) ||
        !get_i64(self, fetch, row, MAP_OUTPUT, r, 0, G_MAXINT32, &r->output, error) ||
        !get_i64(self, fetch, row, MAP_TOTAL, r, 0, G_MAXINT32, &total, error) ||
        !get_i64(self, fetch, row, MAP_TURN, r, 0, G_MAXINT32, &turn, error) ||
        !get_i64(self, fetch, row, MAP_PRIORITY, r, G_MININT32, G_MAXINT32, &priority, error))
        return FALSE;
    r->turn = (gint32)turn;
    r->priority = (gint32)priority;
    if (total < 0)
        return TRUE;
    if (r->prompt >= 0 && r->output < 0 && total >= r->prompt)
        r->output = total - r->prompt;
    else if (r->output >= 0 && r->prompt < 0 && total >= r->output)
        r->prompt = total - r->output;
    else if (r->prompt + r->output != total) {
        gsize len;
        const char *text = fetch(row, MAP_TOTAL, &len);
        return bad(self, MAP_TOTAL, r, text, len, "prompt + output", error);
    }
    return TRUE;
}

static gboolean get_times(MapState *self, MapFetch fetch, gpointer row, LogRecord *r,
                          GError **error)
{
    Observed *o = &self->observed;
    *o = (Observed){.queue = KV_NS_NONE};
    if (!get_time(self, fetch, row, MAP_ARRIVAL, r, &r->arrival, error) ||
        !get_time(self, fetch, row, MAP_SENT, r, &r->sent, error) ||
        !get_time(self, fetch, row, MAP_WAIT, r, &r->wait, error) ||
        !get_time(self, fetch, row, MAP_DEADLINE, r, &r->deadline, error) ||
        !get_time(self, fetch, row, MAP_TTFT, r, &o->ttft, error) ||
        !get_time(self, fetch, row, MAP_E2E, r, &o->e2e, error))
        return FALSE;
    o->has_sent = r->sent != KV_NS_NONE;
    if (o->ttft != KV_NS_NONE || o->e2e != KV_NS_NONE || o->has_sent)
        r->observed = o;
    if (r->arrival != KV_NS_NONE) {
        gsize len;
        r->arrival_text = fetch(row, MAP_ARRIVAL, &len);
        r->arrival_len = len;
    } else if (self->map->names[MAP_ARRIVAL] == NULL) {
        r->arrival = 0;
    } else if (r->wait == KV_NS_NONE || r->session == KV_NO_SESSION) {
        return bad(self, MAP_ARRIVAL, r, NULL, 0, "a time, or the wait of a session's later turn",
                   error);
    }
    return TRUE;
}

gboolean map_record(MapState *self, MapFetch fetch, gpointer row, LogRecord *r, GError **error)
{
    gsize len = 0;
    const char *text = self->map->names[MAP_SESSION] != NULL ? fetch(row, MAP_SESSION, &len) : NULL;
    if (text != NULL)
        r->session = session_number(self->names, text, len, &r->turn);
    gint32 counted = r->turn;
    if (!get_lengths(self, fetch, row, r, error) || !get_times(self, fetch, row, r, error))
        return FALSE;
    if (self->map->names[MAP_TURN] == NULL)
        r->turn = counted;
    text = self->map->names[MAP_CLASS] != NULL ? fetch(row, MAP_CLASS, &len) : NULL;
    if (text != NULL)
        r->klass = format_class(self->classes, text, len);
    return TRUE;
}
