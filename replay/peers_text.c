#include "replay/peers_text.h"

#include "kernels/peers/peers.h"

const char *peers_fix(void)
{
    for (gsize i = 0; peers[i] != NULL; i++)
        if (!peers[i]->built)
            return peers[i]->why_not;
    return NULL;
}

gboolean peers_text(GString *out)
{
    for (gsize i = 0; peers[i] != NULL; i++) {
        const PeerOps *p = peers[i];
        g_string_append_printf(out, "%-20s %s", p->name, p->package);
        if (p->built)
            g_string_append_printf(out, ": %s; %s\n", p->kernel, p->built_for);
        else
            g_string_append(out, ": not built\n");
    }
    return peers_fix() == NULL;
}
