/* A picture under construction: its data file and its gnuplot script.
 *
 * NAME.dat holds blocks of columns; each is introduced by comment lines that say what it is:
 *
 *     # block 0 panel 1: workqueue
 *     # columns: time_s launches launches_min launches_max
 *     1.25 2 2 2
 *
 * and gnuplot reaches block i as `index i`. Values that are not there are "NaN". NAME.gp draws
 * every format named in FORMATS ("png svg pdf" unless set before; "dumb" = text on standard output)
 * and says nothing of this program's folders: `gnuplot NAME.gp` in its folder redraws the picture.
 * While the SVG is drawn it also writes NAME.axes: where each panel's axes lie (for hovering in
 * report.html).
 *
 * Text that comes from logs goes through picture_text(), which gives a gnuplot literal in single
 * quotes: nothing in it is executed or typeset. Sizes are of paper: one column is 3.5 inch wide.
 */
#ifndef KV_PLOTS_PICTURE_H
#define KV_PLOTS_PICTURE_H

#include <glib.h>

#define PICTURE_COLUMN 3.5 /* inch */
#define PICTURE_PAGE 7.1

typedef struct Picture {
    char *name;
    GString *script;
    GString *data;
    GPtrArray *literals; /* picture_text()'s results, owned */
    guint blocks;
    guint panels;
    double key_room; /* of the first panel's height */
} Picture;

/* `summary` is one line and goes into both files. Sizes in inch. */
Picture *picture_new(const char *name, const char *summary, double width, double height);
void picture_free(Picture *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Picture, picture_free)

/* Says something about the data in NAME.dat ("each point is a bin of ..."). */
void picture_note(Picture *self, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* Begins a block that belongs to `panel` (from 1); returns its index. `label` may come from a log.
 */
guint picture_block(Picture *self, guint panel, const char *label, const char *columns);
/* The same for a map: the first two columns say where, the third is the value there. */
guint picture_map_block(Picture *self, guint panel, const char *label, const char *columns);
/* The first value, often a time, is written with 12 digits, the others with 7. */
void picture_row(Picture *self, guint n, const double *values);
void picture_gap(Picture *self); /* an empty line: a line drawn through the block is broken here */

/* Appends script text, locale independent only for %s %d %u; use picture_number() for reals. */
void picture_add(Picture *self, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* Owned by the picture. */
const char *picture_text(Picture *self, const char *text); /* a gnuplot literal, quotes included */
const char *picture_number(Picture *self, double value);
/* "2^power UNIT" for tic labels: (9, "") = "512", (3, "Ki") = "8Ki". Owned by the picture. */
const char *picture_scaled(Picture *self, guint power, const char *unit);
typedef enum { PICTURE_LINEAR = 0, PICTURE_LOG_X = 1, PICTURE_LOG_Y = 2 } PictureAxes;
/* Call after each panel's plot command: notes where its axes are. */
void picture_panel_done(Picture *self, PictureAxes axes);
/* Ends the script; data and script are then complete. */
void picture_end(Picture *self);

/* Writes NAME.dat and NAME.gp into `folder`. */
gboolean picture_write(const Picture *self, const char *folder, GError **error);

/* Okabe and Ito's palette (Color Universal Design, 2008), safe for the usual colour blindness.
 * A built-in route has the same colour in every picture; others follow from their index. */
const char *picture_colour(guint i);
const char *picture_route_colour(const char *route, guint i);

void append_real(GString *to, double value); /* shortest of 7 digits; "NaN" */

#endif
