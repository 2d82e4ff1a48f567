/* report.css and report.js as texts, embedded by the build (embed.c). */
#ifndef KV_PLOTS_PAGE_PARTS_H
#define KV_PLOTS_PAGE_PARTS_H

extern const char page_css[];
extern const char page_js[];

#endif
