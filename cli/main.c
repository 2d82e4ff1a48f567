/* main(): a walk over the command table; the only place that prints errors and picks exit statuses.
 */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/outfile.h"
#include "cli/command.h"
#include "cli/version.h"

static volatile int interrupted; /* set by the handler, read through Invocation */

static void on_signal(int number)
{
    if (interrupted)
        signal(number, SIG_DFL); /* a second one ends it the hard way */
    interrupted = 1;
}

static void install_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error, reported like any other */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file at its size limit */
}

static void print_commands(FILE *out)
{
    fprintf(out,
            "kvreplay %s: what LLM serving load costs the GPU, step by step\n\n"
            "usage: kvreplay COMMAND [OPTION...]\n\n",
            KVREPLAY_VERSION);
    for (const Command *c = commands; c->name != NULL; c++)
        fprintf(out, "  %-10s %s\n", c->name, c->summary);
    fprintf(out, "\nThe main job:  kvreplay run LOG.csv\n"
                 "Help:          kvreplay COMMAND --help   (--help-all for every option)\n"
                 "What is there: kvreplay list, kvreplay doctor\n");
}

static const Command *find_command(const char *name)
{
    for (const Command *c = commands; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static int run_command(const Command *command, int argc, char **argv)
{
    Invocation inv = {.command = command, .interrupted = &interrupted};
    g_autoptr(GError) error = NULL;
    if (command->run(&inv, argc, argv, &error) && out_stdout_check(&error))
        return 0;
    fprintf(stderr, "kvreplay %s: %s\n", command->name, error->message);
    if (error->domain == G_OPTION_ERROR)
        return 2;
    return kv_error_exit_status(error);
}

static int run_special(int argc, char **argv)
{
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0) {
        printf("kvreplay %s (%s)\n", KVREPLAY_VERSION, KVREPLAY_COMMIT);
        return 0;
    }
    if (strcmp(word, "--list-commands") == 0) {
        for (const Command *c = commands; c->name != NULL; c++)
            printf("%s\n", c->name);
        return 0;
    }
    const Command *c = argc > 2 ? find_command(argv[2]) : NULL;
    if (strcmp(word, "--list-options") == 0 && c != NULL) {
        char *help[] = {argv[2], (char *)(gpointer) "--list-options", NULL};
        return run_command(c, 2, help);
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        print_commands(stdout);
        return 0;
    }
    return -1;
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, ""); /* numbers stay in the C locale */
    install_signals();
    if (argc < 2) {
        print_commands(stderr);
        return 2;
    }
    const Command *command = find_command(argv[1]);
    if (command != NULL)
        return run_command(command, argc - 1, argv + 1);
    int status = run_special(argc, argv);
    if (status >= 0)
        return status;
    fprintf(stderr, "kvreplay: no command '%s'\n\n", argv[1]);
    print_commands(stderr);
    return 2;
}
