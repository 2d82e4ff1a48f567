#include "plots/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "plots/plots.h"

struct GnuplotJob {
    char *folder, *name, *formats;
    GPid pid;
    int in, out, err;
    char *script;       /* what goes down the pipe */
    const char *unsent; /* the rest of it */
};

static const char *const endings[] = {".png", ".svg", ".pdf", ".axes"};

static void job_free(GnuplotJob *self)
{
    g_free(self->folder);
    g_free(self->name);
    g_free(self->formats);
    g_free(self->script);
    g_free(self);
}

static gboolean spawn(char **argv, const char *folder, GnuplotJob *job, GError **error)
{
    g_autoptr(GError) local = NULL;
    if (g_spawn_async_with_pipes(folder, argv, NULL,
                                 G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL,
                                 &job->pid, &job->in, &job->out, &job->err, &local))
        return TRUE;
    if (g_error_matches(local, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT))
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "%s", GNUPLOT_MISSING);
    else
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "gnuplot does not start: %s",
                    local->message);
    return FALSE;
}

static void sigpipe_ignore(struct sigaction *ret_before)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, ret_before);
}

/* Sends what the pipe takes now; closes it at the end or when gnuplot has gone away (its exit
 * status then says so). */
static void push(GnuplotJob *job)
{
    gsize left = strlen(job->unsent);
    gssize wrote = left > 0 ? write(job->in, job->unsent, left) : 0;
    gboolean gone = wrote < 0 && errno != EAGAIN && errno != EINTR;
    if (wrote > 0)
        job->unsent += wrote;
    if (gone || *job->unsent == '\0') {
        close(job->in);
        job->in = -1;
    }
}

GnuplotJob *gnuplot_job_start(const char *folder, const char *name, const char *script,
                              const char *formats, GError **error)
{
    char *argv[] = {(char *)"gnuplot", (char *)"-d", (char *)"-", NULL};
    GnuplotJob *job = g_new0(GnuplotJob, 1);
    if (!spawn(argv, folder, job, error)) {
        job_free(job);
        return NULL;
    }
    job->folder = g_strdup(folder);
    job->name = g_strdup(name);
    job->formats = g_strdup(formats);
    job->script = g_strdup_printf("FORMATS = '%s'\nSUFFIX = '.part'\n%s", formats, script);
    job->unsent = job->script;
    fcntl(job->in, F_SETFL, O_NONBLOCK);
    struct sigaction before;
    sigpipe_ignore(&before);
    push(job);
    sigaction(SIGPIPE, &before, NULL);
    return job;
}

/* Reads what there is; closes the pipe at its end. */
static void pull(int *fd, GString *into)
{
    char buffer[4096];
    gssize got = read(*fd, buffer, sizeof buffer);
    if (got > 0)
        g_string_append_len(into, buffer, got);
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
        close(*fd);
        *fd = -1;
    }
}

/* Moves bytes down the pipe and up from the two others until all are closed. */
static void converse(GnuplotJob *job, GString *out, GString *err)
{
    while (job->in >= 0 || job->out >= 0 || job->err >= 0) {
        struct pollfd fds[3] = {
            {job->in, POLLOUT, 0}, {job->out, POLLIN, 0}, {job->err, POLLIN, 0}};
        if (poll(fds, 3, -1) < 0)
            continue;
        if (fds[0].revents != 0)
            push(job);
        if (fds[1].revents != 0)
            pull(&job->out, out);
        if (fds[2].revents != 0)
            pull(&job->err, err);
    }
}

/* SIGPIPE is ignored for the time of the conversation, then as it was. */
static int run_to_end(GnuplotJob *job, GString *out, GString *err)
{
    struct sigaction before;
    sigpipe_ignore(&before);
    converse(job, out, err);
    sigaction(SIGPIPE, &before, NULL);
    int status = 0;
    while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    g_spawn_close_pid(job->pid);
    return status;
}

/* The line of gnuplot's complaints that says what is wrong: the last one that is not a pointer. */
static char *complaint(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (int i = (int)g_strv_length(lines) - 1; i >= 0; i--) {
        g_strstrip(lines[i]);
        if (lines[i][0] != '\0' && strcmp(lines[i], "^") != 0)
            return g_strdup(lines[i]);
    }
    return g_strdup("no reason given");
}

static gboolean settle(const GnuplotJob *job, gboolean good, GError **error)
{
    gboolean drew = FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(endings); i++) {
        g_autofree char *file = g_strconcat(job->name, endings[i], NULL);
        g_autofree char *path = g_build_filename(job->folder, file, NULL);
        g_autofree char *part = g_strconcat(path, ".part", NULL);
        if (!g_file_test(part, G_FILE_TEST_EXISTS))
            continue;
        if (!good) {
            g_unlink(part);
        } else if (g_rename(part, path) != 0) {
            kv_set_errno(error, KV_ERROR_MACHINE, errno, "%s", path);
            return FALSE;
        }
        drew = TRUE;
    }
    if (good && !drew && strstr(job->formats, "svg") != NULL) {
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                    "gnuplot drew no picture of %s.gp (no png or svg terminal?)", job->name);
        return FALSE;
    }
    return TRUE;
}

gboolean gnuplot_job_finish(GnuplotJob *self, char **ret_text, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(GString) err = g_string_new(NULL);
    int status = run_to_end(self, out, err);
    gboolean good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!good) {
        g_autofree char *why = complaint(err->str);
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "gnuplot failed on %s.gp (%s %d): %s",
                    self->name, WIFEXITED(status) ? "exit status" : "signal",
                    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), why);
    }
    good = settle(self, good, error) && good;
    if (good && ret_text != NULL)
        *ret_text = g_strdup(out->str);
    job_free(self);
    return good;
}

char *plots_gnuplot_version(char **ret_why)
{
    g_autofree char *out = NULL;
    int status = 0;
    char *argv[] = {(char *)"gnuplot", (char *)"--version", NULL};
    if (!g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL,
                      NULL, &out, NULL, &status, NULL) ||
        status != 0 || out == NULL) {
        if (ret_why != NULL)
            *ret_why = g_strdup(GNUPLOT_MISSING ": apt-get install gnuplot-nox");
        return NULL;
    }
    return g_strdup(g_strstrip(out));
}
