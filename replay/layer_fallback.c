/* The layer runtime where it is not built: says so. */
#include "base/error.h"
#include "replay/layer.h"

static gboolean none(GError **error)
{
    g_set_error_literal(error, KV_ERROR, KV_ERROR_UNSUPPORTED,
                        "the layer runtime runs on an NVIDIA GPU, and this build has no CUDA "
                        "(meson setup -Dcuda=enabled, with nvcc)");
    return FALSE;
}

gboolean layer_available(gint device, GError **error)
{
    return none(error);
}

LayerEngine *layer_engine_new(const LayerConfig *config, GError **error)
{
    none(error);
    return NULL;
}

void layer_engine_free(LayerEngine *self)
{
}

const LayerMemory *layer_engine_memory(const LayerEngine *self)
{
    g_assert_not_reached();
}

gdouble layer_engine_read_rate(LayerEngine *self)
{
    return 0;
}

void layer_engine_describe(const LayerEngine *self, JsonBuilder *builder)
{
}

gboolean layer_engine_cell(LayerEngine *self, gint32 rows, const gint32 *lens, GError **error)
{
    return none(error);
}

gint layer_engine_workers(LayerEngine *self, const Route *route)
{
    return 0;
}

gboolean layer_engine_measure(LayerEngine *self, const Route *route, const PluginChoice *splits,
                              gint repeats, gint64 check_bytes, LayerTimes *ret, GError **error)
{
    return none(error);
}

gboolean layer_engine_check(LayerEngine *self, const Route *route, const PluginChoice *splits,
                            gboolean whole, LayerCheck *ret, GError **error)
{
    return none(error);
}
