#include "sim/ledger.h"
#include "sim/engine.h"

#define LEDGER_HEAD 8

static void print_entry(FILE *out, const PlanEntry *entry, const char *separator)
{
    const SimRequest *r = entry->r;
    fprintf(out, "%s[%" G_GUINT64_FORMAT ",%u,%u,[", separator, r->request.id, entry->tokens,
            entry->before);
    for (guint32 i = 0; i < entry->new_pages; i++)
        fprintf(out, "%s%u", i ? "," : "", r->pages[r->n_pages - entry->new_pages + i] + 1);
    fprintf(out, "],%u]", entry->hits);
}

void ledger_scheduled(SimLedger *self, const Engine *e)
{
    FILE *out = self->out;
    const StepPlan *p = &e->plan;
    fprintf(out, "{\"step\":%" G_GUINT64_FORMAT ",\"sched\":[", self->lines++);
    for (guint i = 0; i < p->entries->len; i++)
        print_entry(out, &g_array_index(p->entries, PlanEntry, i), i ? "," : "");
    fputs("],\"preempted\":[", out);
    for (guint i = 0; i < p->preempted->len; i++)
        fprintf(out, "%s%" G_GUINT64_FORMAT, i ? "," : "",
                ((const SimRequest *)p->preempted->pdata[i])->request.id);
    fputc(']', out);
}

void ledger_finished(SimLedger *self, const Engine *e)
{
    FILE *out = self->out;
    fputs(",\"finished\":[", out);
    for (guint i = 0; i < e->finished_ids->len; i++)
        fprintf(out, "%s%" G_GUINT64_FORMAT, i ? "," : "",
                g_array_index(e->finished_ids, guint64, i));
    guint32 head[LEDGER_HEAD], n = page_pool_peek(&e->pool, LEDGER_HEAD, head);
    fprintf(out, "],\"free\":%u,\"free_head\":[", e->pool.n_free);
    for (guint32 i = 0; i < n; i++)
        fprintf(out, "%s%u", i ? "," : "", head[i] + 1);
    fputs("],\"waiting\":[", out);
    g_autofree SimRequest **line = wait_queue_list(&e->waiting);
    for (gsize i = 0; i < e->waiting.n; i++)
        fprintf(out, "%s%" G_GUINT64_FORMAT, i ? "," : "", line[i]->request.id);
    fputs("]}\n", out);
}
