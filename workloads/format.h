/* Recorded formats: what a reader of one log format must give, and the registry of them.
 *
 * A format is one file with a FormatOps: probe() looks at the first bytes and says how sure it is,
 * open() takes an Input and gives a reader, next() gives one LogRecord after the other in file
 * order, on the log's own clock. A reader only reads: dropping, sorting, moving to time zero and
 * pairing turns with their predecessors is done once, for every format, by log_source.h.
 *
 * Errors: what cannot be read is an INPUT error that names file, line and field. What is odd but
 * can be read is counted in the FormatNotes (one warning per kind) or, under strict, an error.
 * Memory: one record, unless the format is one document (then that document).
 */
#ifndef KV_WORKLOADS_FORMAT_H
#define KV_WORKLOADS_FORMAT_H

#include "base/input.h"
#include "base/spec.h"
#include "workloads/request.h"

/* One record as the log has it. Lengths -1 and times KV_NS_NONE: not recorded. */
typedef struct LogRecord {
    guint64 line;             /* where it begins, for messages */
    kv_ns arrival;            /* log's clock (UNIX time where it has a date) */
    kv_ns sent;               /* same clock */
    kv_ns wait;               /* closed loop: from the end of the session's previous turn */
    const char *arrival_text; /* as written; NULL = not from text. Valid until the next call */
    gsize arrival_len;
    gint64 prompt, output; /* 0 <= .. <= G_MAXINT32 */
    gint64 session;        /* KV_NO_SESSION or a number >= 0 */
    gint32 turn;
    gint32 priority;
    guint32 klass;
    kv_ns deadline;
    gint32 block_tokens;
    guint32 n_blocks;
    const guint64 *blocks;    /* valid until the next call */
    const char *fault;        /* static reason why it is not replayable ("failed"); NULL */
    const Observed *observed; /* valid until the next call; NULL */
} LogRecord;

void log_record_init(LogRecord *record); /* nothing recorded */

/* Warnings by kind, with counts, in order of first appearance. */
typedef struct FormatNotes FormatNotes;
FormatNotes *format_notes_new(void);
void format_notes_free(FormatNotes *notes);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FormatNotes, format_notes_free)
void format_note(FormatNotes *notes, const char *kind); /* counts one more of `kind` (copied) */
void format_note_count(FormatNotes *notes, const char *kind, guint64 count);
/* The same, and the first time remembers `where` ("line 4: 655 tokens ...", copied). */
void format_note_at(FormatNotes *notes, const char *kind, const char *where);
guint64 format_notes_count(const FormatNotes *notes, const char *kind);
/* How long the recorded run took, where the log says (KV_NS_NONE until then). */
void format_notes_set_duration(FormatNotes *notes, kv_ns duration);
kv_ns format_notes_duration(const FormatNotes *notes);
/* Replaces the contents of `texts` (char *, owned): "KIND" or "KIND (N times)". */
void format_notes_list(const FormatNotes *notes, GPtrArray *texts);

typedef struct FormatArgs {
    gconstpointer config; /* the format's own options, parsed */
    FormatNotes *notes;
    GPtrArray *classes; /* char *: append class names, use their index */
    gboolean strict;
    const char *map; /* column mapping for csv and jsonl; NULL */
    guint64 seed;    /* for formats that are statistics and not rows */
    guint32 replication;
} FormatArgs;

typedef struct FormatReader FormatReader;

typedef struct FormatOps {
    PluginInfo info;
    /* How sure (0 = no, 100 = certain) that text beginning like this is of this format. */
    int (*probe)(const char *head, gsize size);
    FormatReader *(*open)(Input *input, const FormatArgs *args, GError **error);
    /* 1 = filled *ret, 0 = end, -1 = error. */
    int (*next)(FormatReader *self, LogRecord *ret, GError **error);
    void (*free)(FormatReader *self);
} FormatOps;

/* Every reader embeds this first; open() fills it. */
struct FormatReader {
    const FormatOps *ops;
};
void format_reader_free(FormatReader *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FormatReader, format_reader_free)

extern const PluginInfo *const formats[]; /* of FormatOps */

/* The format that `input` begins like; NULL + INPUT error that says what the text looks like (a
 * git-lfs pointer, UTF-16, nothing at all ...) and what is known. */
const FormatOps *format_probe(Input *input, GError **error);

/* For an input whose columns the user maps: csv or jsonl; NULL + the same errors. */
const FormatOps *format_mapped(Input *input, GError **error);

/* Index of the class named [name, name+len), added if it is new. Few classes: a walk. */
guint32 format_class(GPtrArray *classes, const char *name, gsize len);

/* For probes of CSV formats: `sure` when the first line has all these columns; a small score when
 * just one of three or more is missing, so that the reader is opened and names the column. */
#define FORMAT_ONE_COLUMN_SHORT 5
int format_head_score(const char *head, gsize size, const char *const *columns, int sure);
/* ... does the first line (or the head) hold all these texts? */
gboolean format_line_has(const char *head, gsize size, const char *const *texts);
gboolean format_head_has(const char *head, gsize size, const char *const *texts);
/* First character that is not white space or a byte order mark; 0 if none. */
char format_first_char(const char *head, gsize size);

#endif
