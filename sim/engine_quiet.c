/* Steps in which nothing happens but growth, advanced without looking at the rows.
 *
 * After a full step that scheduled every running request as a decode row, finished none, and left
 * nobody in line who could be admitted, the next steps are the same but for lengths, pages appended
 * and the time they take. Rows are sorted once by the step in which they need a page (all of them
 * do so once in every page_size steps); then a step costs the pages it appends. It ends before the
 * step in which a row finishes or pages run out, and when an arrival could be admitted. */
#include "sim/engine.h"

gboolean engine_may_rest(const Engine *e)
{
    const StepPlan *p = &e->plan;
    return e->config->fast_forward && e->n_running > 0 && p->chunks == 0 && p->finishing == 0 &&
           p->preempted->len == 0 && p->entries->len == e->n_running && p->extra == 0 &&
           (e->waiting.n == 0 || p->blocked != BLOCKED_NO);
}

typedef struct Rest {
    Engine *e;
    guint64 first, end; /* ticks; no row finishes before `end` */
    guint32 phase;      /* (tick - first) mod page_size */
    guint32 *begin;     /* [page_size + 1]: rows of a phase, in running order */
    SimRequest **rows;
    guint32 measured;
    gboolean linear;
    kv_ns slope; /* growth of a step's length from one to the next */
    Step step;
    guint64 steps; /* taken */
    kv_ns first_duration;
} Rest;

/* FALSE when a row finishes in the very next step. */
static gboolean find_end(Rest *s)
{
    const Engine *e = s->e;
    s->first = e->tick;
    s->end = TICK_NEVER;
    for (guint i = 0; i < e->n_running; i++)
        s->end = MIN(s->end, e->running[i]->finish_tick);
    return s->end > s->first;
}

static void sort_rows(Rest *s)
{
    const Engine *e = s->e;
    guint32 n = e->page_size;
    for (guint i = 0; i < e->n_running; i++) {
        const SimRequest *r = e->running[i];
        guint64 wait = r->page_tick - s->first;
        if (wait < n)
            s->begin[wait + 1]++;
        s->measured += r->measured;
    }
    for (guint32 i = 0; i < n; i++)
        s->begin[i + 1] += s->begin[i];
    guint32 total = s->begin[n];
    for (guint i = e->n_running; i-- > 0;) {
        guint64 wait = e->running[i]->page_tick - s->first;
        if (wait < n)
            s->rows[--s->begin[wait + 1]] = e->running[i];
    }
    /* now begin[k + 1] is where phase k starts; shift down */
    for (guint32 i = 0; i < n; i++)
        s->begin[i] = s->begin[i + 1];
    s->begin[n] = total;
}

/* TRUE when somebody who is in line now could be admitted. */
static gboolean line_moved(const Engine *e, const SimRequest *head)
{
    return wait_queue_peek(&e->waiting) != head && e->plan.blocked != BLOCKED_SEQS;
}

static void append_pages(Rest *s)
{
    Engine *e = s->e;
    guint32 from = s->begin[s->phase], to = s->begin[s->phase + 1];
    s->step.n_appended = 0;
    if (from == to)
        return;
    g_array_set_size(e->appended, 0);
    for (guint32 i = from; i < to; i++) {
        SimRequest *r = s->rows[i];
        engine_take_pages(e, r, 1);
        if (e->wants_steps) {
            StepAppend a = {r->slot, r->pages[r->n_pages - 1]};
            g_array_append_val(e->appended, a);
        }
    }
    s->step.n_appended = e->appended->len;
    s->step.appended = (const StepAppend *)(gpointer)e->appended->data;
}

static gboolean time_step(Rest *s, GError **error)
{
    Engine *e = s->e;
    Step *step = &s->step;
    if (s->linear && s->steps > 0) {
        step->duration += s->slope;
        return TRUE;
    }
    StepLoad load = {
        .rows = step->rows,
        .sum_length = step->sum_length,
        .max_length = step->max_length,
        .step = step,
    };
    step->duration = 0;
    step->duration = e->run->clock->ops->length(e->run->clock, &load, error);
    return step->duration != KV_NS_NONE;
}

static gboolean take_step(Rest *s, GError **error)
{
    Engine *e = s->e;
    Step *step = &s->step;
    step->index = e->tick;
    step->start = e->now;
    step->waiting = (guint32)e->waiting.n;
    step->sum_length += step->rows;
    step->max_length++;
    append_pages(s);
    e->tokens += step->rows;
    step->pages_used = e->pool.n_pages - e->pool.n_free;
    step->tokens_held = e->tokens - e->pool.shared * e->page_size;
    if (!time_step(s, error))
        return FALSE;
    if (s->steps++ == 0)
        s->first_duration = step->duration;
    if (e->run->steps && !e->run->steps->step(e->run->steps, step, error))
        return FALSE;
    metrics_step(e->metrics, step->rows, step->pages_used, step->tokens_held, step->duration);
    if (step->waiting > e->metrics->result.waiting_peak)
        e->metrics->result.waiting_peak = step->waiting;
    if (!s->linear)
        log_hist_add(e->metrics->itl, step->duration, s->measured);
    e->now += step->duration;
    e->tick++;
    if (++s->phase == e->page_size)
        s->phase = 0;
    return TRUE;
}

static gboolean take_steps(Rest *s, GError **error)
{
    Engine *e = s->e;
    while (e->tick < s->end && e->now < e->horizon) {
        if (e->next_arrival <= e->now) {
            const SimRequest *head = wait_queue_peek(&e->waiting);
            if (!engine_take_arrivals(e, error))
                return FALSE;
            if (line_moved(e, head))
                return TRUE;
        }
        if (s->begin[s->phase + 1] - s->begin[s->phase] > e->pool.n_free)
            return TRUE;
        if (!take_step(s, error))
            return FALSE;
        if ((e->tick & 1023) == 0 && progress_stop(e->run->progress))
            return TRUE; /* the main loop reports it */
        if (e->config->check) {
            const char *problem = engine_check(e);
            g_assert_cmpstr(problem, ==, NULL);
        }
    }
    return TRUE;
}

gboolean engine_rest(Engine *e, GError **error)
{
    Rest s = {.e = e};
    if (!find_end(&s))
        return TRUE;
    guint32 *begin = e->rest_begin;
    for (guint32 i = 0; i <= e->page_size; i++)
        begin[i] = 0;
    if (e->rest_cap < e->n_running) {
        e->rest_cap = e->cap_running;
        e->rest_rows = g_renew(SimRequest *, e->rest_rows, e->rest_cap);
    }
    s.begin = begin;
    s.rows = e->rest_rows;
    sort_rows(&s);
    const StepClockOps *clock = e->run->clock->ops;
    s.linear = clock->slope && clock->slope(e->run->clock, &s.slope);
    s.slope *= e->n_running;
    s.step = (Step){
        .rows = e->n_running,
        .max_length = e->plan.max_length,
        .sum_length = e->plan.sum_length,
    };
    gboolean ok = take_steps(&s, error);
    e->metrics->result.output_tokens += s.steps * e->n_running;
    if (s.linear && s.steps)
        log_hist_add_progression(e->metrics->itl, s.first_duration, s.slope, s.steps, s.measured);
    return ok;
}
