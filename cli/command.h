/* Commands: a table of {name, flags, function, summary}; main() walks it.
 *
 * One file a command, with its own GOptionEntry array. A command gets argv with its own name first,
 * prints results on standard output and everything else on standard error, and returns FALSE +
 * error (main prints one line and picks the exit status, base/error.h).
 */
#ifndef KV_CLI_COMMAND_H
#define KV_CLI_COMMAND_H

#include <glib.h>

typedef struct Invocation {
    const struct Command *command;
    const volatile int *interrupted;
} Invocation;

typedef struct Command {
    const char *name;
    gboolean (*run)(const Invocation *inv, int argc, char **argv, GError **error);
    const char *summary;
} Command;

extern const Command commands[]; /* ends with name NULL */

#endif
