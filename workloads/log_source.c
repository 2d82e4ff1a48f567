#include "workloads/log_source.h"

#include <string.h>

#include "base/error.h"
#include "workloads/field.h"
#include "workloads/reorder.h"
#include "workloads/turns.h"

struct LogSource {
    RequestSource base;
    Input *input;
    FormatReader *reader;
    FormatNotes *notes;
    Reorder *window;
    Turns *turns;             /* closed-loop turns that wait */
    GHashTable *lost_openers; /* sessions whose first turn was dropped -> its arrival */
    GHashTable *dropped;      /* reason -> guint64 * */
    GPtrArray *classes;
    LogSourceConfig config;
    gboolean ended, given_any;
    kv_ns zero;       /* log clock of the first arrival, once given_any */
    kv_ns last_given; /* log clock */
    kv_ns previous;   /* arrival of the row before */
    guint64 rows;
    char *first_text;
    kv_ns first;
};

static void drop(LogSource *self, const char *reason)
{
    guint64 *count = g_hash_table_lookup(self->dropped, reason);
    if (count == NULL) {
        count = g_new0(guint64, 1);
        g_hash_table_insert(self->dropped, g_strdup(reason), count);
    }
    ++*count;
}

/* Why a record cannot be replayed; NULL = it can. */
static const char *fault_of(const LogSource *self, const LogRecord *r)
{
    if (r->fault != NULL)
        return r->fault;
    if (r->prompt == 0 && r->output == 0)
        return "zero_prompt_and_output";
    if (r->prompt == 0)
        return "zero_prompt";
    if (r->output == 0 && self->config.zero_output == ZERO_OUTPUT_DROP)
        return "zero_output";
    if (r->prompt < 0 && !self->config.keep_unknown)
        return "prompt_unknown";
    if (r->output < 0 && !self->config.keep_unknown)
        return "output_unknown";
    return NULL;
}

static void to_request(LogSource *self, const LogRecord *r, Request *ret)
{
    *ret = (Request){
        .arrival = r->arrival,
        .sent = r->sent != KV_NS_NONE ? r->sent : r->arrival,
        .prompt = (gint32)MAX(r->prompt, 0),
        .output = (gint32)MAX(r->output, 0),
        .priority = r->priority,
        .klass = r->klass,
        .deadline = r->deadline,
        .session = r->session,
        .turn = r->turn,
        .block_tokens = r->n_blocks > 0 ? r->block_tokens : 0,
        .n_blocks = r->n_blocks,
        .blocks = r->blocks,
        .wait = KV_NS_NONE,
        .observed = r->observed,
    };
    if (r->output == 0) {
        ret->output = 1;
        format_note(self->notes, "record without output kept as a prefill with one output token");
    }
}

static gint64 *boxed(gint64 v)
{
    gint64 *p = g_new(gint64, 1);
    *p = v;
    return p;
}

static gboolean note_order(LogSource *self, const LogRecord *r, GError **error)
{
    gboolean inversion = self->previous != KV_NS_NONE && r->arrival < self->previous;
    self->previous = r->arrival;
    if (!inversion)
        return TRUE;
    if (self->config.strict)
        return input_error(self->input, error,
                           "arrives before the row above it: expected rows in order of arrival "
                           "(--strict; without it they are sorted)");
    format_note(self->notes, "row arrives before the row above it: rows were sorted by arrival");
    if (self->given_any && r->arrival < self->last_given && fault_of(self, r) == NULL)
        return input_error(self->input, error,
                           "arrives before a row already given out, more than %d rows above it: "
                           "sort the log by time first",
                           REORDER_ROWS);
    return TRUE;
}

static void accept_turn(LogSource *self, const LogRecord *r, Request *request)
{
    gint64 *lost = g_hash_table_lookup(self->lost_openers, &r->session);
    if (lost == NULL) {
        request->wait = r->wait;
        request->arrival = request->sent = 0;
        turns_add(self->turns, request);
        return;
    }
    request->arrival = request->sent =
        *lost + r->wait; /* it opens the session in the dropped one's place */
    g_hash_table_remove(self->lost_openers, &r->session);
    reorder_push(self->window, request);
}

static gboolean in_range(kv_ns t)
{
    return t == KV_NS_NONE || (t <= LOG_TIME_MAX && t >= -LOG_TIME_MAX);
}

static gboolean accept(LogSource *self, const LogRecord *r, GError **error)
{
    Request request;
    if (!in_range(r->arrival) || !in_range(r->sent) || !in_range(r->wait) || !in_range(r->deadline))
        return input_error(self->input, error,
                           "a time out of range: expected within 126 years of zero");
    gboolean closed = r->arrival == KV_NS_NONE;
    const char *fault = fault_of(self, r);
    if (!closed && !note_order(self, r, error))
        return FALSE;
    if (fault != NULL) {
        drop(self, fault);
        if (!closed && r->session != KV_NO_SESSION && !turns_has(self->turns, r->session))
            g_hash_table_replace(self->lost_openers, boxed(r->session), boxed(r->arrival));
        return TRUE;
    }
    to_request(self, r, &request);
    if (closed) {
        accept_turn(self, r, &request);
        return TRUE;
    }
    if (r->session != KV_NO_SESSION && g_hash_table_size(self->lost_openers) > 0)
        g_hash_table_remove(self->lost_openers, &r->session);
    if (!self->given_any && (self->first == KV_NS_NONE || r->arrival < self->first)) {
        self->first = r->arrival;
        g_free(self->first_text);
        self->first_text = r->arrival_text != NULL && r->arrival_len > 0
                               ? g_strndup(r->arrival_text, r->arrival_len)
                               : NULL;
    }
    reorder_push(self->window, &request);
    return TRUE;
}

/* Reads ahead: until the window is full, or to the end where turns wait for others. */
static gboolean fill(LogSource *self, GError **error)
{
    LogRecord record;
    while (!self->ended && (!reorder_full(self->window) || turns_count(self->turns) > 0)) {
        int got = self->reader->ops->next(self->reader, &record, error);
        if (got < 0)
            return FALSE;
        if (got == 0) {
            self->ended = TRUE;
            break;
        }
        self->rows++;
        if (!accept(self, &record, error))
            return FALSE;
    }
    return TRUE;
}

static int log_next(RequestSource *base, Request *ret, GError **error)
{
    LogSource *self = (LogSource *)base;
    if (!fill(self, error))
        return -1;
    if (!reorder_pop(self->window, ret))
        return 0;
    if (!self->given_any) {
        self->given_any = TRUE;
        self->zero = ret->arrival;
    }
    self->last_given = ret->arrival;
    ret->arrival -= self->zero;
    ret->sent -= self->zero;
    return 1;
}

static int log_next_turn(RequestSource *base, const Request *finished, kv_ns now, Request *ret,
                         GError **error)
{
    LogSource *self = (LogSource *)base;
    if (finished->session == KV_NO_SESSION || !turns_take(self->turns, finished->session, ret))
        return 0;
    ret->arrival = ret->sent = now + ret->wait;
    return 1;
}

static void log_free(RequestSource *base)
{
    LogSource *self = (LogSource *)base;
    format_reader_free(self->reader);
    input_free(self->input);
    format_notes_free(self->notes);
    reorder_free(self->window);
    turns_free(self->turns);
    g_hash_table_unref(self->lost_openers);
    g_hash_table_unref(self->dropped);
    g_ptr_array_unref(self->classes);
    g_free(self->first_text);
    g_free(self);
}

static const RequestSourceOps log_ops = {"log", log_next, log_next_turn, log_free};

LogSource *log_source_new(Input *input, const LogSourceConfig *config, GError **error)
{
    LogSource *self = g_new0(LogSource, 1);
    self->base.ops = &log_ops;
    self->input = input;
    self->config = *config;
    self->notes = format_notes_new();
    self->window = reorder_new();
    self->turns = turns_new();
    self->lost_openers = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    self->dropped = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->classes = g_ptr_array_new_with_free_func(g_free);
    self->previous = self->first = KV_NS_NONE;
    const FormatOps *ops = (const FormatOps *)config->format.info;
    FormatArgs args = {
        .config = config->format.config,
        .notes = self->notes,
        .classes = self->classes,
        .strict = config->strict,
        .map = config->map,
        .seed = config->seed,
        .replication = config->replication,
    };
    self->reader = ops->open(input, &args, error);
    if (self->reader == NULL) {
        log_free(&self->base);
        return NULL;
    }
    return self;
}

void log_source_keep_unknown(LogSource *self)
{
    self->config.keep_unknown = TRUE;
}

void log_source_info(LogSource *self, WorkloadInfo *info)
{
    info->sha256 = input_sha256(self->input);
    info->first_arrival = self->first_text;
    info->first_arrival_ns = self->first != KV_NS_NONE ? self->first : 0;
    info->rows = self->rows;
    info->recorded_duration = format_notes_duration(self->notes);
    info->dropped = self->dropped;
    info->classes = self->classes;
    format_notes_list(self->notes, info->warnings);
}
