#include "replay/decision.h"

#include <math.h>
#include <string.h>

#include "replay/model.h"
#include "replay/near_pack.h"

enum {
    LINE = 64,
    PAGE = 4096,
    ROUTES_AT_ONCE = 8, /* whose points are found before any are read */
    FOUND = 256,        /* blocks, of those routes together */
    CLOSE = 12,         /* blocks gathered of a route, at most */
};

typedef struct Entry {  /* a candidate's */
    LearnedRoute route; /* its numbers */
    gboolean known;
    gboolean gather;    /* what is near `asked` is to be gathered */
    NearQuestion asked; /* last, and its answer */
    double ratio;
    NearQuestion centre; /* of the points gathered */
    guint n_close;       /* blocks of them; CLOSE + 1: they were too many */
    NearClose *close;
    NearPack pack; /* as `close`, in the Decision's own piece */
} Entry;

struct Decision {
    DeviceProfile rates; /* its numbers */
    guint n;
    gboolean wall;
    gsize head;    /* bytes of this and the entries */
    Entry entry[]; /* then the points gathered, lines and blocks of all */
};

static const NearQuestion none = {{G_MININT16}}; /* far from any */

/* Each route's places in the piece; its points into them. */
static void lay_out(Decision *self, guint lines)
{
    NearClose *close = (NearClose *)(void *)((char *)self + self->head);
    NearLine *line = (NearLine *)(void *)(close + self->n * CLOSE);
    NearBlock *block = (NearBlock *)(void *)(line + lines);
    for (guint i = 0; i < self->n; i++) {
        NearPack *pack = &self->entry[i].pack;
        if (pack->n_lines > 0) {
            memcpy(line, pack->lines, pack->n_lines * sizeof *line);
            memcpy(block, pack->blocks, pack->n_blocks * sizeof *block);
        }
        self->entry[i].close = close + i * CLOSE;
        pack->lines = line;
        pack->blocks = block;
        line += pack->n_lines;
        block += pack->n_blocks;
    }
}

Decision *decision_new(const DeviceProfile *profile, const LearnedRoute *const *known, guint n,
                       gboolean wall)
{
    g_assert(n <= DECISION_MOST);
    guint lines = 0, blocks = 0;
    for (guint i = 0; i < n; i++)
        if (known[i] != NULL && known[i]->near != NULL) {
            lines += near_packed(known[i]->near)->n_lines;
            blocks += near_packed(known[i]->near)->n_blocks;
        }
    const gsize head = (sizeof(Decision) + n * sizeof(Entry) + LINE - 1) / LINE * LINE;
    Decision *self = g_aligned_alloc0(1,
                                      head + n * CLOSE * sizeof(NearClose) +
                                          lines * sizeof(NearLine) + blocks * sizeof(NearBlock),
                                      PAGE);
    self->rates = *profile;
    self->n = n;
    self->wall = wall;
    self->head = head;
    for (guint i = 0; i < n; i++) {
        Entry *e = &self->entry[i];
        e->asked = e->centre = none;
        e->ratio = 1;
        e->known = known[i] != NULL;
        if (!e->known)
            continue;
        e->route = *known[i];
        if (known[i]->near != NULL)
            e->pack = *near_packed(known[i]->near);
    }
    lay_out(self, lines);
    return self;
}

void decision_free(Decision *self)
{
    g_aligned_free(self);
}

static inline void fetch(const void *from, gsize size)
{
    for (const char *at = from; at < (const char *)from + size; at += LINE)
        __builtin_prefetch(at);
}

typedef enum { ANSWERED, CLOSE_BY, FAR_OFF } Ask; /* what the points gathered are good for */

/* The linear estimate, and what to ask of the points; fetches what that needs first. */
static inline Ask estimate(const Decision *self, Entry *e, const StepFeatures *step,
                           const AttnCounts *c, double *ret)
{
    double terms[MODEL_TERMS];
    model_terms(terms, &self->rates, &step->shape, step->workers, c);
    *ret = model_linear(&e->route, terms);
    if (e->pack.n_lines == 0)
        return ANSWERED;
    const NearPoint at = near_at(&step->shape, c);
    const NearQuestion question = near_question(&at), before = e->asked;
    gint32 differs = 0;
    for (int a = 0; a < NEAR_AXES; a++)
        differs |= question.at[a] ^ before.at[a];
    if (differs == 0)
        return ANSWERED;
    e->asked = question;
    const gboolean close = near_question_close(&question, &e->centre);
    if (close && e->n_close <= CLOSE) {
        fetch(e->close, e->n_close * sizeof *e->close);
        return CLOSE_BY;
    }
    e->gather = !close && near_question_close(&question, &before);
    fetch(e->pack.lines, e->pack.n_lines * sizeof *e->pack.lines);
    return FAR_OFF;
}

/* The blocks to read; fetches them. */
static inline guint find(const Entry *e, NearFound *ret)
{
    const float reach = e->gather ? 1 + NEAR_MARGIN : 1;
    const guint n = near_pack_find(&e->pack, 0, e->pack.n_lines, &e->asked, reach, ret);
    for (guint k = 0; k < n; k++) {
        const char *block = (const char *)&e->pack.blocks[ret[k].block];
        __builtin_prefetch(block);
        __builtin_prefetch(block + sizeof(NearBlock) - 1);
    }
    return n;
}

static inline void answer(Entry *e, const NearFound *found, guint n)
{
    e->ratio = near_pack_of(&e->pack, found, n, &e->asked);
    if (!e->gather)
        return;
    e->n_close = near_pack_gather(&e->pack, found, n, &e->asked, e->close, CLOSE);
    e->centre = e->asked;
}

/* Answers of candidates far[] by all their points. */
KV_HOT static void answer_far(Decision *self, const guint *far, guint n)
{
    NearFound found[FOUND + 1];
    guint first[ROUTES_AT_ONCE + 1];
    for (guint from = 0, end; from < n; from = end) {
        first[0] = 0;
        for (end = from; end < n && end - from < ROUTES_AT_ONCE; end++) {
            const Entry *e = &self->entry[far[end]];
            const guint begin = first[end - from];
            if (begin + e->pack.n_lines * NEAR_BLOCK > FOUND)
                break;
            first[end - from + 1] = begin + find(e, found + begin);
        }
        for (guint i = from; i < end; i++)
            answer(&self->entry[far[i]], found + first[i - from],
                   first[i - from + 1] - first[i - from]);
        if (end == from) { /* points of very many shapes: found and read by and by */
            Entry *e = &self->entry[far[end++]];
            e->ratio = near_pack_ratio(&e->pack, &e->asked);
        }
    }
}

KV_HOT void decision_costs(Decision *self, const StepFeatures *step, const Candidate *candidates,
                           double *ret)
{
    guint close[DECISION_MOST], far[DECISION_MOST], n_close = 0, n_far = 0;
    fetch(self, self->head);
    for (guint i = 0; i < self->n; i++) {
        ret[i] = (double)INFINITY;
        if (!self->entry[i].known)
            continue;
        const Ask ask = estimate(self, &self->entry[i], step, &candidates[i].counts, &ret[i]);
        if (ask == CLOSE_BY)
            close[n_close++] = i;
        else if (ask == FAR_OFF)
            far[n_far++] = i;
    }
    if (n_far > 0)
        answer_far(self, far, n_far);
    for (guint i = 0; i < n_close; i++) {
        Entry *e = &self->entry[close[i]];
        e->ratio = near_close_ratio(e->close, e->n_close, &e->asked);
    }
    for (guint i = 0; i < self->n; i++) {
        const AttnCounts *c = &candidates[i].counts;
        ret[i] = model_bound(&self->rates, ret[i] * self->entry[i].ratio, c);
        if (self->wall)
            ret[i] += model_host(&self->entry[i].route, c);
    }
}
