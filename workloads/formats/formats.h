/* The formats' ops, one per file of this folder; for the registry in format.c only. */
#ifndef KV_WORKLOADS_FORMATS_FORMATS_H
#define KV_WORKLOADS_FORMATS_FORMATS_H

#include "workloads/format.h"

extern const FormatOps format_kvreplay;
extern const FormatOps format_azure;
extern const FormatOps format_vidur;
extern const FormatOps format_burstgpt;
extern const FormatOps format_mooncake;
extern const FormatOps format_bailian;
extern const FormatOps format_ragpulse;
extern const FormatOps format_splitwise;
extern const FormatOps format_llmservingsim;
extern const FormatOps format_llmservingsim_out;
extern const FormatOps format_servegen;
extern const FormatOps format_otel;
extern const FormatOps format_aiperf_export;
extern const FormatOps format_vllm_bench;
extern const FormatOps format_vllm_log;
extern const FormatOps format_weka;
extern const FormatOps format_tracelab;
extern const FormatOps format_tracelab_replay;
extern const FormatOps format_aibrix;
extern const FormatOps format_tair;
extern const FormatOps format_blis;
extern const FormatOps format_csv;
extern const FormatOps format_jsonl;

#endif
