#include "cli/steps_print.h"

#include <string.h>

#include <json-glib/json-glib.h>

#include "base/error.h"
#include "cli/stages.h"

static guint64 prefill_tokens(const Step *s)
{
    guint64 sum = 0;
    for (guint32 i = 0; i < s->n_prefill; i++)
        sum += s->prefill[i].tokens;
    return sum;
}

static guint32 count_paused(const StepsReader *reader)
{
    guint32 n, paused = 0;
    const StepRow *rows = steps_reader_rows(reader, &n);
    for (guint32 i = 0; i < n; i++)
        paused += rows[i].paused != FALSE;
    return paused;
}

gboolean steps_print_csv(StepsReader *reader, StepsRange range, OutFile *out, GError **error)
{
    FILE *f = out_file_stream(out);
    fputs(
        "step,start_ns,duration_ns,rows,paused,prefill_rows,prefill_tokens,max_len,sum_len,waiting,"
        "pages_used,tokens_held,left,joined,appended\n",
        f);
    if (range.from > 0 && !steps_reader_seek(reader, range.from, error))
        return FALSE;
    const Step *s;
    int got;
    while ((got = steps_reader_next(reader, &s, error)) == 1 && s->index < range.to) {
        fprintf(f,
                "%" G_GUINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT
                ",%u,%u,%u,%" G_GUINT64_FORMAT ",%u,%" G_GUINT64_FORMAT ",%u,%u,%" G_GUINT64_FORMAT
                ",%u,%u,%u\n",
                s->index, s->start, s->duration, s->rows, count_paused(reader), s->n_prefill,
                prefill_tokens(s), s->max_length, s->sum_length, s->waiting, s->pages_used,
                s->tokens_held, s->n_left, s->n_joined, s->n_appended);
        if (!out_file_ok(out, error))
            return FALSE;
    }
    return got >= 0;
}

static void print_slots(FILE *f, const char *name, const guint32 *slots, guint32 n)
{
    if (n == 0)
        return;
    fprintf(f, ",\"%s\":[", name);
    for (guint32 i = 0; i < n; i++)
        fprintf(f, "%s%u", i > 0 ? "," : "", slots[i]);
    fputc(']', f);
}

static void print_pages(FILE *f, const guint32 *pages, guint32 n)
{
    fputc('[', f);
    for (guint32 i = 0; i < n; i++)
        fprintf(f, "%s%u", i > 0 ? "," : "", pages[i]);
    fputc(']', f);
}

static void print_step_json(FILE *f, const Step *s)
{
    fprintf(f,
            "{\"step\":%" G_GUINT64_FORMAT ",\"start_ns\":%" G_GINT64_FORMAT
            ",\"duration_ns\":%" G_GINT64_FORMAT
            ",\"rows\":%u,\"max_len\":%u,\"sum_len\":%" G_GUINT64_FORMAT
            ",\"waiting\":%u,\"pages_used\":%u,\"tokens_held\":%" G_GUINT64_FORMAT,
            s->index, s->start, s->duration, s->rows, s->max_length, s->sum_length, s->waiting,
            s->pages_used, s->tokens_held);
    print_slots(f, "left", s->left, s->n_left);
    print_slots(f, "paused", s->paused, s->n_paused);
    print_slots(f, "resumed", s->resumed, s->n_resumed);
    for (guint32 i = 0; i < s->n_joined; i++) {
        const StepJoin *j = &s->joined[i];
        fprintf(f, "%s{\"request\":%" G_GUINT64_FORMAT ",\"slot\":%u,\"length\":%u,\"pages\":",
                i == 0 ? ",\"joined\":[" : ",", j->request, j->slot, j->length);
        print_pages(f, j->pages, j->n_pages);
        fputs(i + 1 == s->n_joined ? "}]" : "}", f);
    }
    for (guint32 i = 0; i < s->n_appended; i++)
        fprintf(f, "%s[%u,%u]%s", i == 0 ? ",\"appended\":[" : ",", s->appended[i].slot,
                s->appended[i].page, i + 1 == s->n_appended ? "]" : "");
    for (guint32 i = 0; i < s->n_prefill; i++) {
        const StepPrefill *p = &s->prefill[i];
        fprintf(f,
                "%s{\"request\":%" G_GUINT64_FORMAT ",\"offset\":%u,\"tokens\":%u,\"cached\":%u}%s",
                i == 0 ? ",\"prefill\":[" : ",", p->request, p->offset, p->tokens, p->cached,
                i + 1 == s->n_prefill ? "]" : "");
    }
    fputs("}\n", f);
}

gboolean steps_print_jsonl(StepsReader *reader, StepsRange range, OutFile *out, GError **error)
{
    if (range.from > 0 && !steps_reader_seek(reader, range.from, error))
        return FALSE;
    const Step *s;
    int got;
    while ((got = steps_reader_next(reader, &s, error)) == 1 && s->index < range.to) {
        print_step_json(out_file_stream(out), s);
        if (!out_file_ok(out, error))
            return FALSE;
    }
    return got >= 0;
}

gboolean steps_print_rows(StepsReader *reader, guint64 step, FILE *out, GError **error)
{
    const Step *s;
    if (!steps_reader_seek(reader, step, error))
        return FALSE;
    int got = steps_reader_next(reader, &s, error);
    if (got < 0)
        return FALSE;
    if (got == 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_USAGE, "step %" G_GUINT64_FORMAT " is past the end",
                    step);
        return FALSE;
    }
    guint32 n;
    const StepRow *rows = steps_reader_rows(reader, &n);
    fprintf(out, "step %" G_GUINT64_FORMAT " at %.6f s for %.6f s: %u rows, %u waiting\n", s->index,
            kv_ns_to_seconds(s->start), kv_ns_to_seconds(s->duration), s->rows, s->waiting);
    for (guint32 i = 0; i < n; i++) {
        fprintf(out, "slot %u request %" G_GUINT64_FORMAT " length %u%s pages ", rows[i].slot,
                rows[i].request, rows[i].length, rows[i].paused ? " (paused)" : "");
        print_pages(out, rows[i].pages, rows[i].n_pages);
        fputc('\n', out);
    }
    return TRUE;
}

/* One step recounted from its rows; NULL when sound. */
static const char *recount(const StepsReader *reader, const Step *s, guint32 page_size)
{
    guint32 n, active = 0, max = 0;
    guint64 sum = 0;
    const StepRow *rows = steps_reader_rows(reader, &n);
    for (guint32 i = 0; i < n; i++) {
        if (rows[i].n_pages < (rows[i].length + page_size - 1) / page_size)
            return "a row has fewer pages than its length needs";
        if (rows[i].paused)
            continue;
        active++;
        sum += rows[i].length;
        max = MAX(max, rows[i].length);
    }
    if (active != s->rows)
        return "the row count differs from the rows";
    if (sum != s->sum_length || max != s->max_length)
        return "the sum or maximum of lengths differs from the rows";
    return s->duration > 0 ? NULL : "a step takes no time";
}

typedef struct StepsTotals {
    guint64 steps, row_steps, prefill_tokens, pages_peak, rows_peak;
    kv_ns end;
} StepsTotals;

static gboolean read_totals(StepsReader *reader, gboolean check, StepsTotals *t, GError **error)
{
    const Step *s;
    int got;
    guint32 page_size = steps_reader_header(reader)->page_size;
    while ((got = steps_reader_next(reader, &s, error)) == 1) {
        const char *wrong = check ? recount(reader, s, page_size) : NULL;
        if (wrong == NULL && check && s->start < t->end)
            wrong = "it starts before the step before has ended";
        if (wrong != NULL) {
            g_set_error(error, KV_ERROR, KV_ERROR_INPUT, "step %" G_GUINT64_FORMAT ": %s", s->index,
                        wrong);
            return FALSE;
        }
        t->steps++;
        t->row_steps += s->rows;
        t->prefill_tokens += prefill_tokens(s);
        t->pages_peak = MAX(t->pages_peak, s->pages_used);
        t->rows_peak = MAX(t->rows_peak, s->rows);
        t->end = s->start + s->duration;
    }
    return got >= 0;
}

static void totals_json(const StepsHeader *h, const StepsTotals *t, FILE *out)
{
    g_autoptr(JsonBuilder) b = json_builder_new();
    json_builder_begin_object(b);
    const struct {
        const char *name;
        gint64 value;
    } ints[] = {
        {"steps", (gint64)t->steps},
        {"row_steps", (gint64)t->row_steps},
        {"prefill_tokens", (gint64)t->prefill_tokens},
        {"pages_peak", (gint64)t->pages_peak},
        {"rows_peak", (gint64)t->rows_peak},
        {"end_ns", t->end},
        {"page_size", h->page_size},
        {"pool_pages", (gint64)h->pool_pages},
        {"layers", h->layers},
        {"q_heads", h->q_heads},
        {"kv_heads", h->kv_heads},
        {"head_dim", h->head_dim},
        {"seed", (gint64)h->seed},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(ints); i++) {
        json_builder_set_member_name(b, ints[i].name);
        json_builder_add_int_value(b, ints[i].value);
    }
    json_builder_set_member_name(b, "workload");
    json_builder_add_string_value(b, h->workload != NULL ? h->workload : "");
    json_builder_set_member_name(b, "model");
    json_builder_add_string_value(b, h->model != NULL ? h->model : "");
    json_builder_end_object(b);
    g_autofree char *text = json_builder_text(b);
    fputs(text, out);
}

gboolean steps_print_totals(StepsReader *reader, gboolean check, gboolean json, FILE *out,
                            GError **error)
{
    StepsTotals t = {0};
    if (!read_totals(reader, check, &t, error))
        return FALSE;
    const StepsHeader *h = steps_reader_header(reader);
    if (json) {
        totals_json(h, &t, out);
        return TRUE;
    }
    fprintf(out,
            "workload %s, model %s: %u layers, %u query and %u KV heads of %u, %s\n"
            "pool %" G_GUINT64_FORMAT " pages of %u entries, seed %" G_GUINT64_FORMAT "\n"
            "%" G_GUINT64_FORMAT " steps, %" G_GUINT64_FORMAT " row-steps, %" G_GUINT64_FORMAT
            " prefill tokens, peak %" G_GUINT64_FORMAT " rows and %" G_GUINT64_FORMAT
            " pages, ends at %.6f s%s\n",
            h->workload, h->model, h->layers, h->q_heads, h->kv_heads, h->head_dim, h->dtype,
            h->pool_pages, h->page_size, h->seed, t.steps, t.row_steps, t.prefill_tokens,
            t.rows_peak, t.pages_peak, kv_ns_to_seconds(t.end),
            check ? "; every step recounted: sound" : "");
    return TRUE;
}

static gboolean rows_equal(const StepsReader *a, const StepsReader *b)
{
    guint32 na, nb;
    const StepRow *ra = steps_reader_rows(a, &na), *rb = steps_reader_rows(b, &nb);
    if (na != nb)
        return FALSE;
    for (guint32 i = 0; i < na; i++)
        if (ra[i].request != rb[i].request || ra[i].length != rb[i].length ||
            ra[i].paused != rb[i].paused || ra[i].n_pages != rb[i].n_pages ||
            memcmp(ra[i].pages, rb[i].pages, sizeof(guint32) * ra[i].n_pages) != 0)
            return FALSE;
    return TRUE;
}

gboolean steps_compare(StepsReader *a, StepsReader *b, const char *name_a, const char *name_b,
                       FILE *out, GError **error)
{
    const Step *sa, *sb;
    for (guint64 n = 0;; n++) {
        int ga = steps_reader_next(a, &sa, error);
        int gb = ga < 0 ? -1 : steps_reader_next(b, &sb, error);
        if (gb < 0)
            return FALSE;
        if (ga == 0 && gb == 0) {
            fprintf(out, "equal: %" G_GUINT64_FORMAT " steps\n", n);
            return TRUE;
        }
        const char *what = ga != gb                           ? "one of them ends"
                           : sa->start != sb->start           ? "the start differs"
                           : sa->duration != sb->duration     ? "the duration differs"
                           : sa->waiting != sb->waiting       ? "the queue differs"
                           : sa->n_prefill != sb->n_prefill   ? "the prefill chunks differ"
                           : sa->pages_used != sb->pages_used ? "the pages in use differ"
                           : !rows_equal(a, b)                ? "the rows differ"
                                                              : NULL;
        if (what != NULL) {
            g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                        "%s and %s differ at step %" G_GUINT64_FORMAT ": %s", name_a, name_b, n,
                        what);
            return FALSE;
        }
    }
}
