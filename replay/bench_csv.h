/* The bench's CSV: a line a cell and route, header first, written as cells end.
 *
 * Columns: those of the kernel tables under docs/results (times in microseconds; floor_us = 5 +
 * bytes / read rate; gb_per_s = K and V bytes once over the shorter of kernel_us and graph_us),
 * then what tells cells and peers apart: context (equal length; the longest for families),
 * percent_of_read_rate, vs_best_peer (the best peer's kernel time over this one's), graph_wall_us,
 * workers that the plan was made for, checked_rows with the errors against the reference,
 * rows_diff and flashinfer_diff (largest difference over all rows from the first right route, and
 * from FlashInfer), note. Not measured = empty.
 */
#ifndef KV_REPLAY_BENCH_CSV_H
#define KV_REPLAY_BENCH_CSV_H

#include "replay/bench.h"

void bench_csv_header(OutFile *csv);
gboolean bench_csv_cell(OutFile *csv, const BenchResult *result, const BenchCellResult *cell,
                        GError **error);

#endif
