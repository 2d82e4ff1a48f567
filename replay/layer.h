/* The whole decode step of a model, as far as its shape goes: what `paper --runtime layer` runs.
 *
 * A step is, for one GPU of `tp`: embedding; L times { norm, QKV product, rotary positions with the
 * new entry's place in the pool, attention by one of our routes, O product, norm, gate and up
 * product, SiLU, down product }; norm, LM head, and the choice of a token. Weights are random
 * (seeded), products are cuBLAS's, attention is planned and executed as by the cuda backend. The L
 * layers are one CUDA graph for a batch bucket (a power of two of rows; rows to fill it up are
 * empty). The all-reduces of tp > 1 are not run.
 *
 * The first part (shapes, work, memory) needs no GPU and no cuBLAS. Sizes are of one GPU: heads,
 * feed-forward width and vocabulary are shared out, the residual stream is not. A product of k
 * inputs and m outputs on n rows is 2 m n k FLOP and reads m k weights. Times are microseconds.
 *
 * Memory: weights of all L layers are held where they take at most half of what is free; else
 * `weight_sets` of them are used in turn. K and V likewise, `kv_sets` by cell. Both are told.
 *
 * Errors: UNSUPPORTED for shapes that the engines do not have and for builds and machines without
 * CUDA or cuBLAS, MACHINE from the GPU.
 */
#ifndef KV_REPLAY_LAYER_H
#define KV_REPLAY_LAYER_H

#include <json-glib/json-glib.h>

#include "replay/route.h"
#include "sim/model_info.h"

/* --- shape, work, memory: no GPU --- */

typedef enum {
    LAYER_QKV,
    LAYER_O,
    LAYER_GATE_UP,
    LAYER_DOWN,
    LAYER_HEAD, /* once a step */
    LAYER_GEMMS
} LayerGemm;

typedef struct LayerShape {
    gint32 layers, tp;
    gint32 hidden;
    gint32 feed_forward, vocabulary; /* one GPU's; the vocabulary rounded up to 8 */
    AttnShape attn;                  /* one GPU's heads */
} LayerShape;
gboolean layer_shape_init(LayerShape *ret, const ModelInfo *model, gint tp, gint page_size,
                          AttnDtype dtype, GError **error);
void layer_gemm_size(const LayerShape *shape, LayerGemm gemm, gint32 *ret_outputs,
                     gint32 *ret_inputs);
gint32 layer_bucket(gint32 rows); /* the power of two that holds them */

/* Of a step of `layers` layers. Bytes: weights, inputs and outputs; attention: K and V, q and
 * outputs; others: activations. */
typedef struct LayerWork {
    double gemm_flop, gemm_bytes;
    double attention_flop, attention_bytes;
    double other_bytes;
} LayerWork;
void layer_work(const LayerShape *shape, gint layers, gint32 bucket, gint32 rows,
                const gint32 *lens, LayerWork *ret);

typedef struct LayerMemory {
    gint64 weights, head; /* bytes: one layer's; embedding and LM head */
    gint64 page;          /* bytes: K and V of a page, one layer */
    gint64 activations;   /* for the largest bucket, with the work spaces */
    gint64 free;
    gint32 layers, weight_sets;
    gint64 kv; /* bytes for pages of all sets */
} LayerMemory;
/* How `free` bytes are shared out: pages for as many sets of the largest cell (`most` pages) as
 * there is room for. FALSE + MACHINE error with the sums when not even one layer and one set of the
 * smallest cell (`least`) fit. */
gboolean layer_memory_plan(const LayerShape *shape, gint layers, gint32 bucket, gint32 longest,
                           gint64 least, gint64 most, gint64 free, LayerMemory *ret,
                           GError **error);
gint32 layer_kv_sets(const LayerMemory *self, gint64 pages); /* 0 = the cell does not fit */
/* Bytes of a step with nothing shared. */
gint64 layer_memory_needed(const LayerMemory *self, gint64 pages);
/* "weights 15.0 + K and V 4.0 + work space 0.2 = 19.2 GiB of 139.0". Free it. */
char *layer_memory_text(const LayerMemory *self, gint64 pages);

/* --- on a GPU --- */

typedef struct LayerConfig {
    LayerShape shape;
    gint layers; /* captured; the model's */
    gint device;
    guint64 seed;
    gint32 max_rows;                /* of a cell, 1 to 1024 */
    gint32 max_len;                 /* of a row */
    gint64 least_pages, most_pages; /* of the cells to come (layer_cell_pages) */
    gboolean greedy;                /* no Gumbel noise */
} LayerConfig;

enum { LAYER_GROWTH = 64, LAYER_MAX_ROWS = 1024 }; /* entries that a cell's rows may grow by */
gint64 layer_cell_pages(const AttnShape *shape, gint32 rows, const gint32 *lens);

typedef struct LayerTimes {
    gint repeats;
    gint kernels;                 /* nodes of the graph */
    double graph_us;              /* the step's graph, by events */
    double attention_us, gemm_us; /* graph less the one without attention; a graph of products */
    double other_us;              /* the rest of the graph */
    double direct_us;             /* launched one by one, events between pieces: */
    double direct_attention_us, direct_gemm_us, direct_other_us;
    double wall_us;      /* host's clock: tables, plan, launch, synchronised */
    double table_us;     /* of that: block tables and lengths brought forward */
    double plan_us;      /* planning and its upload */
    double launch_us;    /* the call that launches the graph */
    gint steps, updates; /* steps so measured; those whose plan did not fit the captured graph */
    double update_us;    /* what one such update took, mean; 0 = none */
    gint64 upload_bytes; /* of a step, median */
    AttnCounts counts;   /* of one layer */
    gint checked_rows;   /* attention of the last layer, against fp64 */
    double max_abs_err, mean_abs_err;
} LayerTimes;

/* Largest differences found when a step is run piece by piece and each piece is made again in fp64
 * from what the device gave it; relative to |value| + the piece's mean magnitude. */
typedef struct LayerCheck {
    double gemm[LAYER_GEMMS];
    double norm, rope, silu;
    double attention_max, attention_mean; /* absolute */
    gint64 values;                        /* compared */
    gint tokens_wrong, embeddings_wrong;
} LayerCheck;
gboolean layer_check_passes(AttnDtype dtype, const LayerCheck *check);

typedef struct LayerEngine LayerEngine;
/* Can it run here? FALSE + the reason. */
gboolean layer_available(gint device, GError **error);
LayerEngine *layer_engine_new(const LayerConfig *config, GError **error);
void layer_engine_free(LayerEngine *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LayerEngine, layer_engine_free)
const LayerMemory *layer_engine_memory(const LayerEngine *self);
gdouble layer_engine_read_rate(LayerEngine *self); /* bytes a microsecond, measured */
/* Adds name, driver, toolkit, cublas. */
void layer_engine_describe(const LayerEngine *self, JsonBuilder *builder);
/* The batch to come: lengths with the new entry. */
gboolean layer_engine_cell(LayerEngine *self, gint32 rows, const gint32 *lens, GError **error);
/* CTAs that a plan for `route` should be told, for the cell. */
gint layer_engine_workers(LayerEngine *self, const Route *route);
/* Captures and measures the cell by `route`. `check_bytes`: K and V that the check may read. */
gboolean layer_engine_measure(LayerEngine *self, const Route *route, const PluginChoice *splits,
                              gint repeats, gint64 check_bytes, LayerTimes *ret, GError **error);
/* The cell piece by piece: first, second and last layer. `whole`: every value, not a sample. */
gboolean layer_engine_check(LayerEngine *self, const Route *route, const PluginChoice *splits,
                            gboolean whole, LayerCheck *ret, GError **error);

#endif
