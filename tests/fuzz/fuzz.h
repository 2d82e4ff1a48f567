/* What a fuzz target is, and how its corpus runs as a normal test.
 *
 * A target is one file fuzz_NAME.c that defines LLVMFuzzerTestOneInput() and a folder corpus/NAME
 * with inputs that once mattered. meson.build links it with libFuzzer where the option `fuzz` says
 * so (clang), else with driver.c, which feeds it each corpus file, the file cut short at many
 * places, and a few hundred seeded mutations of it. A target returns 0, leaks nothing and crashes
 * on nothing; whether what it read was right is for other tests.
 */
#ifndef KV_TESTS_FUZZ_H
#define KV_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
