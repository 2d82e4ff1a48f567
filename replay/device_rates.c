#include "replay/device_rates.h"

void device_rates_init(DeviceRates *self)
{
    *self = (DeviceRates){-1, -1, -1, -1, -1, -1, -1, -1, -1};
}

void device_rates_to_json(const DeviceRates *self, JsonBuilder *b)
{
    const struct {
        const char *name;
        double value;
    } members[] = {
        {"read_gbps", self->read < 0 ? -1 : 1e-3 * self->read},
        {"read_fixed_us", self->read_fixed_us},
        {"copy_gbps", self->copy < 0 ? -1 : 1e-3 * self->copy},
        {"event_us", self->event_us},
        {"launch_us", self->launch_us},
        {"launch_host_us", self->launch_host_us},
        {"graph_kernel_us", self->graph_kernel_us},
        {"graph_host_us", self->graph_host_us},
        {"upload_us", self->upload_us},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(members); i++) {
        json_builder_set_member_name(b, members[i].name);
        if (members[i].value < 0)
            json_builder_add_null_value(b);
        else
            json_builder_add_double_value(b, members[i].value);
    }
}
