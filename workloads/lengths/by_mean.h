/* Length models of two independent laws, each given by mean and coefficient of variation. */
#ifndef KV_WORKLOADS_LENGTHS_BY_MEAN_H
#define KV_WORKLOADS_LENGTHS_BY_MEAN_H

#include "workloads/lengths.h"

typedef struct ByMeanConfig {
    double prompt, prompt_cv, output, output_cv;
    gint64 max;
} ByMeanConfig;

extern const SpecOption by_mean_options[];

LengthModel *by_mean_new(const LengthOps *ops, const ByMeanConfig *config, guint64 seed,
                         guint32 replication);
typedef double (*ByMeanLaw)(RngStream *rng, double mean, double cv);
void by_mean_draw(LengthModel *self, ByMeanLaw law, gint32 *ret_prompt, gint32 *ret_output);

#endif
