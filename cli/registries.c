#include "cli/registries.h"

#include "cli/clock_measured.h"
#include "plots/plots.h"
#include "replay/backend.h"
#include "replay/policy.h"
#include "replay/route.h"
#include "sim/clock.h"
#include "sim/fleet.h"
#include "sim/sim.h"
#include "workloads/arrivals.h"
#include "workloads/format.h"
#include "workloads/generator.h"
#include "workloads/lengths.h"
#include "workloads/sessions.h"
#include "workloads/transform.h"

const Registry registries[] = {
    {"formats", formats, "recorded logs that can be read (--format; auto looks at the content)"},
    {"generators", generators, "whole workloads by name (--workload NAME:key=value)"},
    {"arrivals", arrivals, "arrival processes (--arrivals)"},
    {"lengths", lengths, "length distributions (--lengths)"},
    {"sessions", session_models, "sessions with turns and waits (--sessions)"},
    {"transforms", transforms, "changes to a workload, in order (--transform)"},
    {"schedulers", schedulers, "batching rules (--scheduler)"},
    {"clocks", all_clocks, "how long a step takes (--clock)"},
    {"routers", routers, "which replica gets a request (--router)"},
    {"backends", backends, "where attention is executed (--backend)"},
    {"routes", routes, "ways of executing a step's decode attention (--routes)"},
    {"splits", split_rules, "how rows are cut into tasks (--splits)"},
    {"policies", policies, "which route a step takes (--policy)"},
    {"plots", plots, "pictures (plot --only)"},
    {NULL, NULL, NULL},
};
