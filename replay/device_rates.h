/* What a device can do before any attention: bandwidths and launch costs, measured now.
 *
 * Rates in bytes a microsecond (thousandths of GB/s = 10^9 bytes a second), times in microseconds;
 * negative = not measured here. A second or two, and up to 4 GiB of device memory (less where
 * less is free), given back. A GPU's figures come from events on a stream of their own; a CPU's
 * from all of the engine's threads.
 */
#ifndef KV_REPLAY_DEVICE_RATES_H
#define KV_REPLAY_DEVICE_RATES_H

#include <json-glib/json-glib.h>

typedef struct DeviceRates {
    double read;            /* streaming read of 2 GiB, less 5 us; a CPU: of 192 MiB */
    double read_fixed_us;   /* what a read of nothing would take, by that and one of a quarter */
    double copy;            /* device to device, bytes copied: each is read once and written once */
    double event_us;        /* events around one empty kernel; CPU: a task list of one tiny task */
    double launch_us;       /* device time a launch, many queued back to back */
    double launch_host_us;  /* host time to queue one */
    double graph_kernel_us; /* device time a kernel, many in one graph */
    double graph_host_us;   /* host time to launch a graph of one kernel */
    double upload_us;       /* host time of a 4 KiB copy to the device, waited for */
} DeviceRates;

void device_rates_init(DeviceRates *self); /* nothing measured */
/* Members of the object under construction: "read_gbps" ... */
void device_rates_to_json(const DeviceRates *self, JsonBuilder *builder);

#endif
