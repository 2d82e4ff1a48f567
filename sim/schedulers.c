#include "sim/scheduler.h"

const PluginInfo *const schedulers[] = {
    &scheduler_vllm_v1.info,
    &scheduler_vllm_v0.info,
    &scheduler_sarathi.info,
    &scheduler_orca.info,
    &scheduler_static.info,
    &scheduler_paper.info,
    NULL,
};
