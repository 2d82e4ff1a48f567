/* The bench's CSV: a line a cell and route, header first, written as cells end.
 *
 * Columns: those of the kernel tables under docs/results (times in microseconds, gb_per_s = K and V
 * bytes once over kernel time), then what tells cells and peers apart: context (equal length; the
 * longest for families), percent_of_read_rate, vs_best_peer (the best peer's kernel time over this
 * one's), checked_rows, note. Not measured = empty.
 */
#ifndef KV_REPLAY_BENCH_CSV_H
#define KV_REPLAY_BENCH_CSV_H

#include "replay/bench.h"

void bench_csv_header(OutFile *csv);
gboolean bench_csv_cell(OutFile *csv, const BenchResult *result, const BenchCellResult *cell,
                        GError **error);

#endif
