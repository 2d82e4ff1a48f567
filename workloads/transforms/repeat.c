/* Repeat: the whole stream several times over, one mean gap (or `gap`) between the copies.
 *
 * The stream below is opened anew for each copy, so memory does not grow with the log; standard
 * input cannot be repeated. Each copy's sessions are its own; block keys are the same in all copies
 * (the same requests again) unless keys=fresh.
 */
#include "base/error.h"
#include "workloads/key_set.h"
#include "workloads/transforms/transforms.h"

typedef struct RepeatConfig {
    gint64 times;
    kv_ns gap;
    int keys;
} RepeatConfig;

typedef struct Repeat {
    RequestSource base;
    RepeatConfig config;
    TransformArgs args;
    GPtrArray *copies; /* RequestSource *; the last one is being read */
    kv_ns shift, last;
    guint64 given; /* of this copy */
    GArray *fresh; /* guint64: keys of the request last given, when fresh */
} Repeat;

static void adopt(Repeat *self, guint copy, Request *r)
{
    if (r->session != KV_NO_SESSION)
        r->session = r->session * self->config.times + copy;
    if (self->config.keys == 0 || r->n_blocks == 0)
        return;
    g_array_set_size(self->fresh, 0);
    for (guint i = 0; i < r->n_blocks; i++) {
        guint64 key = key_mix(r->blocks[i] + copy * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15));
        g_array_append_val(self->fresh, key);
    }
    r->blocks = (const guint64 *)(gpointer)self->fresh->data;
}

static gboolean next_copy(Repeat *self, GError **error)
{
    kv_ns own = self->last - self->shift;
    kv_ns mean = self->given > 1 ? own / (kv_ns)(self->given - 1) : 0;
    RequestSource *copy = self->args.reopen(self->args.reopen_data, self->args.index, error);
    if (copy == NULL)
        return FALSE;
    g_ptr_array_add(self->copies, copy);
    self->shift = self->last + (self->config.gap != KV_NS_NONE ? self->config.gap : mean);
    self->given = 0;
    return TRUE;
}

static int repeat_next(RequestSource *base, Request *ret, GError **error)
{
    Repeat *self = (Repeat *)base;
    for (;;) {
        guint copy = self->copies->len - 1;
        int got = request_source_next(g_ptr_array_index(self->copies, copy), ret, error);
        if (got < 0)
            return -1;
        if (got == 1) {
            self->given++;
            if (ret->arrival > G_MAXINT64 / 2 - self->shift) {
                g_set_error(error, KV_ERROR, KV_ERROR_USAGE,
                            "transform repeat: arrivals past 146 years");
                return -1;
            }
            ret->arrival += self->shift;
            ret->sent += self->shift;
            self->last = ret->arrival;
            adopt(self, copy, ret);
            return 1;
        }
        if (copy + 1 == (guint64)self->config.times || self->given == 0)
            return 0;
        if (!next_copy(self, error))
            return -1;
    }
}

static int repeat_next_turn(RequestSource *base, const Request *finished, kv_ns now, Request *ret,
                            GError **error)
{
    Repeat *self = (Repeat *)base;
    if (finished->session == KV_NO_SESSION)
        return 0;
    guint copy = (guint)(finished->session % self->config.times);
    Request own = *finished;
    own.session /= self->config.times;
    int got =
        request_source_next_turn(g_ptr_array_index(self->copies, copy), &own, now, ret, error);
    if (got == 1)
        adopt(self, copy, ret);
    return got;
}

static void free_copy(gpointer source)
{
    request_source_free(source);
}

static void repeat_free(RequestSource *base)
{
    Repeat *self = (Repeat *)base;
    g_ptr_array_unref(self->copies);
    g_array_unref(self->fresh);
    g_free(self);
}

static const RequestSourceOps repeat_ops = {"repeat", repeat_next, repeat_next_turn, repeat_free};

static RequestSource *repeat_wrap(gconstpointer config, RequestSource *inner,
                                  const TransformArgs *args, guint index, FormatNotes *notes,
                                  GError **error)
{
    Repeat *self = g_new0(Repeat, 1);
    self->base.ops = &repeat_ops;
    self->config = *(const RepeatConfig *)config;
    if (self->config.gap < 0)
        self->config.gap = KV_NS_NONE;
    self->args = *args;
    self->args.index = index;
    self->copies = g_ptr_array_new_with_free_func(free_copy);
    self->fresh = g_array_new(FALSE, FALSE, sizeof(guint64));
    g_ptr_array_add(self->copies, inner);
    return &self->base;
}

static const SpecOption repeat_options[] = {
    {"times", SPEC_INT, G_STRUCT_OFFSET(RepeatConfig, times), NULL, 1, 1e6, NULL, "copies in all"},
    {"gap", SPEC_TIME, G_STRUCT_OFFSET(RepeatConfig, gap), "-1s", -1, 1e9, NULL,
     "from a copy's last arrival to the next one's first; -1s = the mean gap"},
    {"keys", SPEC_CHOICE, G_STRUCT_OFFSET(RepeatConfig, keys), "same", 0, 0, "same|fresh",
     "block keys of the copies"},
    {NULL},
};

const TransformOps transform_repeat = {
    .info = {"repeat", "the whole stream several times over", repeat_options, sizeof(RepeatConfig)},
    .wrap = repeat_wrap,
};
