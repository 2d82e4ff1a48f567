/* --map: which column or field of an unknown log is what.
 *
 *   prompt=ContextTokens,output=GeneratedTokens,arrival=TIMESTAMP:iso,session=user.id
 *
 * Targets: arrival, sent, prompt, output, total (prompt + output; gives the missing one), session,
 * turn, wait, priority, class, deadline, ttft, e2e. A time takes a unit after ':' (iso, s, ms, us,
 * ns); without one it is found out from the first rows (time_unit.h) and noted, or refused when
 * unclear. Quotes keep
 * ',' and ':' in a name: "a:b".
 */
#ifndef KV_WORKLOADS_COLUMN_MAP_H
#define KV_WORKLOADS_COLUMN_MAP_H

#include "workloads/format.h"

typedef enum {
    MAP_ARRIVAL,
    MAP_SENT,
    MAP_WAIT,
    MAP_DEADLINE,
    MAP_TTFT,
    MAP_E2E, /* times first */
    MAP_PROMPT,
    MAP_OUTPUT,
    MAP_TOTAL,
    MAP_TURN,
    MAP_PRIORITY,
    MAP_SESSION,
    MAP_CLASS,
    MAP_TARGETS,
} MapTarget;
#define MAP_TIMES MAP_PROMPT

typedef struct ColumnMap {
    char *names[MAP_TARGETS]; /* NULL = not mapped */
    kv_ns units[MAP_TIMES];   /* 0 = to be found out, KV_NS_NONE = iso */
} ColumnMap;

ColumnMap *column_map_parse(const char *text, GError **error);
void column_map_free(ColumnMap *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ColumnMap, column_map_free)
const char *map_target_name(MapTarget target);

/* The text of a target in the row at hand: NULL = not there or empty. */
typedef const char *(*MapFetch)(gpointer row, MapTarget target, gsize *ret_len);
typedef struct MapState {
    ColumnMap *map;
    Input *input;
    GPtrArray *classes;
    struct SessionNames *names;
    Observed observed;
} MapState;
/* Fills `record` (initialised, with its line) from the row. */
gboolean map_record(MapState *self, MapFetch fetch, gpointer row, LogRecord *record,
                    GError **error);
/* Finds out the units that were not named from up to 1000 rows' texts of each time target: `times`
 * holds MAP_TIMES arrays of double. */
gboolean map_units(ColumnMap *map, GArray *const *times, const Input *input, FormatNotes *notes,
                   GError **error);

#endif
