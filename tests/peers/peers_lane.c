/* One route or peer, set up for a batch: tables, plan, launches. */
#include "peers_lab.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

double lab_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* --- one lane --- */

void lane_note(Lane *l, const char *text)
{
    snprintf(l->note, sizeof l->note, "%s", text);
    for (char *p = l->note; *p; p++)
        if (*p == ',' || *p == '"' || *p == '\n')
            *p = ';';
    l->runs = 0;
}

void lane_free(Lane *l)
{
    if (l->peer != NULL)
        l->ops->free(l->peer);
    if (l->cuda != NULL) {
        attn_plan_free(&l->plan);
        attn_cuda_free(l->cuda);
    }
    l->peer = NULL, l->cuda = NULL;
}

static void open_ours(Lane *l, const Batch *b)
{
    AttnCudaConfig cc = {
        .shape = b->shape, .max_rows = b->rows, .max_tasks = 200000, .max_slots = 40000};
    OK(attn_cuda_new(&l->cuda, &cc, &lab_error));
    attn_plan_init(&l->plan);
    attn_plan_config_init(&l->plan_config, l->entry->route, 1);
    attn_cuda_fit_plan(l->cuda, &l->plan_config, b->rows, b->lens);
    if (attn_plan_build(&l->plan, &l->plan_config, &b->shape, b->rows, b->lens) != ATTN_OK)
        lab_fail(__FILE__, __LINE__, "plan");
    l->launches = l->plan.counts.launches;
    l->runs = 1;
}

static void open_peer(const Lab *lab, Lane *l, const Batch *b)
{
    PeerError error = {{0}};
    size_t left = 0, all = 0;
    int longest = 0;
    for (int r = 0; r < b->rows; r++)
        longest = b->lens[r] > longest ? b->lens[r] : longest;
    const PeerConfig config = {.shape = b->shape,
                               .pool = lab->view,
                               .max_rows = b->rows,
                               .max_len = longest,
                               .max_pages = b->n_pages,
                               .settings = l->entry->settings};
    l->ops = peer_find(l->entry->peer);
    if (l->ops == NULL || !l->ops->built) {
        lane_note(l, "not built");
        return;
    }
    if (peer_supports(l->ops, &config, &error) != ATTN_OK) {
        lane_note(l, error.text);
        return;
    }
    CUDA(cudaMemGetInfo(&left, &all));
    const int64_t need = l->ops->workspace(&config);
    if (need > (int64_t)left) {
        snprintf(error.text, sizeof error.text, "needs %.1f GB of device memory: %.1f GB left",
                 1e-9 * (double)need, 1e-9 * (double)left);
        lane_note(l, error.text);
        return;
    }
    if (l->ops->create(&l->peer, &config, &error) != ATTN_OK)
        lane_note(l, error.text);
    else
        l->runs = 1;
}

/* Everything up to the launches, for set `set`; FALSE with a note on failure. */
int lane_tables(Lab *lab, Lane *l, const Batch *b, int set)
{
    PeerError error = {{0}};
    if (l->peer == NULL)
        return 1;
    double at = lab_now_us();
    if (l->ops->tables(l->peer, b->rows, b->lens, lab->tables[set], b->offset, lab->stream,
                       &error) != ATTN_OK) {
        lane_note(l, error.text);
        return 0;
    }
    l->tables_us = lab_now_us() - at;
    return 1;
}

int lane_plan(Lab *lab, Lane *l, const Batch *b)
{
    PeerError error = {{0}};
    if (l->peer != NULL) {
        if (l->ops->plan(l->peer, lab->stream, &error) != ATTN_OK)
            lane_note(l, error.text);
        return l->runs;
    }
    if (l->entry->route != ATTN_PERSISTENT)
        attn_plan_build(&l->plan, &l->plan_config, &b->shape, b->rows, b->lens);
    int64_t bytes = 0;
    OK(attn_cuda_upload(l->cuda, &l->plan, lab->stream, &bytes, &lab_error));
    l->plan_bytes = bytes;
    return 1;
}

int lane_launch(Lab *lab, Lane *l, const Batch *b, int set)
{
    PeerError error = {{0}};
    if (l->peer != NULL) {
        if (l->ops->run(l->peer, NULL, b->q, b->out, b->on[0].scale, lab->stream, &error) !=
            ATTN_OK)
            lane_note(l, error.text);
        return l->runs;
    }
    OK(attn_cuda_run(l->cuda, &lab->view, &b->on[set], &l->plan, lab->stream, &lab_error));
    return 1;
}

void lane_open(const Lab *lab, Lane *l, const Batch *b)
{
    if (l->entry->peer == NULL)
        open_ours(l, b);
    else
        open_peer(lab, l, b);
}
