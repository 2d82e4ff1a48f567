/* The planner: coverage and order of tasks on random batches (the auditor recounts from the lists),
 * counters without lists equal to counters of lists, and the published figures.
 *
 * Invariant relied on: whatever the route, every entry of every row is in exactly one task.
 */
#include <glib.h>

#include "kernels/plan.h"

static const AttnShape llama = {.q_heads = 32, .kv_heads = 8, .head_dim = 128, .page_size = 16};

static void assert_counts_equal(const AttnCounts *a, const AttnCounts *b)
{
    g_assert_cmpint(a->launches, ==, b->launches);
    g_assert_cmpint(a->merge_launches, ==, b->merge_launches);
    g_assert_cmpint(a->tasks, ==, b->tasks);
    g_assert_cmpint(a->grid_tasks, ==, b->grid_tasks);
    g_assert_cmpint(a->max_splits, ==, b->max_splits);
    g_assert_cmpfloat(a->nonempty_fraction, ==, b->nonempty_fraction);
    g_assert_cmpint(a->kv_bytes, ==, b->kv_bytes);
    g_assert_cmpint(a->longest_tokens, ==, b->longest_tokens);
    g_assert_cmpint(a->partial_slots, ==, b->partial_slots);
    g_assert_cmpint(a->merge_state_bytes, ==, b->merge_state_bytes);
}

/* The longest task of a launch in batch order, in whole units, is what the counter says. */
static void assert_longest(const AttnPlan *plan, const AttnShape *shape)
{
    if (plan->config.route == ATTN_BUCKETS || plan->config.route == ATTN_PERSISTENT)
        return;
    const int32_t unit = MAX(plan->config.tile, shape->page_size);
    int32_t longest = 0;
    for (int i = 0; i < plan->n_tasks; i++)
        longest = MAX(longest, plan->tasks[i].end - plan->tasks[i].begin);
    g_assert_cmpint(plan->counts.longest_tokens, ==, (gint64)(longest + unit - 1) / unit * unit);
}

static void check_one(AttnPlan *plan, const AttnPlanConfig *config, const AttnShape *shape,
                      int rows, const int32_t *lens)
{
    AttnCounts counted;
    g_assert_cmpint(attn_plan_count(&counted, config, shape, rows, lens), ==, ATTN_OK);
    g_assert_cmpint(attn_plan_build(plan, config, shape, rows, lens), ==, ATTN_OK);
    const char *wrong = attn_plan_check(plan, shape, rows, lens);
    if (wrong != NULL)
        g_error("%s: %s (rows %d, rule %d, s %d, tile %d, workers %d, min %d, width %d, c0 %d)",
                attn_route_name(config->route), wrong, rows, config->rule, config->s, config->tile,
                config->workers, config->min_tokens, config->bucket_width, config->c0_tiles);
    assert_counts_equal(&counted, &plan->counts);
    assert_longest(plan, shape);
}

static int32_t random_length(void)
{
    switch (g_test_rand_int_range(0, 6)) {
    case 0:
        return g_test_rand_int_range(0, 3);
    case 1:
        return g_test_rand_int_range(1, 70);
    case 2:
        return 16 * g_test_rand_int_range(1, 20) + g_test_rand_int_range(-1, 2);
    case 3:
        return 4096;
    default:
        return g_test_rand_int_range(1, 20000);
    }
}

static void test_random(void)
{
    AttnPlan plan;
    attn_plan_init(&plan);
    for (int round = 0; round < 4000; round++) {
        static const int32_t heads[] = {1, 2, 3, 8}, pages[] = {1, 4, 16, 64, 128};
        static const int32_t workers[] = {1, 2, 7, 28, 64, 132, 264};
        AttnShape shape = llama;
        shape.kv_heads = heads[g_test_rand_int_range(0, 4)];
        shape.q_heads = shape.kv_heads * g_test_rand_int_range(1, 17);
        shape.page_size = pages[g_test_rand_int_range(0, 5)];
        const int rows = g_test_rand_int_range(0, round % 50 == 0 ? 1500 : 40);
        g_autofree int32_t *lens = g_new(int32_t, rows + 1);
        for (int r = 0; r < rows; r++)
            lens[r] = random_length();
        AttnPlanConfig config;
        attn_plan_config_init(&config, g_test_rand_int_range(0, ATTN_ROUTE_MAX),
                              workers[g_test_rand_int_range(0, 7)]);
        config.rule = g_test_rand_int_range(0, 2);
        config.s = g_test_rand_int_range(1, 41);
        config.tile = round % 3 == 0 ? g_test_rand_int_range(1, 200) /* few are a power of two */
                                     : 16 << g_test_rand_int_range(0, 3);
        config.min_tokens = g_test_rand_int_range(0, 300);
        config.bucket_width = g_test_rand_int_range(0, 2) ? 0 : 1 << g_test_rand_int_range(0, 15);
        config.c0_tiles = g_test_rand_int_range(0, 20);
        check_one(&plan, &config, &shape, rows, lens);
    }
    attn_plan_free(&plan);
}

/* attn_plan_evenness() against the tasks of the plan itself. */
static void test_evenness(void)
{
    AttnPlan plan;
    attn_plan_init(&plan);
    int waves = 0;
    for (int round = 0; round < 2000; round++) {
        AttnShape shape = llama;
        shape.kv_heads = 1 << g_test_rand_int_range(0, 4);
        shape.q_heads = 4 * shape.kv_heads;
        const int rows = g_test_rand_int_range(1, 12);
        int32_t lens[12];
        for (int r = 0; r < rows; r++)
            lens[r] = random_length();
        AttnPlanConfig config;
        attn_plan_config_init(&config, ATTN_WORKQUEUE,
                              round % 4 == 0 ? rows * shape.kv_heads
                                             : g_test_rand_int_range(8, 300));
        g_assert_cmpint(attn_plan_build(&plan, &config, &shape, rows, lens), ==, ATTN_OK);
        const int32_t unit = MAX(config.tile, shape.page_size);
        gint64 tasks = 0, longest = 0, sum = 0;
        for (int i = 0; i < plan.n_tasks; i++) {
            const gint64 units = (plan.tasks[i].end - plan.tasks[i].begin + unit - 1) / unit;
            tasks += units > 0, sum += units, longest = MAX(longest, units);
        }
        const double share = attn_plan_evenness(&config, &shape, rows, lens);
        if (tasks == 0 || tasks > config.workers) {
            g_assert_true(share == 0);
        } else {
            g_assert_cmpfloat_with_epsilon(share, (double)sum / (double)(longest * config.workers),
                                           1e-12);
            waves++;
        }
        config.rule = ATTN_SPLITS_FIXED, config.s = 4;
        g_assert_true(attn_plan_evenness(&config, &shape, rows, lens) == 0);
    }
    g_assert_cmpint(waves, >, 100);
    attn_plan_free(&plan);
}

/* The auditor must be able to fail. */
static void test_auditor(void)
{
    const int32_t lens[] = {1000, 50, 0, 4000};
    AttnPlan plan;
    attn_plan_init(&plan);
    AttnPlanConfig config;
    attn_plan_config_init(&config, ATTN_WORKQUEUE, 28);
    config.rule = ATTN_SPLITS_FIXED;
    config.s = 4;
    check_one(&plan, &config, &llama, 4, lens);
    plan.tasks[1].begin++;
    g_assert_nonnull(attn_plan_check(&plan, &llama, 4, lens));
    plan.tasks[1].begin--;
    plan.tasks[1].slot++;
    g_assert_nonnull(attn_plan_check(&plan, &llama, 4, lens));
    plan.tasks[1].slot--;
    plan.merges[0].n_slots--;
    g_assert_nonnull(attn_plan_check(&plan, &llama, 4, lens));
    plan.merges[0].n_slots++;
    plan.launches[0].count--;
    g_assert_nonnull(attn_plan_check(&plan, &llama, 4, lens));
    plan.launches[0].count++;
    plan.counts.tasks++;
    g_assert_nonnull(attn_plan_check(&plan, &llama, 4, lens));
    plan.counts.tasks--;
    plan.n_tasks--;
    g_assert_nonnull(attn_plan_check(&plan, &llama, 4, lens));
    plan.n_tasks++;
    g_assert_null(attn_plan_check(&plan, &llama, 4, lens));
    attn_plan_free(&plan);
}

/* arXiv 2606.26666, bimodal at eight rows: 16 launches by exact buckets at S = 32 and 4.06 MiB; two
 * by the work queue at S = 20, 1280 tasks and 2.54 MiB; one when the merge is fused. */
static void test_published(void)
{
    const int32_t lens[] = {30592, 9312, 7056, 10656, 52800, 3504, 2048, 12288};
    AttnPlanConfig config;
    AttnCounts c;
    attn_plan_config_init(&config, ATTN_BUCKETS, 28);
    config.rule = ATTN_SPLITS_FIXED;
    config.s = 32;
    attn_plan_count(&c, &config, &llama, 8, lens);
    g_assert_cmpint(c.launches, ==, 16);
    g_assert_cmpint(c.merge_launches, ==, 8);
    g_assert_cmpint(c.tasks, ==, 2048);
    g_assert_cmpint(c.merge_state_bytes, ==, 8 * 32 * 32 * (2 + 128) * 4);
    config.route = ATTN_WORKQUEUE;
    config.s = 20;
    attn_plan_count(&c, &config, &llama, 8, lens);
    g_assert_cmpint(c.launches, ==, 2);
    g_assert_cmpint(c.tasks, ==, 1280);
    g_assert_cmpint(c.merge_state_bytes, ==, 8 * 32 * 20 * (2 + 128) * 4);
    config.route = ATTN_WORKQUEUE_FUSED;
    attn_plan_count(&c, &config, &llama, 8, lens);
    g_assert_cmpint(c.launches, ==, 1);
    g_assert_cmpint(c.merge_launches, ==, 0);
    g_assert_cmpint(c.merge_state_bytes, ==, 8 * 32 * 20 * (2 + 128) * 4);
    /* Two rows of one length share a bucket; padded to 64 Ki tokens all do. */
    const int32_t twins[] = {100, 4096, 100, 5000};
    config.route = ATTN_BUCKETS;
    attn_plan_count(&c, &config, &llama, 4, twins);
    g_assert_cmpint(c.launches, ==, 6);
    config.bucket_width = 65536;
    attn_plan_count(&c, &config, &llama, 4, twins);
    g_assert_cmpint(c.launches, ==, 2);
    config.s = 1;
    attn_plan_count(&c, &config, &llama, 4, twins);
    g_assert_cmpint(c.launches, ==, 1);
}

/* Split bounds by hand: 5 tiles of 32 (the last of 2 tokens) in 3 splits: tiles 0, 1..2, 3..4. */
static void test_fixed_bounds(void)
{
    const int32_t lens[] = {130, 33, 20};
    AttnShape one = llama;
    one.kv_heads = 1;
    one.q_heads = 4;
    AttnPlan plan;
    attn_plan_init(&plan);
    AttnPlanConfig config;
    attn_plan_config_init(&config, ATTN_WORKQUEUE, 1);
    config.rule = ATTN_SPLITS_FIXED;
    config.s = 3;
    check_one(&plan, &config, &one, 3, lens);
    static const AttnTask want[] = {
        {0, 0, 0, 32, 0}, {0, 0, 32, 96, 1}, {0, 0, 96, 130, 2},
        {1, 0, 0, 32, 3}, {1, 0, 32, 33, 4}, {2, 0, 0, 20, -1},
    };
    g_assert_cmpint(plan.n_tasks, ==, G_N_ELEMENTS(want));
    for (guint i = 0; i < G_N_ELEMENTS(want); i++)
        g_assert_cmpmem(&plan.tasks[i], sizeof want[i], &want[i], sizeof want[i]);
    g_assert_cmpint(plan.n_merges, ==, 2);
    g_assert_cmpfloat(plan.counts.nonempty_fraction, ==, 6.0 / 9);
    attn_plan_free(&plan);
}

/* One long row on N workers is cut so that all run at once; a ragged batch so that the longest task
 * is a small part of a worker's share. */
static void test_balanced(void)
{
    const int32_t one[] = {32768};
    AttnPlanConfig config;
    AttnCounts c;
    attn_plan_config_init(&config, ATTN_WORKQUEUE, 132);
    attn_plan_count(&c, &config, &llama, 1, one);
    g_assert_cmpint(c.tasks, <=, 132);
    g_assert_cmpint(c.tasks, >=, 120);

    int32_t ragged[32];
    for (int i = 0; i < 32; i++)
        ragged[i] = i % 4 == 0 ? 50000 : 5000;
    AttnPlan plan;
    attn_plan_init(&plan);
    check_one(&plan, &config, &llama, 32, ragged);
    int32_t longest = 0;
    for (int i = 0; i < plan.n_tasks; i++)
        longest = MAX(longest, plan.tasks[i].end - plan.tasks[i].begin);
    const double share = (8 * 50000.0 + 24 * 5000.0) * 8 / 132;
    g_assert_cmpfloat(longest, <, 0.27 * share);
    g_assert_cmpint(plan.counts.longest_tokens, ==, longest);

    config.route = ATTN_PERSISTENT;
    check_one(&plan, &config, &llama, 32, ragged);
    g_assert_cmpint(plan.counts.partial_slots, <=, 2 * 132);
    attn_plan_free(&plan);
}

/* One KV head, CTAs of at least a tile. */
static void check_by_hand(int32_t workers, int32_t rows, const int32_t *lens, gint64 want_units,
                          const AttnTask *want, int32_t n)
{
    AttnShape one = llama;
    one.kv_heads = one.q_heads = 1;
    AttnPlan plan;
    attn_plan_init(&plan);
    AttnPlanConfig config;
    attn_plan_config_init(&config, ATTN_PERSISTENT, workers);
    config.c0_tiles = 1;
    config.min_tokens = 16;
    int64_t units;
    g_assert_cmpint(attn_plan_persistent_ctas(&config, &one, rows, lens, &units), ==, workers);
    g_assert_cmpint(units, ==, want_units);
    check_one(&plan, &config, &one, rows, lens);
    g_assert_cmpint(plan.n_tasks, ==, n);
    for (int32_t i = 0; i < n; i++)
        g_assert_cmpmem(&plan.tasks[i], sizeof want[i], &want[i], sizeof want[i]);
    attn_plan_free(&plan);
}

/* Persistent by hand. Ranges, for three rows are more than two CTAs can have one each: 5, 1 and 1
 * tiles of 16, c0 1, 10 units, the border at 5 = after four tiles of row 0. Parts: 8 and 4 tiles
 * for 4 CTAs, a mean of 3, so parts of 4. */
static void test_persistent(void)
{
    static const int32_t ranges[] = {70, 10, 10}, parts[] = {128, 60};
    static const AttnTask in_ranges[] = {
        {0, 0, 0, 64, 0}, {0, 0, 64, 70, 1}, {1, 0, 0, 10, -1}, {2, 0, 0, 10, -1}};
    static const AttnTask in_parts[] = {{0, 0, 0, 64, 0}, {0, 0, 64, 128, 1}, {1, 0, 0, 60, -1}};
    check_by_hand(2, 3, ranges, 10, in_ranges, 4);
    check_by_hand(4, 2, parts, 14, in_parts, 3);
}

/* When a batch is cut into parts: as many as fit, the mean share of 248 tiles or up to 5 % more. */
static void test_parts(void)
{
    AttnPlanConfig config;
    int64_t parts;
    attn_plan_config_init(&config, ATTN_PERSISTENT, 132);
    const int32_t rows8[] = {8192, 8192, 8192, 8192, 8192, 8192, 8192, 8192};
    g_assert_cmpint(attn_plan_persistent_part(&config, &llama, 8, rows8, &parts), ==, 256);
    g_assert_cmpint(parts, ==, 128);
    const int32_t uneven[] = {8192, 8192, 8192, 8192, 8192, 8192, 8192, 10000};
    g_assert_cmpint(attn_plan_persistent_part(&config, &llama, 8, uneven, &parts), ==, 0);
    g_assert_cmpint(parts, ==, 0);
    const int32_t none[] = {0, 0};
    g_assert_cmpint(attn_plan_persistent_part(&config, &llama, 2, none, NULL), ==, 0);
    const int32_t shortest[] = {64};
    g_assert_cmpint(attn_plan_persistent_part(&config, &llama, 1, shortest, NULL), ==, 0);
    config.workers = 7; /* fewer than KV heads */
    g_assert_cmpint(attn_plan_persistent_part(&config, &llama, 1, rows8, NULL), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/random", test_random);
    g_test_add_func("/plan/auditor", test_auditor);
    g_test_add_func("/plan/evenness", test_evenness);
    g_test_add_func("/plan/published", test_published);
    g_test_add_func("/plan/fixed-bounds", test_fixed_bounds);
    g_test_add_func("/plan/balanced", test_balanced);
    g_test_add_func("/plan/persistent", test_persistent);
    g_test_add_func("/plan/parts", test_parts);
    return g_test_run();
}
