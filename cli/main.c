/* main(): a walk over the command table; the only place that prints errors and picks exit statuses. */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

static void print_commands(FILE *out)
{
    fprintf(out, "usage: kvreplay COMMAND [OPTION...]\n\n");
    for (const Command *c = commands; c->name != NULL; c++)
        fprintf(out, "  %-12s %s\n", c->name, c->summary);
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        print_commands(argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    for (const Command *c = commands; c->name != NULL; c++) {
        if (strcmp(c->name, argv[1]) != 0)
            continue;
        Invocation inv = {.command = c};
        g_autoptr(GError) error = NULL;
        if (c->run(&inv, argc - 1, argv + 1, &error))
            return 0;
        fprintf(stderr, "kvreplay %s: %s\n", c->name, error->message);
        return kv_error_exit_status(error);
    }
    fprintf(stderr, "kvreplay: no command '%s'\n", argv[1]);
    print_commands(stderr);
    return 2;
}

const Command commands[] = {
    {NULL, NULL, NULL},
};
