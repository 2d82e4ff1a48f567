#include "cli/scenario_keys.h"

#define W SCENARIO_WORKLOAD
#define M SCENARIO_MODEL
#define E SCENARIO_ENGINE
#define R SCENARIO_REPLAY
#define O SCENARIO_OUTPUT

const ScenarioKey scenario_keys[] = {
    {W, "workload", KEY_TEXT, "", "FILE", "recorded log, '-' for standard input, or a generator such as paper:trace=bimodal", NULL, NULL},
    {W, "format", KEY_TEXT, "auto", "NAME", "log format (kvreplay list formats); auto looks at the content", NULL, NULL},
    {W, "map", KEY_TEXT, "", "MAP", "columns for the csv and jsonl formats: prompt=NAME,output=NAME,arrival=NAME:UNIT", NULL, NULL},
    {W, "arrivals", KEY_TEXT, "", "SPEC", "arrival process (kvreplay list arrivals), for instance poisson:rate=5.5", NULL, NULL},
    {W, "lengths", KEY_TEXT, "", "SPEC", "length distribution (kvreplay list lengths), for instance empirical:file=log.csv", NULL, NULL},
    {W, "sessions", KEY_TEXT, "", "SPEC", "sessions with turns and tool waits (kvreplay list sessions)", NULL, NULL},
    {W, "requests", KEY_COUNT, "0", "N", "requests to make, or to take from the log; 0 = all of a log", NULL, NULL},
    {W, "seed", KEY_COUNT, "1", "N", "seed of everything random", NULL, NULL},
    {W, "replication", KEY_COUNT, "0", "N", "independent repetition under the same seed", NULL, NULL},
    {W, "zero-output", KEY_TEXT, "drop", "drop|keep", "records without output tokens: drop and count, or keep as one token", NULL, NULL},
    {W, "strict", KEY_FLAG, "no", NULL, "refuse what would be repaired and counted, such as unsorted rows", NULL, NULL},
    {W, "transform", KEY_TEXT, "", "LIST", "in order: scale=2;slice=300s..320s;thin=0.5;repeat=3 ...", NULL, NULL},

    {M, "model", KEY_TEXT, "llama-3.1-8b", "NAME", "model shape (kvreplay list models), or a config.json", NULL, NULL},
    {M, "model-layers", KEY_COUNT, "0", "N", "override: layers; 0 = the model's", NULL, NULL},
    {M, "q-heads", KEY_COUNT, "0", "N", "override: query heads", NULL, NULL},
    {M, "kv-heads", KEY_COUNT, "0", "N", "override: key/value heads", NULL, NULL},
    {M, "head-dim", KEY_COUNT, "0", "N", "override: head dimension", NULL, NULL},
    {M, "dtype", KEY_TEXT, "fp16", "fp16|bf16", "type of K, V, queries and outputs", NULL, NULL},
    {M, "kv-layout", KEY_TEXT, "hnd", "hnd|nhd", "layout of a page: [head][token][d] or [token][head][d]", NULL, NULL},

    {E, "scheduler", KEY_PLUGIN, "vllm-v1:budget=2048,seqs=256", "SPEC", "batching rule (kvreplay list schedulers)", "scheduler", schedulers},
    {E, "page-size", KEY_COUNT, "16", "N", "entries a page: a power of two, 1..128", NULL, NULL},
    {E, "pool-pages", KEY_COUNT, "2560", "N", "usable pages of the KV pool (2560 x 16 = 5 GiB for llama-3.1-8b)", NULL, NULL},
    {E, "context-limit", KEY_COUNT, "0", "N", "largest number of stored entries P+D-1; 0 = none", NULL, NULL},
    {E, "max-model-len", KEY_COUNT, "0", "N", "largest P+D (vLLM's rule); 0 = none", NULL, NULL},
    {E, "clip", KEY_FLAG, "no", NULL, "cut outputs to the limits, counted, instead of refusing", NULL, NULL},
    {E, "prefix-cache", KEY_TEXT, "auto", "auto|on|off", "reuse of cached pages; auto = on when the log has block keys", NULL, NULL},
    {E, "pool-layout", KEY_TEXT, "fresh", "SPEC", "page ids at the start: fresh, churned, holes:fraction=0.5", NULL, NULL},
    {E, "clock", KEY_PLUGIN, "linear:base=16ms,prefill_token=640us,decode_row=60us,kv_token=436ns", "SPEC", "length of a step (kvreplay list clocks); the default is a guess of an RTX 3060", "clock", step_clocks},
    {E, "warmup", KEY_TIME, "0s", "TIME", "requests that arrive before this are served but not in the metrics", NULL, NULL},
    {E, "fast-forward", KEY_FLAG, "yes", NULL, "advance quiet stretches at once (same result either way)", NULL, NULL},

    {R, "backend", KEY_TEXT, "auto", "NAME", "auto, cuda, cpu or counters", NULL, NULL},
    {R, "policy", KEY_PLUGIN, "cost", "SPEC", "which route a step takes (kvreplay list policies)", "policy", policies},
    {R, "splits", KEY_PLUGIN, "balanced", "SPEC", "balanced, or fixed:s=20", "split rule", split_rules},
    {R, "routes", KEY_TEXT, "single,buckets,masked,workqueue,workqueue-fused,persistent", "LIST", "routes to compare (kvreplay list routes)", NULL, NULL},
    {R, "execute", KEY_TEXT, "auto", "SPEC", "steps to execute: all, N (spread evenly), A:B, every=K; auto = 500 on a CPU, all on a GPU", NULL, NULL},
    {R, "from", KEY_COUNT, "0", "STEP", "first step looked at", NULL, NULL},
    {R, "to", KEY_COUNT, "0", "STEP", "step to stop before; 0 = the end", NULL, NULL},
    {R, "chosen-only", KEY_FLAG, "no", NULL, "execute only the route the policy chose", NULL, NULL},
    {R, "repeats", KEY_COUNT, "0", "N", "timed repeats of a step; 0 = 1 on a CPU, 5 on a GPU", NULL, NULL},
    {R, "check-every", KEY_COUNT, "0", "K", "compare every K-th executed step with the fp64 reference; 0 = 10", NULL, NULL},
    {R, "workers", KEY_COUNT, "0", "N", "CTAs at once that plans are made for; 0 = the GPU's, or the profile's on a CPU", NULL, NULL},
    {R, "threads", KEY_COUNT, "0", "N", "CPU engine threads; 0 = all cores", NULL, NULL},
    {R, "layers", KEY_COUNT, "1", "L", "launches that share one plan", NULL, NULL},
    {R, "graphs", KEY_FLAG, "no", NULL, "replay captured CUDA graphs", NULL, NULL},
    {R, "device", KEY_COUNT, "0", "N", "CUDA device", NULL, NULL},
    {R, "sms", KEY_COUNT, "0", "N", "limit the grid to N SMs; 0 = all", NULL, NULL},
    {R, "tp", KEY_COUNT, "1", "N", "tensor-parallel degree: heads divided", NULL, NULL},
    {R, "verify-launches", KEY_FLAG, "no", NULL, "count kernel nodes of a captured graph against the plan", NULL, NULL},
    {R, "profile", KEY_TEXT, "", "FILE", "device profile made by calibrate, for the policy", NULL, NULL},

    {O, "plots", KEY_FLAG, "yes", NULL, "draw the pictures", NULL, NULL},
    {O, "report", KEY_FLAG, "yes", NULL, "write report.html", NULL, NULL},
    {0, NULL, KEY_TEXT, NULL, NULL, NULL, NULL, NULL},
};

const ScenarioAlias scenario_aliases[] = {
    {"max-num-seqs", "scheduler", "seqs", 0, "vLLM's name for scheduler key seqs"},
    {"max-num-batched-tokens", "scheduler", "budget", 0, "vLLM's name for scheduler key budget"},
    {"block-size", "page-size", NULL, 0, "vLLM's name for --page-size"},
    {"num-gpu-blocks-override", "pool-pages", NULL, -1, "vLLM's count of blocks, its null block included"},
    {NULL, NULL, NULL, 0, NULL},
};
