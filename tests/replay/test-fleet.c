/* Several devices: which are taken, that results do not depend on them, and what a failure on one
 * leaves. A device is a host thread here; `faulty` is the cpu backend with a device that breaks. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "replay/backend_ranks.h"
#include "replay/crew.h"
#include "replay/pool_room.h"
#include "replay/replay_fleet.h"
#include "support.h"

enum { REPLICAS = 3 };
static char *folder, *path[REPLICAS];

/* --- a backend whose device 1 fails --- */

static gint fail_at = -1;  /* execution of device 1 that fails; 0 = creating it; -1 = none */
static gint executions[2]; /* by device, atomic */
static GMutex lock;
static GHashTable *device_of; /* Backend * -> device */

static gint two_devices(void)
{
    return 2;
}

static const BackendOps backend_faulty;

static Backend *faulty_create(const BackendConfig *config, GError **error)
{
    if (config->device == 1 && fail_at == 0) {
        const PoolRoom room = {"device 1", 1000, 1 << 20, 2, 1 << 30, (gint64)2 << 30};
        g_assert_false(pool_room_check(&room, error));
        return NULL;
    }
    Backend *self = backend_cpu.create(config, error);
    self->ops = &backend_faulty;
    g_mutex_lock(&lock);
    g_hash_table_replace(device_of, self, GINT_TO_POINTER(config->device));
    g_mutex_unlock(&lock);
    return self;
}

static gboolean faulty_execute(Backend *self, const Route *route, const AttnPlan *plan,
                               gint repeats, guint what, Execution *ret, GError **error)
{
    g_mutex_lock(&lock);
    const gint device = GPOINTER_TO_INT(g_hash_table_lookup(device_of, self));
    g_mutex_unlock(&lock);
    if (g_atomic_int_add(&executions[device], 1) + 1 == fail_at && device == 1) {
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE, "GPU: %s: launch failed", route->label);
        return FALSE;
    }
    return backend_cpu.execute(self, route, plan, repeats, what, ret, error);
}

static gboolean faulty_begin_step(Backend *self, const Step *step, const StepRow *rows,
                                  guint32 n_rows, GError **error)
{
    return backend_cpu.begin_step(self, step, rows, n_rows, error);
}

static gint faulty_workers(Backend *self)
{
    return 0;
}

static const char *faulty_refuses(Backend *self, const Route *route)
{
    return NULL;
}

static void faulty_describe(Backend *self, JsonBuilder *builder)
{
    backend_cpu.describe(self, builder);
}

static void faulty_free(Backend *self)
{
    backend_cpu.free(self);
}

static const BackendOps backend_faulty = {
    .info = {"faulty", "two devices; the second breaks", NULL, 0},
    .executes = TRUE,
    .create = faulty_create,
    .devices = two_devices,
    .default_repeats = 1,
    .workers = faulty_workers,
    .refuses = faulty_refuses,
    .begin_step = faulty_begin_step,
    .execute = faulty_execute,
    .describe = faulty_describe,
    .free = faulty_free,
};

/* --- running --- */

typedef struct Run {
    ReplicaRun replica[REPLICAS];
    char *csv[REPLICAS]; /* text, of what was written */
    GError *error;
    gboolean ok;
} Run;

static void run_clear(Run *run)
{
    for (guint k = 0; k < REPLICAS; k++) {
        steps_reader_free(run->replica[k].steps);
        replay_result_free(run->replica[k].result);
        g_clear_error(&run->replica[k].error);
        g_free(run->csv[k]);
    }
    g_clear_error(&run->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Run, run_clear)

static char *csv_name(guint k)
{
    return g_strdup_printf("%s/replay-%u.csv", folder, k);
}

/* `earlier`: texts that an interrupted run left, or NULL. */
static void run_fleet(Run *run, const ReplayConfig *config, guint n, char *const *earlier)
{
    memset(run, 0, sizeof *run);
    char *resume[REPLICAS] = {NULL};
    for (guint k = 0; k < n; k++) {
        g_autofree char *name = csv_name(k);
        run->replica[k].steps = steps_reader_open(path[k], &run->error);
        run->replica[k].csv = out_file_new(name, &run->error);
        g_assert_no_error(run->error);
        if (earlier == NULL)
            continue;
        resume[k] = g_strconcat(name, ".earlier", NULL);
        g_assert_true(g_file_set_contents(resume[k], earlier[k], -1, NULL));
        run->replica[k].resume = resume[k];
    }
    run->ok = replay_fleet_run(config, run->replica, n, NULL, &run->error);
    for (guint k = 0; k < n; k++) {
        g_autofree char *name = csv_name(k);
        g_assert_true(out_file_commit(run->replica[k].csv, NULL));
        out_file_free(run->replica[k].csv);
        g_assert_true(g_file_get_contents(name, &run->csv[k], NULL, NULL));
        g_unlink(name);
        if (resume[k] != NULL)
            g_unlink(resume[k]);
        g_free(resume[k]);
    }
}

/* Everything that is no time and no device number. */
static char *timeless(const char *csv)
{
    static const char *const times[] = {"plan_us",        "kernel_us",    "wall_us",  "device",
                                        "rank_kernel_us", "rank_skew_us", "tables_us"};
    g_autoptr(GString) out = g_string_new(NULL);
    g_auto(GStrv) line = g_strsplit(csv, "\n", -1);
    g_auto(GStrv) name = g_strsplit(line[0], ",", -1);
    for (guint i = 0; line[i] != NULL && line[i][0] != '\0'; i++) {
        g_auto(GStrv) cell = g_strsplit(line[i], ",", -1);
        g_assert_cmpuint(g_strv_length(cell), ==, g_strv_length(name));
        for (guint c = 0; cell[c] != NULL; c++) {
            gboolean skip = FALSE;
            for (guint t = 0; t < G_N_ELEMENTS(times); t++)
                skip = skip || strcmp(name[c], times[t]) == 0;
            if (!skip)
                g_string_append_printf(out, "%s,", cell[c]);
        }
        g_string_append_c(out, '\n');
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

/* One column of the executed lines, one a line. */
static GPtrArray *executed(const char *csv, const char *column)
{
    GPtrArray *ret = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) line = g_strsplit(csv, "\n", -1);
    g_auto(GStrv) name = g_strsplit(line[0], ",", -1);
    guint at = 0, kernel = 0;
    for (guint c = 0; name[c] != NULL; c++) {
        at = strcmp(name[c], column) == 0 ? c : at;
        kernel = strcmp(name[c], "kernel_us") == 0 ? c : kernel;
    }
    for (guint i = 1; line[i] != NULL && line[i][0] != '\0'; i++) {
        g_auto(GStrv) cell = g_strsplit(line[i], ",", -1);
        if (cell[kernel][0] != '\0')
            g_ptr_array_add(ret, g_strdup(cell[at]));
    }
    return ret;
}

static void set_config(ReplayConfig *config, const char *backend, const char *devices, gint tp)
{
    static const char *const two[] = {"single", "workqueue-fused", NULL};
    test_config(config, backend, "cost", "fixed:s=3", "all", two);
    config->check_every = 1;
    config->config.tp = tp;
    config->devices = g_strdup(devices);
}

/* --- tests --- */

typedef struct Tally {
    gint done[7], all;
} Tally;

static void tally(gpointer data, guint member)
{
    Tally *t = data;
    t->done[member]++; /* its own */
    g_atomic_int_inc(&t->all);
}

/* Every member does every job once, and crew_run() waits for them all. */
static void test_crew(void)
{
    Tally t = {{0}, 0};
    g_autoptr(Crew) crew = crew_new(7, "test");
    g_assert_cmpuint(crew_members(crew), ==, 7);
    for (gint i = 1; i <= 2000; i++) {
        crew_run(crew, tally, &t);
        g_assert_cmpint(t.all, ==, 7 * i);
    }
    for (guint m = 0; m < 7; m++)
        g_assert_cmpint(t.done[m], ==, 2000);
}

static void expect_devices(const char *text, const BackendOps *ops, gint one, guint replicas,
                           gint tp, const char *want)
{
    Devices devices;
    g_autoptr(GError) error = NULL;
    g_assert_true(devices_resolve(&devices, text, ops, one, replicas, tp, &error));
    g_assert_no_error(error);
    g_autofree char *got = devices_text(&devices);
    g_assert_cmpstr(got, ==, want);
}

static void test_devices(void)
{
    expect_devices("auto", &backend_faulty, 1, 1, 1, "1");
    expect_devices("auto", &backend_faulty, 1, 4, 1, "0;1");
    expect_devices(NULL, &backend_faulty, 0, 1, 8, "0;1");
    expect_devices("all", &backend_faulty, 0, 1, 1, "0;1");
    expect_devices("1,0", &backend_faulty, 0, 4, 1, "1;0");
    expect_devices("auto", &backend_cpu, 0, 4, 1, "0");
    expect_devices("all", &backend_counters, 0, 4, 1, "0");
    expect_devices("0,1,2,7", &backend_counters, 0, 4, 1, "0;1;2;7");
    static const struct {
        const char *text;
        int code;
    } bad[] = {{"0,0", KV_ERROR_USAGE},
               {"x", KV_ERROR_USAGE},
               {"0,", KV_ERROR_USAGE},
               {"-1", KV_ERROR_USAGE},
               {"0,2", KV_ERROR_MACHINE}};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        Devices devices;
        g_autoptr(GError) error = NULL;
        g_assert_false(devices_resolve(&devices, bad[i].text, &backend_faulty, 0, 1, 1, &error));
        g_assert_error(error, KV_ERROR, bad[i].code);
    }
    /* Five devices, shares of two: two groups, the fifth idle. */
    Devices five;
    g_assert_true(devices_resolve(&five, "4,3,2,1,0", &backend_cpu, 0, 4, 2, NULL));
    g_assert_cmpuint(devices_groups(&five, 2), ==, 2);
    const Devices second = devices_group(&five, 2, 1);
    g_autofree char *text = devices_text(&second);
    g_assert_cmpstr(text, ==, "2;1");
    /* Fewer devices than shares: one group of them all. */
    g_assert_cmpuint(devices_groups(&five, 8), ==, 1);
    g_assert_cmpuint(devices_group(&five, 8, 0).n, ==, 5);
}

static void test_same_bytes(void)
{
    static const char *const lists[] = {"0", "0,1", "0,1,2"};
    static const char *const kinds[] = {"cpu", "counters"};
    for (guint b = 0; b < G_N_ELEMENTS(kinds); b++) {
        g_autofree char *want[REPLICAS] = {NULL};
        for (guint d = 0; d < G_N_ELEMENTS(lists); d++) {
            ReplayConfig config;
            set_config(&config, kinds[b], lists[d], 1);
            g_auto(Run) run;
            run_fleet(&run, &config, REPLICAS, NULL);
            g_assert_no_error(run.error);
            for (guint k = 0; k < REPLICAS; k++) {
                g_autofree char *got = timeless(run.csv[k]);
                if (d == 0)
                    want[k] = g_strdup(got);
                g_assert_cmpstr(got, ==, want[k]);
                g_autoptr(GPtrArray) on = executed(run.csv[k], "device");
                g_assert_cmpuint(on->len, ==, b == 0 ? 2 * 19 : 0);
                g_autofree char *device = g_strdup_printf("%u", k % (d + 1));
                for (guint i = 0; i < on->len; i++)
                    g_assert_cmpstr(on->pdata[i], ==, device);
                g_autoptr(JsonNode) owner = NULL;
                JsonObject *o = test_json(run.replica[k].result, &owner);
                g_assert_cmpfloat(test_number(o, "replica"), ==, k);
            }
            replay_config_clear(&config);
        }
        for (guint k = 0; k < REPLICAS; k++)
            g_free(g_steal_pointer(&want[k]));
    }
}

/* Two shares on one device and on two: the same outputs, and the step takes what the slower took.
 */
static void test_ranks(void)
{
    g_autofree char *want = NULL;
    for (guint d = 0; d < 2; d++) {
        ReplayConfig config;
        set_config(&config, "cpu", d == 0 ? "0" : "0,1", 2);
        g_auto(Run) run;
        run_fleet(&run, &config, 1, NULL);
        g_assert_no_error(run.error);
        g_autofree char *got = timeless(run.csv[0]);
        g_assert_cmpstr(got, ==, want != NULL ? want : got);
        g_autoptr(GPtrArray) each = executed(run.csv[0], "rank_kernel_us");
        g_autoptr(GPtrArray) all = executed(run.csv[0], "kernel_us");
        g_autoptr(GPtrArray) skew = executed(run.csv[0], "rank_skew_us");
        g_assert_cmpuint(each->len, ==, 2 * 19);
        for (guint i = 0; i < each->len; i++) {
            g_auto(GStrv) part = g_strsplit(each->pdata[i], ";", -1);
            g_assert_cmpuint(g_strv_length(part), ==, 2);
            const double a = g_ascii_strtod(part[0], NULL), b = g_ascii_strtod(part[1], NULL);
            g_assert_cmpfloat(fabs(MAX(a, b) - g_ascii_strtod(all->pdata[i], NULL)), <, 2e-3);
            g_assert_cmpfloat(fabs(fabs(a - b) - g_ascii_strtod(skew->pdata[i], NULL)), <, 2e-3);
        }
        g_autoptr(JsonNode) owner = NULL;
        JsonObject *o = test_json(run.replica[0].result, &owner);
        g_assert_cmpfloat(test_number(o, "device.ranks_at_once"), ==, d + 1);
        g_assert_cmpfloat(test_number(o, "routes.single.max_abs_err"), <, 2e-3);
        /* One share's heads are counted: half of 2 x sum x 2 KV heads x 64 x 2 bytes. */
        g_autoptr(GPtrArray) bytes = executed(run.csv[0], "kv_bytes");
        g_assert_cmpstr(bytes->pdata[0], ==, "29440");
        g_free(want);
        want = g_steal_pointer(&got);
        replay_config_clear(&config);
    }
    g_assert_cmpuint(backend_rank_seed(7, 0), ==, 7);
    g_assert_cmpuint(backend_rank_seed(7, 1), !=, backend_rank_seed(7, 2));
}

/* Device 1 breaks in its 9th execution: its replica's lines until then stay, the others end, and a
 * resume executes what is missing. */
static void test_failure(void)
{
    ReplayConfig config;
    set_config(&config, "cpu", "auto", 1);
    plugin_choice_clear(&config.backend);
    config.backend.info = &backend_faulty.info;
    fail_at = 9;
    executions[0] = executions[1] = 0;
    g_auto(Run) broken;
    run_fleet(&broken, &config, REPLICAS, NULL);
    g_assert_false(broken.ok);
    g_assert_error(broken.error, KV_ERROR, KV_ERROR_MACHINE);
    g_assert_cmpstr(broken.error->message, ==,
                    "replica 1 on device 1: GPU: single: launch failed (2 of 3 replicas ended)");
    g_assert_nonnull(broken.replica[0].result);
    g_assert_null(broken.replica[1].result);
    g_assert_nonnull(broken.replica[2].result);
    g_autoptr(GPtrArray) kept = executed(broken.csv[1], "step");
    g_assert_cmpuint(kept->len, ==, 8); /* four steps of two routes, whole lines */

    fail_at = -1;
    executions[0] = executions[1] = 0;
    g_auto(Run) again;
    run_fleet(&again, &config, REPLICAS, broken.csv);
    g_assert_no_error(again.error);
    g_assert_cmpint(executions[0], ==, 0);
    g_assert_cmpint(executions[1], ==, 2 * 19 - 8);
    for (guint k = 0; k < REPLICAS; k++) {
        g_autoptr(GPtrArray) lines = executed(again.csv[k], "step");
        g_assert_cmpuint(lines->len, ==, 2 * 19);
    }
    replay_config_clear(&config);
}

/* A share whose device breaks: rank and device are named. */
static void test_rank_failure(void)
{
    ReplayConfig config;
    set_config(&config, "cpu", "0,1", 2);
    plugin_choice_clear(&config.backend);
    config.backend.info = &backend_faulty.info;
    fail_at = 5;
    executions[0] = executions[1] = 0;
    g_auto(Run) run;
    run_fleet(&run, &config, 1, NULL);
    g_assert_error(run.error, KV_ERROR, KV_ERROR_MACHINE);
    g_assert_cmpstr(run.error->message, ==, "rank 1 of 2 on device 1: GPU: single: launch failed");
    g_autoptr(GPtrArray) kept = executed(run.csv[0], "step");
    g_assert_cmpuint(kept->len, ==, 4);
    /* Resumed: what each share took is taken again too. */
    fail_at = -1;
    g_auto(Run) again;
    run_fleet(&again, &config, 1, run.csv);
    g_assert_no_error(again.error);
    g_autoptr(GPtrArray) before = executed(run.csv[0], "rank_kernel_us");
    g_autoptr(GPtrArray) after = executed(again.csv[0], "rank_kernel_us");
    g_assert_cmpuint(after->len, ==, 2 * 19);
    for (guint i = 0; i < before->len; i++)
        g_assert_cmpstr(after->pdata[i], ==, before->pdata[i]);
    replay_config_clear(&config);
}

static void test_no_memory(void)
{
    ReplayConfig config;
    set_config(&config, "cpu", "all", 1);
    plugin_choice_clear(&config.backend);
    config.backend.info = &backend_faulty.info;
    fail_at = 0;
    g_auto(Run) run;
    run_fleet(&run, &config, REPLICAS, NULL);
    fail_at = -1;
    g_assert_error(run.error, KV_ERROR, KV_ERROR_MACHINE);
    g_assert_cmpstr(run.error->message, ==,
                    "replica 1 on device 1: device 1: too little memory: 1000 pages x 1048576 "
                    "bytes of K and V x 2 layers = 1.95 GiB, with 1.00 GiB of work space 2.95 GiB, "
                    "and 2.00 GiB are free: 512 pages would fit (--pool-pages, --layers) "
                    "(2 of 3 replicas ended)");
    replay_config_clear(&config);

    set_config(&config, "cpu", "all", 2);
    plugin_choice_clear(&config.backend);
    config.backend.info = &backend_faulty.info;
    fail_at = 0;
    g_auto(Run) shares;
    run_fleet(&shares, &config, 1, NULL);
    fail_at = -1;
    g_assert_error(shares.error, KV_ERROR, KV_ERROR_MACHINE);
    g_assert_true(g_str_has_prefix(shares.error->message,
                                   "rank 1 of 2 on device 1: device 1: too little memory"));
    replay_config_clear(&config);
}

static void test_room(void)
{
    PoolRoom room = {"GPU", 100, 1 << 20, 1, 0, (gint64)100 << 20};
    g_assert_true(pool_room_check(&room, NULL));
    room.pages = 101;
    g_assert_false(pool_room_check(&room, NULL));
    room.layers = 32;
    g_assert_cmpint(pool_room_pages(&room), ==, 3);
    room.reserve = room.free + 1;
    g_assert_cmpint(pool_room_pages(&room), ==, 0);
    room.pages = 0;
    g_assert_true(pool_room_check(&room, NULL));
}

static gint interrupt_now;

static void test_interrupted(void)
{
    const volatile int *flag = (const volatile int *)&interrupt_now;
    interrupt_now = 1;
    g_autoptr(Progress) progress = progress_new(TRUE, flag);
    ReplayConfig config;
    set_config(&config, "cpu", "0,1", 1);
    ReplicaRun runs[2] = {{0}};
    g_autoptr(GError) error = NULL;
    for (guint k = 0; k < 2; k++)
        runs[k].steps = steps_reader_open(path[k], NULL);
    /* So small a fleet may have ended before the flag is seen; then there is no error. */
    if (!replay_fleet_run(&config, runs, 2, progress, &error))
        g_assert_error(error, KV_ERROR, KV_ERROR_INTERRUPTED);
    for (guint k = 0; k < 2; k++) {
        steps_reader_free(runs[k].steps);
        replay_result_free(runs[k].result);
        g_clear_error(&runs[k].error);
    }
    replay_config_clear(&config);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    folder = g_dir_make_tmp("kvreplay-fleet-XXXXXX", NULL);
    device_of = g_hash_table_new(NULL, NULL);
    for (guint k = 0; k < REPLICAS; k++) {
        SmallRun run = small_run;
        run.replica = k;
        path[k] = g_strdup_printf("%s/small-%u.kvsteps", folder, k);
        small_run_write(&run, path[k]);
    }
    g_test_add_func("/fleet/crew", test_crew);
    g_test_add_func("/fleet/devices", test_devices);
    g_test_add_func("/fleet/same-bytes", test_same_bytes);
    g_test_add_func("/fleet/ranks", test_ranks);
    g_test_add_func("/fleet/failure", test_failure);
    g_test_add_func("/fleet/rank-failure", test_rank_failure);
    g_test_add_func("/fleet/no-memory", test_no_memory);
    g_test_add_func("/fleet/room", test_room);
    g_test_add_func("/fleet/interrupted", test_interrupted);
    const int status = g_test_run();
    for (guint k = 0; k < REPLICAS; k++) {
        g_unlink(path[k]);
        g_free(path[k]);
    }
    g_hash_table_unref(device_of);
    g_rmdir(folder);
    g_free(folder);
    return status;
}
