/* A crew: N host threads that do the same job at once and are waited for.
 *
 * Each member keeps its thread for the crew's life, so that what a thread holds (a current CUDA
 * device) stays with it. crew_run() hands every member the job and returns when all have ended:
 * some ten microseconds, so a job is a whole launch-and-wait, not a part of one. Members number
 * from 0. Jobs must not call crew_run() of their own crew.
 */
#ifndef KV_REPLAY_CREW_H
#define KV_REPLAY_CREW_H

#include <glib.h>

typedef struct Crew Crew;
typedef void (*CrewJob)(gpointer data, guint member);

Crew *crew_new(guint members, const char *name);
void crew_free(Crew *self); /* NULL is fine; no job may be running */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Crew, crew_free)
guint crew_members(const Crew *self);
void crew_run(Crew *self, CrewJob job, gpointer data);

#endif
