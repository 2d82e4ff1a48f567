/* Chat: a user who reads, thinks (exponential) and asks on. */
#include "workloads/sessions/talk.h"

static SessionModel *chat_open(gconstpointer config, guint64 seed, guint32 replication,
                               GError **error)
{
    return talk_model_new(&sessions_chat, config, seed, replication);
}

static const SpecOption chat_options[] = {
    {"turns", SPEC_REAL, G_STRUCT_OFFSET(TalkConfig, turns), "4", 1, 1e5, NULL,
     "mean turns of a session"},
    {"turns_law", SPEC_CHOICE, G_STRUCT_OFFSET(TalkConfig, turns_law), "geometric", 0, 0,
     "geometric|fixed", "law of their number"},
    {"wait", SPEC_TIME, G_STRUCT_OFFSET(TalkConfig, wait), "20s", 0, 1e6, NULL,
     "mean time from a turn's end to the next one"},
    {"wait_law", SPEC_CHOICE, G_STRUCT_OFFSET(TalkConfig, wait_law), "exponential", 0, 0,
     "exponential|lognormal|fixed", "law of that time"},
    {"wait_cv", SPEC_REAL, G_STRUCT_OFFSET(TalkConfig, wait_cv), "1.5", 0, 100, NULL,
     "its CV under lognormal"},
    {"system", SPEC_INT, G_STRUCT_OFFSET(TalkConfig, system), "512", 0, 1e8, NULL,
     "tokens of the shared system prompt"},
    {"groups", SPEC_INT, G_STRUCT_OFFSET(TalkConfig, groups), "1", 1, 1e9, NULL,
     "different system prompts, each as likely"},
    {"limit", SPEC_INT, G_STRUCT_OFFSET(TalkConfig, limit), "0", 0, 1e9, NULL,
     "context that is cut before it exceeds this; 0 = never"},
    {"keep", SPEC_REAL, G_STRUCT_OFFSET(TalkConfig, keep), "0.25", 0, 1, NULL,
     "part of it that a cut keeps, beside the system prompt"},
    {"block", SPEC_INT, G_STRUCT_OFFSET(TalkConfig, block), "16", 1, 65536, NULL,
     "tokens per block key"},
    {NULL},
};

const SessionOps sessions_chat = {
    .info = {"chat", "a user's chat: growing context, think time between turns", chat_options,
             sizeof(TalkConfig)},
    .open = chat_open,
    .begin = talk_model_begin,
    .turn = talk_model_turn,
    .free = talk_model_free,
};
