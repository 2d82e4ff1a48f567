/* roofline and profile: step lengths from the model's shape and the GPU's rates.
 *
 *   host + linear layers + attention of the decode rows + attention of the prompt chunks + exchange
 *   linear     max(2 x parameters x tokens / rate, weight bytes / memory rate), all / tp
 *   decode     attended entries x entry bytes / memory rate
 *   prompts    4 x attended x query heads x head size x layers / rate
 *   exchange   tp > 1: two all-reduces a layer of tokens x hidden x 2 bytes over the link
 * Rates are achievable ones (peak x share). `roofline` takes them from the table of GPUs; `profile`
 * takes the memory rate from a measured device profile. All figures of these clocks are a model's.
 */
#include "sim/clocks.h"
#include "sim/gpus.h"
#include "sim/model_info.h"
#include "base/error.h"
#include "base/json_read.h"

#include <json-glib/json-glib.h>
#include <math.h>

#define EXCHANGE_LATENCY 10e-6 /* s, of one all-reduce: NCCL's order of magnitude */

typedef struct Config {
    char *file, *gpu, *model, *config;
    int weights, kv;
    gint64 tp;
    kv_ns host;
    double flop_share, memory_share;
} Config;

#define AT(field) G_STRUCT_OFFSET(Config, field)
#define SHARED_OPTIONS                                                                             \
    {"gpu", SPEC_STRING, AT(gpu), "rtx3060", 0, 0, NULL, "a GPU of the built-in table"},           \
        {"model", SPEC_STRING, AT(model), "llama-3.1-8b", 0, 0, NULL, "a model of the table"},     \
        {"config", SPEC_STRING, AT(config), "",                                                    \
         0,        0,           NULL,       "a Hugging Face config.json, instead of `model`"},     \
        {"weights", SPEC_CHOICE, AT(weights), "fp16", 0, 0, NUMBER_CHOICES, "number type"},        \
        {"kv", SPEC_CHOICE, AT(kv), "fp16", 0, 0, NUMBER_CHOICES, "number type of the cache"},     \
        {"tp", SPEC_INT, AT(tp), "1", 1, 1024, NULL, "GPUs that share the model"},                 \
        {"host", SPEC_TIME, AT(host), "2ms", 0, 10, NULL, "of each step, outside of the GPU"},     \
        {"flop_share",                                                                             \
         SPEC_REAL,                                                                                \
         AT(flop_share),                                                                           \
         "0",                                                                                      \
         0,                                                                                        \
         1,                                                                                        \
         NULL,                                                                                     \
         "achievable / peak rate; 0 = the table's"},                                               \
        {"memory_share",                                                                           \
         SPEC_REAL,                                                                                \
         AT(memory_share),                                                                         \
         "0",                                                                                      \
         0,                                                                                        \
         1,                                                                                        \
         NULL,                                                                                     \
         "achievable / peak memory rate; 0 = the table's"},                                        \
    {                                                                                              \
        NULL                                                                                       \
    }

static const SpecOption roofline_options[] = {SHARED_OPTIONS};
static const SpecOption profile_options[] = {
    {"file", SPEC_STRING, AT(file), NULL, 0, 0, NULL, "device profile, from `kvreplay calibrate`"},
    SHARED_OPTIONS,
};

typedef struct RooflineClock {
    StepClock base;
    double host;                     /* all in seconds */
    double weights;                  /* reading them */
    double token;                    /* linear layers of one token */
    double entry;                    /* reading one entry */
    double attended;                 /* prompt attention, each attended entry */
    double exchange, exchange_token; /* tensor parallelism */
} RooflineClock;

static gboolean read_bandwidth(const char *path, double *ret_gbps, GError **error)
{
    g_autoptr(JsonNode) root = json_read_file(path, "a device profile", error);
    if (root == NULL)
        return FALSE;
    *ret_gbps = json_member_real(json_member_object(json_node_get_object(root), "cost"),
                                 "bandwidth_gbps", 0);
    if (*ret_gbps > 0 && *ret_gbps < 1e6)
        return TRUE;
    g_set_error(error, KV_ERROR, KV_ERROR_INPUT,
                "%s: expected a device profile with cost.bandwidth_gbps > 0", path);
    return FALSE;
}

static void set_rates(RooflineClock *self, const Config *c, const GpuInfo *gpu, const ModelInfo *m,
                      double rate, double memory)
{
    double tp = (double)c->tp, shares = MIN(tp, (double)m->kv_heads);
    self->host = kv_ns_to_seconds(c->host);
    self->weights =
        model_info_step_parameters(m) * number_bytes((NumberType)c->weights) / (memory * tp);
    self->token = 2 * model_info_step_parameters(m) / (rate * tp);
    self->entry = model_info_entry_bytes(m, number_bytes((NumberType)c->kv)) / (memory * shares);
    self->attended = 4.0 * m->q_heads * m->head_dim * m->layers / (rate * tp);
    if (c->tp > 1) {
        double bytes = 2 * (tp - 1) / tp * m->hidden * 2; /* ring: sent by each, one token */
        self->exchange = 2 * m->layers * EXCHANGE_LATENCY;
        self->exchange_token = 2 * m->layers * bytes / (gpu->link_gbps * 1e9);
    }
}

static StepClock *create(gconstpointer config, GError **error)
{
    const Config *c = config;
    const GpuInfo *gpu = gpu_info_find(c->gpu, error);
    ModelInfo m;
    if (gpu == NULL ||
        !(c->config ? model_info_read(c->config, &m, error) : model_info_find(c->model, &m, error)))
        return NULL;
    double gbps = gpu->gbps * (c->memory_share > 0 ? c->memory_share : gpu->memory_share);
    if (c->file && !read_bandwidth(c->file, &gbps, error))
        return NULL;
    double share = c->flop_share > 0 ? c->flop_share : gpu->flop_share;
    RooflineClock *self = g_new0(RooflineClock, 1);
    set_rates(self, c, gpu, &m, gpu->tflops * 1e12 * share, gbps * 1e9);
    return &self->base;
}

static kv_ns length(StepClock *clock, const StepLoad *load, GError **error)
{
    const RooflineClock *self = (const RooflineClock *)clock;
    double tokens = (double)load->rows + (double)load->prefill_tokens;
    double linear = MAX(self->weights, self->token * tokens);
    double attention =
        self->entry * (double)load->sum_length + self->attended * (double)load->prefill_attended;
    double exchange = self->exchange + self->exchange_token * tokens;
    double t = (self->host + linear + attention + exchange) * 1e9;
    return MAX(1, (kv_ns)floor(t + 0.5));
}

const StepClockOps clock_roofline = {
    .info = {"roofline", "from the GPU's published rates and the model's shape (a model)",
             roofline_options, sizeof(Config)},
    .create = create,
    .length = length,
};

const StepClockOps clock_profile = {
    .info = {"profile", "roofline with the memory rate of a measured device profile",
             profile_options, sizeof(Config)},
    .create = create,
    .length = length,
};
