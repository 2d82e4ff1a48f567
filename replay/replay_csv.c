#include "replay/replay_csv.h"

#include <math.h>
#include <string.h>

#include "replay/devices.h"

enum { BUFFER = 1 << 16, LINE_MAX_BYTES = 1024 + 24 * EXECUTION_RANKS + 5 * DEVICES_MAX };

struct ReplayCsv {
    OutFile *out;
    gsize used, shared; /* bytes in `buffer`; of the shared columns */
    char common[LINE_MAX_BYTES];
    char buffer[BUFFER];
};

static const char header[] =
    "step,start_ns,duration_ns,rows,prefill_tokens,max_len,sum_len,waiting,pages_used,route,chosen,"
    "launches,merge_launches,copies,memsets,tasks,nonempty_fraction,kv_bytes,kv_bytes_touched,"
    "merge_state_bytes,merge_traffic_bytes,plan_us,upload_bytes,kernel_us,wall_us,repeats,"
    "max_abs_err,mean_abs_err,replica,device,rank_kernel_us,rank_skew_us,tables_us\n";

ReplayCsv *replay_csv_new(OutFile *out)
{
    if (out == NULL)
        return NULL;
    ReplayCsv *self = g_new(ReplayCsv, 1);
    self->out = out;
    self->used = self->shared = 0;
    fputs(header, out_file_stream(out));
    return self;
}

void replay_csv_free(ReplayCsv *self)
{
    g_free(self);
}

static char *put_int(char *p, gint64 value)
{
    char digits[24];
    int n = 0;
    guint64 u = value < 0 ? -(guint64)value : (guint64)value;
    if (value < 0)
        *p++ = '-';
    do
        digits[n++] = (char)('0' + u % 10);
    while ((u /= 10) != 0);
    while (n > 0)
        *p++ = digits[--n];
    return p;
}

static char *next_int(char *p, gint64 value)
{
    *p++ = ',';
    return put_int(p, value);
}

/* `decimals` digits after the point, rounded half away from zero; for 0 <= value < 2^53 / scale. */
static char *next_fixed(char *p, double value, int decimals)
{
    gint64 scale = 1;
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    const gint64 scaled = (gint64)(value * (double)scale + 0.5);
    p = next_int(p, scaled / scale);
    if (decimals == 0)
        return p;
    *p++ = '.';
    for (gint64 at = scale / 10, left = scaled % scale; at > 0; at /= 10) {
        *p++ = (char)('0' + left / at);
        left %= at;
    }
    return p;
}

static char *next_time(char *p, double us)
{
    if (us >= 0)
        return next_fixed(p, us, 3);
    *p++ = ',';
    return p;
}

static char *next_error(char *p, gboolean checked, double error)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE] = "";
    *p++ = ',';
    if (checked)
        g_ascii_formatd(text, sizeof text, "%.3e", error);
    memcpy(p, text, strlen(text));
    return p + strlen(text);
}

void replay_csv_step(ReplayCsv *self, const Step *step, guint64 prefill_tokens)
{
    char *p = put_int(self->common, (gint64)step->index);
    p = next_int(p, step->start);
    p = next_int(p, step->duration);
    p = next_int(p, step->rows);
    p = next_int(p, (gint64)prefill_tokens);
    p = next_int(p, step->max_length);
    p = next_int(p, (gint64)step->sum_length);
    p = next_int(p, step->waiting);
    p = next_int(p, step->pages_used);
    *p++ = ',';
    self->shared = (gsize)(p - self->common);
}

static char *put_counts(char *p, const ReplayLine *line)
{
    const AttnCounts *c = line->counts;
    const Execution *e = line->execution;
    const gboolean ran = e != NULL;
    if (!line->counted) { /* a peer: what it launches is known once it has run */
        *p++ = ',';
        if (ran && e->launches_seen >= 0)
            p = put_int(p, e->launches_seen);
        *p++ = ',';
    } else {
        p = next_int(p, c->launches);
        p = next_int(p, c->merge_launches);
    }
    p = next_int(p, ran ? e->copies : 0);
    p = next_int(p, ran ? e->memsets : 0);
    if (line->counted) {
        p = next_int(p, c->tasks);
        p = next_fixed(p, c->nonempty_fraction, 6);
    } else {
        *p++ = ',';
        *p++ = ',';
    }
    p = next_int(p, c->kv_bytes);
    p = next_int(p, c->kv_bytes_touched);
    if (line->counted) {
        p = next_int(p, c->merge_state_bytes);
        return next_int(p, 2 * c->merge_state_bytes);
    }
    *p++ = ',';
    *p++ = ',';
    return p;
}

/* Which engine, which device, and what each share of the heads took: "12.301;12.498". */
static char *put_where(char *p, const ReplayLine *line)
{
    const Execution *e = line->execution;
    p = next_int(p, line->replica);
    *p++ = ',';
    if (e != NULL) {
        const gsize n = strlen(line->device);
        memcpy(p, line->device, n);
        p += n;
    }
    if (e == NULL || e->ranks == 0) {
        *p++ = ',';
        *p++ = ',';
        return p;
    }
    for (gint r = 0; r < e->ranks; r++) {
        char *from = p;
        p = next_fixed(p, MAX(e->rank_us[r], 0), 3);
        *from = r == 0 ? ',' : ';';
    }
    return next_time(p, e->rank_skew_us);
}

void replay_csv_line(ReplayCsv *self, const ReplayLine *line)
{
    const gsize label = strlen(line->route->label);
    if (self->used + LINE_MAX_BYTES + label > BUFFER) {
        fwrite(self->buffer, 1, self->used, out_file_stream(self->out));
        self->used = 0;
    }
    char *p = self->buffer + self->used;
    memcpy(p, self->common, self->shared);
    p += self->shared;
    memcpy(p, line->route->label, label);
    p += label;
    *p++ = ',';
    *p++ = line->chosen ? '1' : '0';
    p = put_counts(p, line);
    const Execution *e = line->execution;
    if (e == NULL) {
        memcpy(p, ",,,,,,,", 7);
        p += 7;
    } else {
        p = next_time(p, e->plan_us);
        p = next_int(p, e->upload_bytes);
        p = next_time(p, e->kernel_us);
        p = next_time(p, e->wall_us);
        p = next_int(p, e->repeats);
        p = next_error(p, e->checked, e->max_abs_err);
        p = next_error(p, e->checked, e->mean_abs_err);
    }
    p = put_where(p, line);
    p = next_time(p, e != NULL ? e->tables_us : -1);
    *p++ = '\n';
    self->used = (gsize)(p - self->buffer);
}

gboolean replay_csv_flush(ReplayCsv *self, GError **error)
{
    if (self == NULL)
        return TRUE;
    fwrite(self->buffer, 1, self->used, out_file_stream(self->out));
    self->used = 0;
    fflush(out_file_stream(self->out));
    return out_file_ok(self->out, error);
}
