#include "plots/plots.h"

#include "base/error.h"

gboolean report_write(const char *run_folder, const char *path, GError **error)
{
    g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED, "no report writer yet");
    return FALSE;
}
