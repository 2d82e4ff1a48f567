#include "replay/model.h"

KV_HOT double model_cost(const DeviceProfile *p, const AttnShape *shape, const AttnCounts *c)
{
    /* Cmin / C, as entries of the longest task times Cmin over all entries. */
    const double entries = (double)c->kv_bytes_touched / (4.0 * shape->head_dim);
    const double least = (double)c->longest_tokens * p->cmin;
    const double waiting = least > entries && entries > 0 ? least / entries : 1;
    return (double)c->kv_bytes_touched / p->bandwidth * waiting + c->launches * p->launch_us +
           2 * (double)c->merge_state_bytes / p->bandwidth;
}

/* In time at one worker's rate; attention launches follow one another, so their means add up, as
 * their longest do. */
KV_HOT static double excess(double stream, double longest, double bytes, const AttnCounts *c,
                            double rate)
{
    const double launches = MAX(c->launches - c->merge_launches, 1);
    const double mean = bytes / (double)MAX(c->grid_tasks, 1) * launches / rate;
    const double over = MAX(longest - mean, 0);
    return MAX(MIN(over, stream + over - MAX(stream, longest)), 0);
}

KV_HOT void model_terms(double ret[MODEL_TERMS], const DeviceProfile *p, const AttnShape *shape,
                        gint workers, const AttnCounts *c)
{
    const double entry = 4.0 * shape->head_dim; /* K and V of one KV head, bytes */
    const double stream = (double)c->kv_bytes_touched / p->bandwidth;
    const double longest = (double)c->longest_tokens * entry / p->worker_bandwidth;
    ret[MODEL_FIXED] = 1;
    ret[MODEL_LAUNCH] = c->launches;
    ret[MODEL_STREAM] = stream > longest ? stream : longest;
    ret[MODEL_TAIL] = longest;
    ret[MODEL_MERGE] = 2 * (double)c->merge_state_bytes / p->bandwidth;
    ret[MODEL_WAVE] = (double)((c->grid_tasks + workers - 1) / workers);
    ret[MODEL_EXCESS] =
        excess(stream, longest, (double)c->kv_bytes_touched, c, p->worker_bandwidth);
}

KV_HOT double model_linear(const LearnedRoute *r, const double terms[MODEL_TERMS])
{
    return r->fixed_us + r->launch_us * terms[MODEL_LAUNCH] + r->stream * terms[MODEL_STREAM] +
           r->tail * terms[MODEL_TAIL] + r->merge * terms[MODEL_MERGE] +
           r->wave_us * terms[MODEL_WAVE] + r->excess * terms[MODEL_EXCESS];
}

double model_learned(const LearnedRoute *r, const DeviceProfile *p, const AttnShape *shape,
                     gint workers, const AttnCounts *c)
{
    double terms[MODEL_TERMS];
    model_terms(terms, p, shape, workers, c);
    double us = model_linear(r, terms);
    if (r->near != NULL) {
        const NearPoint at = near_at(shape, c);
        us *= near_ratio(r->near, &at);
    }
    return model_bound(p, us, c);
}

KV_HOT double model_bound(const DeviceProfile *p, double us, const AttnCounts *c)
{
    return p->read_rate > 0 ? MAX(us, (double)c->kv_bytes_touched / p->read_rate) : us;
}

KV_HOT double model_host(const LearnedRoute *r, const AttnCounts *c)
{
    return r->host_us + r->host_task_us * (double)c->grid_tasks;
}
