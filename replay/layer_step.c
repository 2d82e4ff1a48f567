/* A step's pieces in order, directly or into a graph. */
#include "replay/layer_engine.h"

guint layer_stage_group(LayerStage stage)
{
    switch (stage) {
    case STAGE_QKV:
    case STAGE_O:
    case STAGE_GATE_UP:
    case STAGE_DOWN:
    case STAGE_HEAD:
        return GROUP_GEMM;
    case STAGE_ATTENTION:
        return GROUP_ATTENTION;
    default:
        return GROUP_OTHER;
    }
}

static gboolean linear(LayerEngine *self, LayerGemm gemm, gint layer, gconstpointer x, gpointer y,
                       GError **error)
{
    gint32 m, k;
    layer_gemm_size(&self->config.shape, gemm, &m, &k);
    return cublas_linear(self->blas, self->config.shape.attn.dtype == ATTN_BF16, m,
                         self->cell.bucket, k, layer_weights(self, gemm, layer), x, y, error);
}

static gboolean norm(LayerEngine *self, gconstpointer delta, GError **error)
{
    TRY_ATTN(layer_device_norm(self->config.shape.attn.dtype, self->normed, self->residual, delta,
                               self->cell.bucket, self->config.shape.hidden, self->stream,
                               &attn_error));
    return TRUE;
}

static gboolean elementwise(LayerEngine *self, LayerStage stage, gint layer, GError **error)
{
    const LayerShape *s = &self->config.shape;
    const gint32 rows = self->cell.bucket;
    const AttnDtype dtype = s->attn.dtype;
    if (stage == STAGE_EMBED) {
        TRY_ATTN(layer_device_embed(dtype, self->residual, self->weights[LAYER_HEAD], self->best,
                                    rows, s->hidden, s->vocabulary, self->stream, &attn_error));
    } else if (stage == STAGE_ROPE) {
        const AttnPool pool = layer_pool(self, layer);
        TRY_ATTN(layer_device_rope(&s->attn, &pool, &self->batch, self->qkv, self->q, self->angles,
                                   self->stream, &attn_error));
    } else if (stage == STAGE_SILU) {
        TRY_ATTN(layer_device_silu(dtype, self->activated, self->gate_up, rows, s->feed_forward,
                                   self->stream, &attn_error));
    } else {
        g_assert(stage == STAGE_SAMPLE);
        TRY_ATTN(layer_device_sample(dtype, self->best, self->logits, rows, s->vocabulary,
                                     !self->config.greedy, self->config.seed, self->batch.lens,
                                     self->stream, &attn_error));
    }
    return TRUE;
}

gboolean layer_run_stage(LayerEngine *self, LayerStage stage, gint layer, GError **error)
{
    switch (stage) {
    case STAGE_NORM_ATTENTION: /* what the layer before added to the stream */
        return norm(self, layer > 0 ? self->delta : NULL, error);
    case STAGE_NORM_MLP:
    case STAGE_NORM_HEAD:
        return norm(self, self->delta, error);
    case STAGE_QKV:
        return linear(self, LAYER_QKV, layer, self->normed, self->qkv, error);
    case STAGE_O:
        return linear(self, LAYER_O, layer, self->attended, self->delta, error);
    case STAGE_GATE_UP:
        return linear(self, LAYER_GATE_UP, layer, self->normed, self->gate_up, error);
    case STAGE_DOWN:
        return linear(self, LAYER_DOWN, layer, self->activated, self->delta, error);
    case STAGE_HEAD:
        return linear(self, LAYER_HEAD, 0, self->normed, self->logits, error);
    case STAGE_ATTENTION: {
        const AttnPool pool = layer_pool(self, layer);
        TRY_ATTN(
            attn_cuda_run(self->attn, &pool, &self->batch, &self->plan, self->stream, &attn_error));
        return TRUE;
    }
    default:
        return elementwise(self, stage, layer, error);
    }
}

static gboolean stage(LayerEngine *self, LayerStage which, gint layer, guint groups, LayerHook hook,
                      gpointer data, GError **error)
{
    if ((layer_stage_group(which) & groups) == 0)
        return TRUE;
    return (hook == NULL || hook(data, which, layer, error)) &&
           layer_run_stage(self, which, layer, error);
}

gboolean layer_run_step(LayerEngine *self, guint groups, LayerHook hook, gpointer data,
                        GError **error)
{
    const gint layers = self->config.layers;
    gboolean ok = stage(self, STAGE_EMBED, 0, groups, hook, data, error);
    for (gint layer = 0; ok && layer < layers; layer++)
        for (LayerStage s = STAGE_NORM_ATTENTION; ok && s <= STAGE_DOWN; s++)
            ok = stage(self, s, layer, groups, hook, data, error);
    for (LayerStage s = STAGE_NORM_HEAD; ok && s <= STAGE_SAMPLE; s++)
        ok = stage(self, s, layers, groups, hook, data, error);
    return ok;
}

/* --- plans and graphs --- */

gboolean layer_plan(LayerEngine *self, const AttnPlanConfig *config, AttnPlan *plan, GError **error)
{
    const AttnShape *shape = &self->config.shape.attn;
    const gint32 rows = self->cell.bucket;
    const gint32 *lens = cuda_table_host_lens(self->table);
    AttnStatus status = ATTN_OK;
    if (config->route == ATTN_PERSISTENT) /* planned on the device */
        plan->config = *config;
    else
        status = attn_plan_build(plan, config, shape, rows, lens);
    if (status == ATTN_OK)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "planning: %s", attn_strerror(status));
    return FALSE;
}

gboolean layer_upload(LayerEngine *self, gint64 *ret_bytes, GError **error)
{
    TRY_ATTN(attn_cuda_upload(self->attn, &self->plan, self->stream, ret_bytes, &attn_error));
    return TRUE;
}

gboolean layer_capture(LayerEngine *self, guint groups, cudaGraph_t *ret, GError **error)
{
    TRY_CUDA(cudaStreamBeginCapture(self->stream, cudaStreamCaptureModeThreadLocal), "capture");
    const gboolean queued = layer_run_step(self, groups, NULL, NULL, error);
    const cudaError_t e = cudaStreamEndCapture(self->stream, ret);
    if (!queued)
        cudaGetLastError();
    return queued && cuda_ok(e, "capture", error);
}
