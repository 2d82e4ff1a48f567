#include "base/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/error.h"

#define TICKS_PER_CLOCK_READ 1024
#define DRAW_INTERVAL_US 100000
#define RATE_AFTER_US 500000 /* no forecast from less than this */

struct Progress {
    gboolean draws;
    const volatile int *interrupted;
    char *what;
    guint64 total;
    guint ticks;
    gint64 begun, drawn; /* g_get_monotonic_time */
    gboolean on_screen;
};

Progress *progress_new(gboolean quiet, const volatile int *interrupted)
{
    Progress *self = g_new0(Progress, 1);
    self->draws = !quiet && isatty(STDERR_FILENO);
    self->interrupted = interrupted;
    return self;
}

static void wipe(Progress *self)
{
    if (self->on_screen)
        fputs("\r\033[K", stderr);
    self->on_screen = FALSE;
}

void progress_free(Progress *self)
{
    if (self == NULL)
        return;
    wipe(self);
    g_free(self->what);
    g_free(self);
}

/* In one write, so that the line does not flicker. */
static void draw(Progress *self, guint64 done, gint64 now)
{
    double seconds = (double)(now - self->begun) / 1e6;
    g_autoptr(GString) line = g_string_new("\r\033[K");
    g_string_append_printf(line, "%s: ", self->what);
    if (self->total > 0 && done <= self->total) {
        double part = (double)done / (double)self->total;
        g_string_append_printf(line, "%.1f %%", 100.0 * part);
        if (part > 0.0 && now - self->begun > RATE_AFTER_US)
            g_string_append_printf(line, ", %.0f s left", seconds * (1.0 - part) / part);
    } else {
        g_string_append_printf(line, "%" G_GUINT64_FORMAT ", %.0f s", done, seconds);
    }
    fputs(line->str, stderr);
    fflush(stderr);
    self->drawn = now;
    self->on_screen = TRUE;
}

void progress_begin(Progress *self, const char *what, guint64 total)
{
    if (self == NULL)
        return;
    wipe(self);
    g_free(self->what);
    self->what = g_strdup(what);
    self->total = total;
    self->ticks = 0;
    self->begun = self->drawn = g_get_monotonic_time();
}

void progress_tick(Progress *self, guint64 done)
{
    if (self != NULL && ++self->ticks % TICKS_PER_CLOCK_READ == 0)
        progress_show(self, done);
}

void progress_show(Progress *self, guint64 done)
{
    if (self == NULL || !self->draws)
        return;
    gint64 now = g_get_monotonic_time();
    if (self->what != NULL && now - self->drawn >= DRAW_INTERVAL_US)
        draw(self, done, now);
}

void progress_end(Progress *self)
{
    if (self != NULL)
        wipe(self);
}

gboolean progress_stop(const Progress *self)
{
    return self != NULL && self->interrupted != NULL && *self->interrupted != 0;
}

gboolean progress_check(const Progress *self, GError **error)
{
    if (!progress_stop(self))
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_INTERRUPTED, "interrupted");
    return FALSE;
}
