#include "sim/scheduler.h"

const PluginInfo *const schedulers[] = {
    &scheduler_vllm_v1.info,
    NULL,
};
