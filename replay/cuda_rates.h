/* Backend cuda's part of replay/device_rates.h. */
#ifndef KV_REPLAY_CUDA_RATES_H
#define KV_REPLAY_CUDA_RATES_H

#include "replay/backend.h"

gboolean cuda_rates(const BackendConfig *config, DeviceRates *ret, GError **error);

#endif
