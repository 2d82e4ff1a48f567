/* The length models' ops, one per file of this folder; for the registry in lengths.c only. */
#ifndef KV_WORKLOADS_LENGTHS_LENGTHS_H
#define KV_WORKLOADS_LENGTHS_LENGTHS_H

#include "workloads/lengths.h"

extern const LengthOps lengths_fixed;
extern const LengthOps lengths_uniform;
extern const LengthOps lengths_lognormal;
extern const LengthOps lengths_normal;
extern const LengthOps lengths_gamma;
extern const LengthOps lengths_zipf;
extern const LengthOps lengths_bimodal;
extern const LengthOps lengths_paper;
extern const LengthOps lengths_empirical;

#endif
