/* One option's value: read from text, checked, kept in a config struct, printed.
 *
 * Internal to base/spec.c; what the types and the tables mean is in base/spec.h.
 */
#ifndef KV_BASE_SPEC_VALUE_H
#define KV_BASE_SPEC_VALUE_H

#include "base/spec.h"

/* A value of any type, before it goes into the config. */
typedef struct SpecValue {
    const SpecOption *option;
    union {
        gint64 integer; /* INT, TIME, BYTES */
        double real;
        int small; /* BOOL, CHOICE */
        char *string;
    } as;
} SpecValue;

/* FALSE when `text` is not of the option's type; the range is not looked at. */
gboolean spec_value_parse(const SpecOption *option, const char *text, SpecValue *ret);
gboolean spec_value_in_range(const SpecValue *value);
/* Moves the value into its field; a string that was there is freed. */
void spec_value_store(const SpecValue *value, gpointer config);
/* The field as text that parses back; NULL for an absent string. Free it. */
char *spec_value_format(const SpecOption *option, gconstpointer config);

/* "a time such as 4ms, 1.5s, 640us" and "0s..10s" ("" without a range), for messages. Free them. */
char *spec_type_text(const SpecOption *option);
char *spec_range_text(const SpecOption *option);

#endif
