#include "plots/picture.h"

#include <math.h>
#include <string.h>

#include "base/outfile.h"

static void append_digits(GString *to, const char *format, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    if (!isfinite(value)) {
        g_string_append(to, "NaN");
        return;
    }
    g_string_append(to, g_ascii_formatd(text, sizeof text, format, value == 0 ? 0.0 : value));
}

void append_real(GString *to, double value)
{
    append_digits(to, "%.7g", value);
}

/* Pixels for the terminals: 300 a inch for PNG, 96 for SVG. Text is 7.5 points on paper. */
static void write_head(Picture *self, const char *summary, double width, double height)
{
    guint png_w = (guint)lround(width * 300), png_h = (guint)lround(height * 300);
    guint svg_w = (guint)lround(width * 96), svg_h = (guint)lround(height * 96);
    const char *n = self->name;
    picture_add(self, "# %s: %s\n", n, summary);
    picture_add(self, "# Redraw:  gnuplot %s.gp        (data: %s.dat)\n", n, n);
    picture_add(self, "# As text: gnuplot -e \"FORMATS='dumb'\" %s.gp\n\n", n);
    picture_add(self,
                "if (!exists(\"FORMATS\")) FORMATS = 'png svg pdf'\n"
                "if (!exists(\"SUFFIX\")) SUFFIX = ''\n"
                "DATA = '%s.dat'\n"
                "axes(panel, logs) = sprintf('%%d %%s %%g %%g %%g %%g %%g %%g %%g %%g %%g %%g', "
                "panel, logs, \\\n"
                "    GPVAL_TERM_XMIN, GPVAL_TERM_XMAX, GPVAL_TERM_YMIN, GPVAL_TERM_YMAX, \\\n"
                "    1.0 * GPVAL_TERM_XSIZE / GPVAL_TERM_SCALE, "
                "1.0 * GPVAL_TERM_YSIZE / GPVAL_TERM_SCALE, \\\n"
                "    GPVAL_X_MIN, GPVAL_X_MAX, GPVAL_Y_MIN, GPVAL_Y_MAX)\n\n",
                n);
    picture_add(self,
                "do for [F in FORMATS] {\n"
                "if (F eq 'pdf' && strstrt(GPVAL_TERMINALS, 'pdfcairo') == 0) { continue }\n"
                "if (F eq 'png' && strstrt(GPVAL_TERMINALS, 'pngcairo') == 0) { continue }\n"
                "if (F eq 'png') { set terminal pngcairo size %u,%u font 'sans,7.5' "
                "fontscale 2.9 linewidth 3 dashlength 1.2 background '#ffffff' }\n"
                "if (F eq 'svg') { set terminal svg size %u,%u font 'sans-serif,9.5' "
                "linewidth 1 dashlength 0.8 dynamic }\n",
                png_w, png_h, svg_w, svg_h);
    picture_add(self,
                "if (F eq 'pdf') { set terminal pdfcairo size %sin,%sin font 'sans,7.5' "
                "fontscale 0.7 linewidth 1 dashlength 0.8 }\n",
                picture_number(self, width), picture_number(self, height));
    picture_add(self,
                "if (F eq 'dumb') { set terminal dumb size 79,%u noenhanced }\n"
                "if (F eq 'sixel') { set terminal sixelgd size 800,600 truecolor font 'sans,11' }\n"
                "if (F ne 'dumb' && F ne 'sixel') { set output '%s.'.F.SUFFIX }\n"
                "if (F eq 'svg') { set print '%s.axes'.SUFFIX }\n"
                "reset\nPS = F eq 'png' ? 3 : 1\n"
                "set border 3 linewidth 0.6\n"
                "set tics nomirror scale 0.5\n"
                "set grid back linewidth 0.4 linecolor rgb '#d8d8d8'\n"
                "set key noenhanced tmargin center horizontal Left reverse width -1.5 samplen 1.2 "
                "spacing 0.95\n"
                "set style fill transparent solid 0.22 noborder\n",
                MAX(22u, (guint)lround(height * 9)), n, n);
}

Picture *picture_new(const char *name, const char *summary, double width, double height)
{
    Picture *self = g_new0(Picture, 1);
    self->name = g_strdup(name);
    self->script = g_string_new(NULL);
    self->data = g_string_new(NULL);
    self->literals = g_ptr_array_new_with_free_func(g_free);
    g_string_append_printf(self->data, "# %s: %s\n", name, summary);
    write_head(self, summary, width, height);
    return self;
}

void picture_free(Picture *self)
{
    if (self == NULL)
        return;
    g_free(self->name);
    g_string_free(self->script, TRUE);
    g_string_free(self->data, TRUE);
    g_ptr_array_unref(self->literals);
    g_free(self);
}

void picture_note(Picture *self, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_string_append(self->data, "# ");
    g_string_append_vprintf(self->data, format, args);
    g_string_append_c(self->data, '\n');
    va_end(args);
}

/* One line of printable text: what a comment or a literal can hold. */
static char *plain(const char *text)
{
    char *copy = g_utf8_make_valid(text, -1);
    for (char *c = copy; *c != '\0'; c++)
        if (g_ascii_iscntrl(*c))
            *c = ' ';
    return copy;
}

guint picture_block(Picture *self, guint panel, const char *label, const char *columns)
{
    g_autofree char *shown = plain(label);
    if (self->blocks > 0)
        g_string_append(self->data, "\n\n");
    g_string_append_printf(self->data, "# block %u panel %u: %s\n# columns: %s\n", self->blocks,
                           panel, shown, columns);
    return self->blocks++;
}

guint picture_map_block(Picture *self, guint panel, const char *label, const char *columns)
{
    guint block = picture_block(self, panel, label, columns);
    g_string_append(self->data, "# map\n");
    return block;
}

void picture_row(Picture *self, guint n, const double *values)
{
    for (guint i = 0; i < n; i++) {
        if (i > 0)
            g_string_append_c(self->data, ' ');
        append_digits(self->data, i == 0 ? "%.12g" : "%.7g", values[i]);
    }
    g_string_append_c(self->data, '\n');
}

void picture_gap(Picture *self)
{
    g_string_append_c(self->data, '\n');
}

void picture_add(Picture *self, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_string_append_vprintf(self->script, format, args);
    va_end(args);
}

/* Quotes become typographic ones: gnuplot 5.4 misreads the doubled quote at the start of a literal
 * within braces, and so nothing can end the literal early. */
const char *picture_text(Picture *self, const char *text)
{
    g_autofree char *shown = plain(text);
    GString *literal = g_string_new("'");
    for (const char *c = shown; *c != '\0'; c++) {
        if (*c == '\'' || *c == '`')
            g_string_append(literal, "\xe2\x80\x99");
        else
            g_string_append_c(literal, *c);
    }
    g_string_append_c(literal, '\'');
    char *result = g_string_free(literal, FALSE);
    g_ptr_array_add(self->literals, result);
    return result;
}

const char *picture_number(Picture *self, double value)
{
    GString *text = g_string_new(NULL);
    append_digits(text, "%.12g", value);
    char *result = g_string_free(text, FALSE);
    g_ptr_array_add(self->literals, result);
    return result;
}

const char *picture_scaled(Picture *self, guint power, const char *unit)
{
    char *result = g_strdup_printf("%u%s", 1u << power, unit);
    g_ptr_array_add(self->literals, result);
    return result;
}

void picture_panel_done(Picture *self, PictureAxes axes)
{
    picture_add(self, "if (F eq 'svg') { print axes(%u, '%s%s') }\n", ++self->panels,
                axes & PICTURE_LOG_X ? "x" : "-", axes & PICTURE_LOG_Y ? "y" : "-");
}

void picture_end(Picture *self)
{
    picture_add(self, "if (F eq 'svg') { unset print }\n"
                      "if (F ne 'dumb' && F ne 'sixel') { unset output }\n"
                      "}\n");
}

static gboolean write_file(const char *folder, const char *name, const char *ending,
                           const GString *content, GError **error)
{
    g_autofree char *file = g_strconcat(name, ending, NULL);
    g_autofree char *path = g_build_filename(folder, file, NULL);
    g_autoptr(OutFile) out = out_file_new(path, error);
    if (out == NULL)
        return FALSE;
    fwrite(content->str, 1, content->len, out_file_stream(out));
    return out_file_commit(out, error);
}

gboolean picture_write(const Picture *self, const char *folder, GError **error)
{
    return write_file(folder, self->name, ".dat", self->data, error) &&
           write_file(folder, self->name, ".gp", self->script, error);
}

static const char *const palette[] = {"#0072b2", "#d55e00", "#009e73", "#e69f00",
                                      "#cc79a7", "#56b4e9", "#000000", "#8a7f00"};

static const struct {
    const char *route;
    guint colour;
} route_colours[] = {
    {"workqueue", 0},  {"buckets", 1},         {"persistent", 2}, {"masked", 3},
    {"flashinfer", 4}, {"workqueue-fused", 5}, {"single", 6},
};

const char *picture_colour(guint i)
{
    return palette[i % G_N_ELEMENTS(palette)];
}

static guint route_number(const char *route, guint i)
{
    for (guint r = 0; r < G_N_ELEMENTS(route_colours); r++)
        if (strcmp(route, route_colours[r].route) == 0)
            return route_colours[r].colour;
    /* Variants of a built-in route ("buckets-512") and peers: not the colours of those they stand
     * beside most often, single, buckets and workqueue. */
    static const guint others[] = {7, 4, 2, 3, 5};
    return others[i % G_N_ELEMENTS(others)];
}

const char *picture_route_colour(const char *route, guint i)
{
    return picture_colour(route_number(route, i));
}
