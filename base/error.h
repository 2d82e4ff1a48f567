/* One error domain for the whole program.
 *
 * The code says who has to act, and main() turns it into the exit status:
 *   INPUT        a file or stream holds something wrong        exit 2, message "FILE:LINE: ..."
 *   USAGE        the command line or scenario is wrong          exit 2
 *   MACHINE      disk, memory, gnuplot, GPU, driver             exit 1
 *   UNSUPPORTED  right, but not built in or not possible here   exit 1
 *   INTERRUPTED  SIGINT or SIGTERM; what is whole was kept       exit 130
 * Messages are one line, name file:line and the offending text, and say what was expected.
 * Library code returns errors and never prints. Programming errors are asserts, never GErrors.
 */
#ifndef KV_BASE_ERROR_H
#define KV_BASE_ERROR_H

#include <glib.h>

typedef enum {
    KV_ERROR_INPUT,
    KV_ERROR_USAGE,
    KV_ERROR_MACHINE,
    KV_ERROR_UNSUPPORTED,
    KV_ERROR_INTERRUPTED,
} KvError;

#define KV_ERROR (kv_error_quark())
GQuark kv_error_quark(void);

/* Exit status for an error (1, 2 or 130); errors of other domains count as the machine's (1). */
int kv_error_exit_status(const GError *error);

/* Sets an error of `code` whose text is the format followed by ": " and strerror(errno_value). */
void kv_set_errno(GError **error, KvError code, int errno_value, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

#endif
