/* The formats' ops, one per file of this folder; for the registry in format.c only. */
#ifndef KV_WORKLOADS_FORMATS_FORMATS_H
#define KV_WORKLOADS_FORMATS_FORMATS_H

#include "workloads/format.h"

extern const FormatOps format_kvreplay;
extern const FormatOps format_azure;
extern const FormatOps format_vidur;

#endif
