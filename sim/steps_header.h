/* The steps file's JSON header as text; private to the writer and the reader. */
#ifndef KV_SIM_STEPS_HEADER_H
#define KV_SIM_STEPS_HEADER_H

#include "sim/steps_file.h"

void steps_header_copy(StepsHeader *to, const StepsHeader *from);
char *steps_header_to_json(const StepsHeader *header); /* free it */
/* INPUT error "NAME: ..." when it is not one; *ret is then untouched. */
gboolean steps_header_from_json(StepsHeader *ret, const char *text, gsize size, const char *name,
                                GError **error);

#endif
