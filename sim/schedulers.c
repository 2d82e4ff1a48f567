#include "sim/scheduler.h"

const PluginInfo *const schedulers[] = {
    &scheduler_vllm_v1.info,
    &scheduler_paper.info,
    NULL,
};
