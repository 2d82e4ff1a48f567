#include "replay/crew.h"

typedef struct Member {
    Crew *crew;
    guint index;
    GThread *thread;
} Member;

struct Crew {
    GMutex lock;
    GCond work, done;
    Member *member;
    guint n, left;  /* members; of those, still at the job in hand */
    guint64 number; /* of the job in hand */
    CrewJob job;    /* NULL = go home */
    gpointer data;
};

static gpointer work(gpointer data)
{
    const Member *me = data;
    Crew *self = me->crew;
    guint64 seen = 0;
    for (;;) {
        g_mutex_lock(&self->lock);
        while (self->number == seen)
            g_cond_wait(&self->work, &self->lock);
        seen = self->number;
        const CrewJob job = self->job;
        g_mutex_unlock(&self->lock);
        if (job == NULL)
            return NULL;
        job(self->data, me->index);
        g_mutex_lock(&self->lock);
        if (--self->left == 0)
            g_cond_signal(&self->done);
        g_mutex_unlock(&self->lock);
    }
}

static void begin(Crew *self, CrewJob job, gpointer data)
{
    self->job = job;
    self->data = data;
    self->left = self->n;
    self->number++;
    g_cond_broadcast(&self->work);
}

Crew *crew_new(guint members, const char *name)
{
    Crew *self = g_new0(Crew, 1);
    g_mutex_init(&self->lock);
    g_cond_init(&self->work);
    g_cond_init(&self->done);
    self->n = members;
    self->member = g_new0(Member, members);
    for (guint i = 0; i < members; i++) {
        self->member[i] = (Member){.crew = self, .index = i};
        self->member[i].thread = g_thread_new(name, work, &self->member[i]);
    }
    return self;
}

void crew_free(Crew *self)
{
    if (self == NULL)
        return;
    g_mutex_lock(&self->lock);
    begin(self, NULL, NULL);
    g_mutex_unlock(&self->lock);
    for (guint i = 0; i < self->n; i++)
        g_thread_join(self->member[i].thread);
    g_free(self->member);
    g_mutex_clear(&self->lock);
    g_cond_clear(&self->work);
    g_cond_clear(&self->done);
    g_free(self);
}

guint crew_members(const Crew *self)
{
    return self->n;
}

void crew_run(Crew *self, CrewJob job, gpointer data)
{
    g_mutex_lock(&self->lock);
    begin(self, job, data);
    while (self->left > 0)
        g_cond_wait(&self->done, &self->lock);
    g_mutex_unlock(&self->lock);
}
