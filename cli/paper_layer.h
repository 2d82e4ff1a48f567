/* layer.csv under way: the study, a cell's figures, and how a line of them is written. Private to
 * cli/paper_layer*.c.
 */
#ifndef KV_CLI_PAPER_LAYER_H
#define KV_CLI_PAPER_LAYER_H

#include "cli/paper_run.h"
#include "replay/bench.h"
#include "replay/layer.h"
#include "replay/policy.h"
#include "sim/gpus.h"

enum { LAYER_ROUTES = 16 };

typedef struct LayerStudy {
    PaperRun *run;
    const PaperLayer *options;
    ReplayConfig config; /* routes and splits */
    BenchConfig cells;   /* cells */
    Route route[LAYER_ROUTES];
    Candidate candidate[LAYER_ROUTES]; /* counts of the cell in hand */
    guint n;
    DeviceProfile *profile;
    const GpuInfo *gpu;
    PaperCsv csv;
    JsonBuilder *json;
    JsonNode *about; /* the device; NULL = counted */
    /* the model in hand */
    ModelInfo model;
    LayerShape shape;
    gint layers;
    LayerMemory memory;
    LayerEngine *engine; /* NULL = counted */
    double read_rate;    /* bytes a microsecond */
    char *floor_of;
} LayerStudy;

typedef struct LayerCellFigures {
    const BenchCell *cell;
    gint32 *lens;
    gint32 bucket, kv_sets;
    gint64 pages;
    LayerWork work;
    char *sums; /* its memory, in words */
    char *note; /* why it was not run; NULL */
} LayerCellFigures;

extern const char paper_layer_header[];
/* A line of layer.csv; `times` NULL = counted alone. */
void paper_layer_line(LayerStudy *self, const LayerCellFigures *f, guint route,
                      const LayerTimes *times, const char *chosen_by);

#endif
