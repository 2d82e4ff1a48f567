/* Closed loop: `users` at most in the system. User u begins at u*stagger; after each finished
 * request it thinks (exponential of mean `think`, or exactly `think`) and sends the next. */
#include "workloads/users.h"

typedef struct UsersConfig {
    gint64 users;
    kv_ns think, stagger;
    int law;
} UsersConfig;

typedef struct Users {
    ArrivalProcess base;
    UsersConfig config;
    gint64 begun;
} Users;

static ArrivalProcess *users_open(gconstpointer config, guint64 seed, guint32 replication,
                                  GError **error)
{
    Users *self = g_new0(Users, 1);
    arrival_process_init(&self->base, &arrivals_closed, seed, replication);
    self->config = *(const UsersConfig *)config;
    return &self->base;
}

static int users_next(ArrivalProcess *base, kv_ns *ret, GError **error)
{
    Users *self = (Users *)base;
    if (self->begun >= self->config.users)
        return 0;
    *ret = self->begun++ * self->config.stagger;
    return 1;
}

kv_ns users_think(ArrivalProcess *base)
{
    Users *self = (Users *)base;
    if (self->config.law == 1 || self->config.think == 0)
        return self->config.think;
    double seconds = kv_ns_to_seconds(self->config.think) * rng_exponential(&base->rng);
    return kv_ns_from_seconds(seconds);
}

static const SpecOption users_options[] = {
    {"users", SPEC_INT, G_STRUCT_OFFSET(UsersConfig, users), "16", 1, 1e6, NULL, "users"},
    {"think", SPEC_TIME, G_STRUCT_OFFSET(UsersConfig, think), "0s", 0, 1e6, NULL,
     "mean time from a request's end to the user's next one"},
    {"law", SPEC_CHOICE, G_STRUCT_OFFSET(UsersConfig, law), "exponential", 0, 0,
     "exponential|fixed", "law of the think time"},
    {"stagger", SPEC_TIME, G_STRUCT_OFFSET(UsersConfig, stagger), "0s", 0, 1e6, NULL,
     "time between the users' beginnings"},
    {NULL},
};

const ArrivalOps arrivals_closed = {
    .info = {"closed", "N users, one request at a time each, with think time", users_options,
             sizeof(UsersConfig)},
    .open = users_open,
    .next = users_next,
    .closed = TRUE,
};
