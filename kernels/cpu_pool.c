#include "kernels/cpu_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct Worker {
    CpuPool *pool;
    pthread_t id;
    int thread;
} Worker;

struct CpuPool {
    pthread_mutex_t lock;
    pthread_cond_t start, done;
    int threads, started;
    Worker *workers; /* [threads - 1] */
    /* the job in hand, under the lock but for `next` */
    uint64_t job;
    int busy; /* workers that have not finished it */
    bool quit;
    void (*item)(void *, int64_t, int);
    void *context;
    int64_t n;
    _Atomic int64_t next;
};

static void take_items(CpuPool *self, int thread)
{
    int64_t i;
    while ((i = atomic_fetch_add_explicit(&self->next, 1, memory_order_relaxed)) < self->n)
        self->item(self->context, i, thread);
}

static void *work(void *data)
{
    const Worker *worker = data;
    CpuPool *self = worker->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&self->lock);
    for (;;) {
        while (self->job == seen && !self->quit)
            pthread_cond_wait(&self->start, &self->lock);
        if (self->quit)
            break;
        seen = self->job;
        pthread_mutex_unlock(&self->lock);
        take_items(self, worker->thread);
        pthread_mutex_lock(&self->lock);
        if (--self->busy == 0)
            pthread_cond_signal(&self->done);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static int affinity_threads(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    const int n = CPU_COUNT(&set);
    return n < 1 ? 1 : n;
}

CpuPool *cpu_pool_new(int threads)
{
    CpuPool *self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->threads = threads > 0 ? threads : affinity_threads();
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->start, NULL);
    pthread_cond_init(&self->done, NULL);
    self->workers = calloc((size_t)self->threads, sizeof *self->workers);
    bool ok = self->workers != NULL;
    for (int i = 0; ok && i < self->threads - 1; i++) {
        Worker *worker = &self->workers[i];
        *worker = (Worker){.pool = self, .thread = i + 1};
        ok = pthread_create(&worker->id, NULL, work, worker) == 0;
        self->started += ok;
    }
    if (!ok) {
        cpu_pool_free(self);
        return NULL;
    }
    return self;
}

void cpu_pool_free(CpuPool *self)
{
    if (self == NULL)
        return;
    pthread_mutex_lock(&self->lock);
    self->quit = true;
    pthread_cond_broadcast(&self->start);
    pthread_mutex_unlock(&self->lock);
    for (int i = 0; i < self->started; i++)
        pthread_join(self->workers[i].id, NULL);
    pthread_cond_destroy(&self->start);
    pthread_cond_destroy(&self->done);
    pthread_mutex_destroy(&self->lock);
    free(self->workers);
    free(self);
}

int cpu_pool_threads(const CpuPool *self)
{
    return self->threads;
}

void cpu_pool_run(CpuPool *self, void (*item)(void *context, int64_t i, int thread), void *context,
                  int64_t n)
{
    self->item = item;
    self->context = context;
    self->n = n;
    atomic_store_explicit(&self->next, 0, memory_order_relaxed);
    if (self->started == 0 || n < 2) {
        take_items(self, 0);
        return;
    }
    pthread_mutex_lock(&self->lock);
    self->job++;
    self->busy = self->started;
    pthread_cond_broadcast(&self->start);
    pthread_mutex_unlock(&self->lock);
    take_items(self, 0);
    pthread_mutex_lock(&self->lock);
    while (self->busy > 0)
        pthread_cond_wait(&self->done, &self->lock);
    pthread_mutex_unlock(&self->lock);
}
