/* The engine behind replay/layer.h, shared by layer_cuda.c (life), layer_step.c (pieces and
 * graphs), layer_measure.c and layer_check.c. Private to those.
 *
 * A step is a list of pieces (LayerStage) in order; run_step() queues those of the groups asked
 * for. Everything is on one stream; device arrays stay where they are from create to free, so that
 * a captured graph serves any lengths and block tables.
 */
#ifndef KV_REPLAY_LAYER_ENGINE_H
#define KV_REPLAY_LAYER_ENGINE_H

#include <cuda_runtime_api.h>

#include "base/error.h"
#include "kernels/cpu_engine.h"
#include "kernels/layer_device.h"
#include "replay/cublas.h"
#include "replay/cuda_table.h"
#include "replay/cuda_try.h"
#include "replay/layer.h"

#define LAYER_THETA 500000.0 /* of the rotary positions; Llama 3's */

typedef enum {
    STAGE_EMBED,
    STAGE_NORM_ATTENTION,
    STAGE_QKV,
    STAGE_ROPE,
    STAGE_ATTENTION,
    STAGE_O,
    STAGE_NORM_MLP,
    STAGE_GATE_UP,
    STAGE_SILU,
    STAGE_DOWN,
    STAGE_NORM_HEAD,
    STAGE_HEAD,
    STAGE_SAMPLE,
} LayerStage;
enum { GROUP_GEMM = 1, GROUP_ATTENTION = 2, GROUP_OTHER = 4, GROUP_ALL = 7 };
guint layer_stage_group(LayerStage stage);

typedef struct LayerCell {
    gint32 rows, bucket;
    gint32 *lens; /* [rows] as asked for */
    gint64 pages, sum;
    gint32 kv_sets;
    StepRow *row;  /* [bucket]; lengths of the step in hand */
    guint32 *page; /* all rows' ids, each with room to grow */
    AttnPool host; /* pages of the first host_rows rows in set host_set, for references */
    gint32 host_rows, host_set;
    gint32 *host_table, *host_offset;
} LayerCell;

/* Times that depend on the bucket alone, kept once they are measured; 0 = not yet. */
typedef struct LayerParts {
    double without_attention_us, gemm_us;
} LayerParts;
enum { LAYER_BUCKETS = 12 }; /* 1 .. 2048 rows */

struct LayerEngine {
    LayerConfig config;
    LayerMemory memory;
    struct cudaDeviceProp device;
    char driver[64];
    cudaStream_t stream;
    cudaEvent_t begin, end;
    cudaEvent_t *mark; /* [marks] between pieces */
    guint marks;
    gpointer workspace;
    Cublas *blas;
    AttnCuda *attn;
    gint64 max_tasks, max_slots;   /* of `attn` */
    gpointer weights[LAYER_GEMMS]; /* [sets][outputs][inputs]; the head: one */
    AttnPool arena;                /* pages of all sets */
    float *angles;
    gpointer residual, normed, delta, qkv, q, attended, gate_up, activated, logits;
    uint64_t *best;
    CudaTable *table;
    AttnCpu *cpu; /* references */
    LayerCell cell;
    AttnBatch batch;
    AttnPlan plan; /* that the stages run */
    LayerParts parts[LAYER_BUCKETS];
};

/* Weights of a layer's product, and the layer's pages. */
gconstpointer layer_weights(const LayerEngine *self, LayerGemm gemm, gint layer);
gint64 layer_weights_id(const LayerEngine *self, LayerGemm gemm, gint layer); /* layer_weight() */
AttnPool layer_pool(const LayerEngine *self, gint layer);
/* Room in the attention engine for plans of this size. */
gboolean layer_make_room(LayerEngine *self, gint64 tasks, gint64 slots, GError **error);
/* Rows back to the cell's lengths, tables as new on the device. */
gboolean layer_cell_begin(LayerEngine *self, GError **error);
/* All rows one entry longer, as the next step has them; the host's side and the copies. */
gboolean layer_cell_grow(LayerEngine *self, GError **error);

gboolean layer_run_stage(LayerEngine *self, LayerStage stage, gint layer, GError **error);
/* Called before each piece that is queued; NULL = nobody asks. */
typedef gboolean (*LayerHook)(gpointer data, LayerStage stage, gint layer, GError **error);
gboolean layer_run_step(LayerEngine *self, guint groups, LayerHook hook, gpointer data,
                        GError **error);
/* The plan of the rows in hand; builds no list for `persistent`. */
gboolean layer_plan(LayerEngine *self, const AttnPlanConfig *config, AttnPlan *plan,
                    GError **error);
gboolean layer_upload(LayerEngine *self, gint64 *ret_bytes, GError **error);
gboolean layer_capture(LayerEngine *self, guint groups, cudaGraph_t *ret, GError **error);
/* Attention of the last layer, as the last step left it, against fp64: rows whose K and V stay
 * within `bytes`, at least none. */
gboolean layer_check_attention(LayerEngine *self, gint64 bytes, gint *ret_rows, double *ret_max,
                               double *ret_mean, GError **error);

#endif
