#include "cli/parse.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

GOptionContext *command_context(const Invocation *inv, const char *usage, const char *text,
                                const GOptionEntry *entries)
{
    g_autofree char *line = g_strdup_printf("%s - %s", usage, inv->command->summary);
    GOptionContext *context = g_option_context_new(line);
    g_option_context_set_help_enabled(context, FALSE);
    g_autofree char *description =
        g_strdup_printf("%s\n  --help, --help-all  this text; with every option\n", text);
    g_option_context_set_description(context, description);
    if (entries != NULL)
        g_option_context_add_main_entries(context, entries, NULL);
    return context;
}

/* GOption prints "Usage:\n  PROGRAM [OPTION...] ..."; we add the command's name to the program's.
 */
static void print_help(GOptionContext *context, const char *command)
{
    g_autofree char *help = g_option_context_get_help(context, FALSE, NULL);
    const char *program = g_get_prgname() != NULL ? g_get_prgname() : "kvreplay";
    char *at = strstr(help, program);
    if (at != NULL)
        printf("%.*skvreplay %s%s", (int)(at - help), help, command, at + strlen(program));
    else
        fputs(help, stdout);
}

/* Bare option names: the words that begin with "--" at the start of help lines. */
static void print_options(GOptionContext *context)
{
    g_autofree char *help = g_option_context_get_help(context, FALSE, NULL);
    g_auto(GStrv) lines = g_strsplit(help, "\n", -1);
    for (char **l = lines; *l != NULL; l++) {
        const char *p = *l;
        while (*p == ' ')
            p++;
        if (p[0] == '-' && p[1] != '-' && p[2] == ',')
            p += 4;
        if (!g_str_has_prefix(p, "--") || p == *l)
            continue;
        printf("%.*s\n", (int)strcspn(p, " =,["), p);
    }
}

ParseOutcome command_parse(GOptionContext *context, int max_positional, int *argc, char ***argv,
                           GError **error)
{
    g_set_prgname("kvreplay");
    for (int i = 1; i < *argc && strcmp((*argv)[i], "--") != 0; i++) {
        const char *word = (*argv)[i];
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
            strcmp(word, "--help-all") == 0) {
            print_help(context, (*argv)[0]);
            return PARSE_DONE;
        }
        if (strcmp(word, "--list-options") == 0) {
            print_options(context);
            return PARSE_DONE;
        }
    }
    if (!g_option_context_parse(context, argc, argv, error))
        return PARSE_FAILED;
    if (*argc > 1 && strcmp((*argv)[1], "--") == 0) {
        memmove(*argv + 1, *argv + 2, sizeof(char *) * (gsize)(*argc - 1));
        (*argc)--;
    }
    if (*argc - 1 > max_positional) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "'%s' is one argument too many (see --help)",
                    (*argv)[1 + max_positional]);
        return PARSE_FAILED;
    }
    return PARSE_GO;
}
