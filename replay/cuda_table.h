/* Block tables that live on the device and are brought forward by deltas.
 *
 * The table is slots x stride page ids; a row's ids start at slot x stride, so that a row stays
 * where it is for as long as it is in the batch. cuda_table_step() takes a step's joins and appends
 * into the host's copy and notes which words changed; cuda_table_flush() brings just those (8 bytes
 * each) to the device, together with the step's lengths, offsets and query keys (16 bytes a row).
 * Only when a row outgrows the stride, or a slot the table, is it laid out anew and sent whole.
 */
#ifndef KV_REPLAY_CUDA_TABLE_H
#define KV_REPLAY_CUDA_TABLE_H

#include "replay/table_memory.h"
#include "sim/steps_file.h"

typedef struct CudaTable CudaTable;
CudaTable *cuda_table_new(const TableMemory *memory); /* borrowed */
void cuda_table_free(CudaTable *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CudaTable, cuda_table_free)

/* Host only; cost follows the deltas. Rows of the step are borrowed until the next call. INPUT
 * error when a page id is not below `pool_pages`. */
gboolean cuda_table_step(CudaTable *self, const Step *step, const StepRow *rows, guint32 n_rows,
                         gint64 pool_pages, gint32 page_size, GError **error);
/* Queues the copies on the stream. MACHINE error. */
gboolean cuda_table_flush(CudaTable *self, void *stream, GError **error);

guint32 cuda_table_rows(const CudaTable *self); /* paused ones left out */
guint32 cuda_table_max_length(const CudaTable *self);
/* Device arrays of the step last flushed. */
const gint32 *cuda_table_lens(const CudaTable *self);
const gint32 *cuda_table_offset(const CudaTable *self);
const gint32 *cuda_table_ids(const CudaTable *self);
gint64 cuda_table_ids_room(const CudaTable *self); /* ids allocated there */
const gint64 *cuda_table_keys(const CudaTable *self);
/* Host arrays of the same step; ids are the host's copy of the whole table. */
const gint32 *cuda_table_host_lens(const CudaTable *self);
const gint32 *cuda_table_host_offset(const CudaTable *self);
const gint32 *cuda_table_host_ids(const CudaTable *self);
const gint64 *cuda_table_host_keys(const CudaTable *self);
/* Of the last flush. */
gint64 cuda_table_upload_bytes(const CudaTable *self);
gint cuda_table_copies(const CudaTable *self);

#endif
