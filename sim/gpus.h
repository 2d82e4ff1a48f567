/* GPUs by name: peak rates as published, and the share of them that long kernels reach.
 *
 * Rates are dense 16-bit tensor-core rates with 32-bit accumulation (what attention and linear
 * layers use), in TFLOP/s = 10^12, and memory rates in GB/s = 10^9; memory in GiB. `source` names
 * the document of the peaks; `reach` says where the shares are from: measured, or assumed.
 * Read-only data.
 */
#ifndef KV_SIM_GPUS_H
#define KV_SIM_GPUS_H

#include <glib.h>

typedef struct GpuInfo {
    const char *name;
    double tflops, gbps, memory_gib;
    guint sms;
    double link_gbps; /* to its neighbours, each direction: NVLink, or PCIe where there is none */
    double flop_share, memory_share; /* achievable / peak */
    const char *source, *reach;
} GpuInfo;

extern const GpuInfo gpu_infos[]; /* ends with name NULL */
/* NULL + USAGE error that lists the known names. */
const GpuInfo *gpu_info_find(const char *name, GError **error);

#endif
