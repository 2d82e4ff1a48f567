#include "plots/perfetto.h"

#include "base/error.h"

gboolean perfetto_write(const PerfettoRequest *request, Progress *progress, GError **error)
{
    g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED, "no trace writer yet");
    return FALSE;
}
