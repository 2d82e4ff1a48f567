/* Parsing a command's line: options, help and completion, the same way for every command.
 *
 * --help prints the command's own options, --help-all those of every group; --list-options prints
 * bare option names for completion. GOption's own help is off, since it exits by itself.
 */
#ifndef KV_CLI_PARSE_H
#define KV_CLI_PARSE_H

#include "cli/command.h"

typedef enum {
    PARSE_GO,     /* run the command */
    PARSE_DONE,   /* help was printed: the command returns TRUE */
    PARSE_FAILED, /* error is set */
} ParseOutcome;

/* `usage` is what follows the command's name ("[LOG | SCENARIO.ini]"), `text` the description and
 * examples under the options, `entries` the command's own options (NULL-ended; NULL = none). */
GOptionContext *command_context(const Invocation *inv, const char *usage, const char *text,
                                const GOptionEntry *entries);
/* Takes options out of argv; what is left are argv[0] and the positional arguments, at most
 * `max_positional` of them. */
ParseOutcome command_parse(GOptionContext *context, int max_positional, int *argc, char ***argv,
                           GError **error);

#endif
