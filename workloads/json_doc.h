/* A JSON text as a flat array of nodes, parsed by simdjson.
 *
 * The line formats need speed (arrays of thousands of ids a line) and exact numbers (nanoseconds do
 * not fit a double), so nodes keep the text of each number and string, and arrays of whole numbers
 * are kept as 64-bit integers. Measured on a Mooncake log on one core of the machine at hand: yajl
 * 243 MB/s without doing anything with the events, simdjson's on-demand parser 1.3 GB/s; hence this
 * one file of C++ (json_doc.cpp) behind a C interface.
 *
 * Order: nodes are in document order; a container's children follow it, node.next leads to its next
 * sibling. Keys and strings are as written, escapes included (json_unescape() in json_input.h). A
 * second value of the same key is there but not found. Everything is valid until the next parse.
 * Refused: bad UTF-8, NaN, nesting deeper than JDOC_DEPTH.
 */
#ifndef KV_WORKLOADS_JSON_DOC_H
#define KV_WORKLOADS_JSON_DOC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JDOC_DEPTH 64

typedef enum {
    JDOC_NULL,
    JDOC_FALSE,
    JDOC_TRUE,
    JDOC_NUMBER,
    JDOC_STRING,
    JDOC_INTS,  /* an array of whole numbers only, of at least one: no child nodes */
    JDOC_ARRAY, /* any other array */
    JDOC_OBJECT,
} JDocType;

typedef struct JNode {
    const char *key;  /* in an object: the name as written, without quotes */
    const char *text; /* number, or string without quotes, as written */
    uint64_t len;     /* of text; INTS: how many; ARRAY, OBJECT: children */
    uint64_t ints;    /* INTS: index of the first in the document's integers */
    uint32_t key_len;
    uint32_t next;    /* index of the next sibling, were there one */
    uint8_t type;     /* JDocType */
    uint8_t negative; /* INTS: one of them is below 0 */
} JNode;

typedef struct JDoc JDoc;
JDoc *jdoc_new(void);
void jdoc_free(JDoc *self);
/* Parses a whole value (object or array). NULL, or what is wrong (static text), and where. */
const char *jdoc_parse(JDoc *self, const char *text, size_t len, size_t *ret_offset);
const JNode *jdoc_nodes(const JDoc *self, uint32_t *ret_n);
/* The copy of the text that nodes point into. */
const char *jdoc_text(const JDoc *self);
/* Whole numbers as 64-bit patterns: -2^63 .. 2^64-1. */
const uint64_t *jdoc_ints(const JDoc *self);

#ifdef __cplusplus
}
#endif

#endif
