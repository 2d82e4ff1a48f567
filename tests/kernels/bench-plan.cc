/* Benchmark: what planning a step costs the host: evenness at wide workers (as attn_cuda_fit_plan()
 * asks), the plan, and its tasks as the kernels read them; the counters, a part of the plan, also
 * by themselves. Caches are warm: a host that does other things between two steps pays more. The
 * upload itself needs a GPU (tests/gpu/lab_time.c).
 */
#include <glib.h> /* before the kernels' words for the compiler */
#include <algorithm>
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <vector>

#include "kernels/attn_tasks.cuh"
#include "kernels/plan.h"

namespace
{

const AttnShape llama = {32, 8, 128, 16, ATTN_F16, ATTN_HND};

double now_ns()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Nanoseconds a call: the best of 15 rounds of 200 in a row, and the median of 51 that each come
 * after 200 us of waiting, as after a step. */
struct Cost {
    double row, alone;
};

template <typename Call> Cost cost_of(const Call &call)
{
    Cost cost = {1e18, 0};
    for (int round = 0; round < 15; round++) {
        const double from = now_ns();
        for (int i = 0; i < 200; i++)
            call();
        cost.row = MIN(cost.row, (now_ns() - from) / 200);
    }
    std::vector<double> alone;
    for (int round = 0; round < 51; round++) {
        for (const double from = now_ns(); now_ns() - from < 2e5;)
            continue;
        const double from = now_ns();
        call();
        alone.push_back(now_ns() - from);
    }
    std::sort(alone.begin(), alone.end());
    cost.alone = alone[alone.size() / 2];
    return cost;
}

enum Lengths { EQUAL, BIMODAL, ZIPF };
const char *const lengths_name[] = {"equal", "bimodal", "zipf"};

std::vector<int32_t> draw(Lengths lengths, int rows)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    std::vector<int32_t> lens;
    for (int r = 0; r < rows; r++)
        switch (lengths) {
        case EQUAL:
            lens.push_back(2048);
            break;
        case BIMODAL:
            lens.push_back(r % 4 == 0 ? g_rand_int_range(rand, 24576, 65537)
                                      : g_rand_int_range(rand, 2048, 12289));
            break;
        case ZIPF:
            lens.push_back((int32_t)(2048 + 65536 / sqrt((double)g_rand_int_range(rand, 1, 33))));
            break;
        }
    return lens;
}

void cell(AttnRoute route, Lengths lengths, int rows, int32_t workers)
{
    const std::vector<int32_t> lens = draw(lengths, rows);
    AttnPlanConfig config, wide;
    attn_plan_config_init(&config, route, workers);
    attn_plan_config_init(&wide, route, 132);
    AttnPlan plan;
    AttnCounts counts;
    attn_plan_init(&plan);
    attn_plan_build(&plan, &config, &llama, rows, lens.data());
    std::vector<kv::StreamTask> tasks((size_t)plan.n_tasks);
    volatile double evenness;
    const auto even = [&] { evenness = attn_plan_evenness(&wide, &llama, rows, lens.data()); };
    const auto build = [&] { attn_plan_build(&plan, &config, &llama, rows, lens.data()); };
    const auto fill = [&] { kv::fill_tasks(&plan, tasks.data()); };
    const Cost each[] = {cost_of(even), cost_of([&] {
                             attn_plan_count(&counts, &config, &llama, rows, lens.data());
                         }),
                         cost_of(build), cost_of(fill), cost_of([&] { even(), build(), fill(); })};
    printf("%-15s %-7s %2d %3d %4d    ", attn_route_name(route), lengths_name[lengths], rows,
           workers, plan.n_tasks);
    for (const Cost &c : each)
        printf(" %6.0f %6.0f", c.row, c.alone);
    printf("\n");
    attn_plan_free(&plan);
}

} // namespace

int main()
{
    printf("ns a call, in a row and after a wait\n"
           "                   rows workers tasks        evenness       (count)         build    "
           "     tasks  all but count\n");
    for (AttnRoute route : {ATTN_WORKQUEUE, ATTN_WORKQUEUE_FUSED})
        for (Lengths lengths : {EQUAL, BIMODAL, ZIPF})
            for (int rows : {1, 8, 64})
                for (int32_t workers : {132, 264})
                    cell(route, lengths, rows, workers);
    return 0;
}
