/* Policies `paper-v1` and `paper-v2`: the published gates (arXiv 2606.26666, first and later
 * release).
 *
 * Of shapes with G = 4: one row takes the buckets, eight or more the work queue; everything else
 * FlashInfer. The later release also sends steps whose longest row is under 16384 tokens to
 * FlashInfer, and with that most one-row steps of its own bucketed trace. Where FlashInfer is not
 * among the routes, workqueue-fused stands in for it, and the note says so.
 */
#include "base/error.h"
#include "replay/policy.h"

typedef struct Paper {
    Policy base;
    guint32 least_max_length;
    guint buckets, workqueue, flashinfer;
    gboolean replaced;
} Paper;

static Policy *paper_new(const PolicyOps *ops, guint32 least_max_length)
{
    Paper *self = g_new0(Paper, 1);
    self->base.ops = ops;
    self->least_max_length = least_max_length;
    return &self->base;
}

static Policy *v1_create(gconstpointer config, const DeviceProfile *profile, GError **error)
{
    return paper_new(&policy_paper_v1, 0);
}

static Policy *v2_create(gconstpointer config, const DeviceProfile *profile, GError **error)
{
    return paper_new(&policy_paper_v2, 16384);
}

static gboolean paper_begin(Policy *base, const Candidate *candidates, guint n, GError **error)
{
    Paper *self = (Paper *)base;
    const gint buckets = policy_find(candidates, n, "buckets");
    const gint queue = policy_find(candidates, n, "workqueue");
    gint peer = policy_find(candidates, n, "flashinfer");
    self->replaced = peer < 0;
    if (peer < 0)
        peer = policy_find(candidates, n, "workqueue-fused");
    if (buckets < 0 || queue < 0 || peer < 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                    "policy %s: --routes must hold buckets, workqueue, and flashinfer or "
                    "workqueue-fused in its place",
                    base->ops->info.name);
        return FALSE;
    }
    self->buckets = (guint)buckets;
    self->workqueue = (guint)queue;
    self->flashinfer = (guint)peer;
    return TRUE;
}

static guint paper_choose(Policy *base, const StepFeatures *step, const Candidate *candidates,
                          guint n)
{
    const Paper *self = (const Paper *)base;
    if (attn_group(&step->shape) != 4 || step->max_length < self->least_max_length)
        return self->flashinfer;
    if (step->rows == 1)
        return self->buckets;
    return step->rows >= 8 ? self->workqueue : self->flashinfer;
}

static const char *paper_note(const Policy *base)
{
    return ((const Paper *)base)->replaced
               ? "flashinfer is not among the routes: its gates fall to workqueue-fused"
               : NULL;
}

static void paper_free(Policy *base)
{
    g_free(base);
}

const PolicyOps policy_paper_v1 = {
    .info = {"paper-v1", "the published gates, first release (G = 4: 1 row buckets, 8 workqueue)",
             NULL, 0},
    .create = v1_create,
    .begin = paper_begin,
    .choose = paper_choose,
    .note = paper_note,
    .free = paper_free,
};

const PolicyOps policy_paper_v2 = {
    .info = {"paper-v2", "the published gates, later release (and longest row >= 16384)", NULL, 0},
    .create = v2_create,
    .begin = paper_begin,
    .choose = paper_choose,
    .note = paper_note,
    .free = paper_free,
};
