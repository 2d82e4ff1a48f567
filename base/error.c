#include "base/error.h"

#include <stdarg.h>

G_DEFINE_QUARK(kv - error - quark, kv_error)

int kv_error_exit_status(const GError *error)
{
    if (error == NULL)
        return 0;
    if (error->domain != KV_ERROR)
        return 1;
    switch ((KvError)error->code) {
    case KV_ERROR_INPUT:
    case KV_ERROR_USAGE:
        return 2;
    case KV_ERROR_INTERRUPTED:
        return 130;
    case KV_ERROR_MACHINE:
    case KV_ERROR_UNSUPPORTED:
        break;
    }
    return 1;
}

void kv_set_errno(GError **error, KvError code, int errno_value, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, KV_ERROR, code, "%s: %s", what, g_strerror(errno_value));
}
