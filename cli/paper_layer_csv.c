/* The lines of layer.csv. */
#include <math.h>
#include <string.h>

#include "cli/paper_layer.h"
#include "cli/version.h"

const char paper_layer_header[] =
    "gpu,driver,toolkit,cublas,commit,date,model,tp,dtype,page_size,layers,weight_sets,kv_sets,"
    "cell,context,max_context,batch,bucket,route,chosen_by,kernels,step_us,graph_us,attention_us,"
    "gemm_us,other_us,scheduling_us,attention_share,gemm_share,other_share,scheduling_share,"
    "table_us,plan_us,launch_us,update_us,updates,steps_timed,direct_us,direct_attention_us,"
    "direct_gemm_us,direct_other_us,attention_launches,attention_tasks,merge_mib,upload_bytes,"
    "gemm_gflop,gemm_mib,attention_gflop,attention_mib,other_mib,gemm_floor_us,attention_floor_us,"
    "other_floor_us,floor_of,memory_needed_gib,memory_free_gib,repeats,rows_checked,max_abs_err,"
    "mean_abs_err,note";

static void put_machine(LayerStudy *self)
{
    static const char *const members[] = {"name", "driver", "toolkit", "cublas"};
    JsonObject *o = self->about != NULL ? json_node_get_object(self->about) : NULL;
    for (guint i = 0; i < G_N_ELEMENTS(members); i++)
        paper_csv_text(&self->csv, o != NULL ? json_object_get_string_member(o, members[i])
                                   : i == 0  ? "none (counters)"
                                             : NULL);
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *date = g_date_time_format(now, "%Y-%m-%d");
    paper_csv_text(&self->csv, KVREPLAY_COMMIT);
    paper_csv_text(&self->csv, o != NULL ? date : NULL); /* counts are of no day */
}

static void put_case(LayerStudy *self, const LayerCellFigures *f, guint route,
                     const char *chosen_by)
{
    PaperCsv *csv = &self->csv;
    BenchCell plain = *f->cell; /* named without the heads, which are the model's */
    plain.shape.q_heads = 32;
    plain.shape.kv_heads = 8;
    plain.shape.head_dim = 128;
    g_autofree char *name = bench_cell_name(&plain);
    gint64 sum = 0, most = 0;
    for (gint32 r = 0; r < f->cell->rows; r++) {
        sum += f->lens[r];
        most = MAX(most, f->lens[r]);
    }
    paper_csv_text(csv, self->model.name);
    paper_csv_int(csv, self->shape.tp);
    paper_csv_text(csv, self->shape.attn.dtype == ATTN_BF16 ? "bf16" : "fp16");
    paper_csv_int(csv, self->shape.attn.page_size);
    paper_csv_int(csv, self->layers);
    paper_csv_int(csv, self->memory.weight_sets);
    paper_csv_int(csv, f->kv_sets);
    paper_csv_text(csv, name);
    paper_csv_real(csv, (double)sum / f->cell->rows, 1);
    paper_csv_int(csv, most);
    paper_csv_int(csv, f->cell->rows);
    paper_csv_int(csv, f->bucket);
    paper_csv_text(csv, self->route[route].label);
    paper_csv_text(csv, chosen_by);
}

static void put_times(LayerStudy *self, const LayerTimes *t)
{
    PaperCsv *csv = &self->csv;
    if (t == NULL) { /* kernels .. direct_other_us */
        for (guint i = 0; i < 21; i++)
            paper_csv_text(csv, NULL);
        return;
    }
    const double scheduling = t->wall_us - t->graph_us;
    const double parts[] = {t->attention_us, t->gemm_us, t->other_us, scheduling};
    paper_csv_int(csv, t->kernels);
    paper_csv_real(csv, t->wall_us, 2);
    paper_csv_real(csv, t->graph_us, 2);
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++)
        paper_csv_real(csv, parts[i], 2);
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++)
        paper_csv_real(csv, parts[i] / t->wall_us, 4);
    paper_csv_real(csv, t->table_us, 2);
    paper_csv_real(csv, t->plan_us, 2);
    paper_csv_real(csv, t->launch_us, 2);
    paper_csv_real(csv, t->updates > 0 ? t->update_us : (double)NAN, 2);
    paper_csv_int(csv, t->updates);
    paper_csv_int(csv, t->steps);
    paper_csv_real(csv, t->direct_us, 2);
    paper_csv_real(csv, t->direct_attention_us, 2);
    paper_csv_real(csv, t->direct_gemm_us, 2);
    paper_csv_real(csv, t->direct_other_us, 2);
}

/* Bytes at the rate measured; without a GPU, of the named one's data sheet, and arithmetic too. */
static double floor_us(const LayerStudy *self, double bytes, double flop)
{
    if (self->engine != NULL)
        return bytes / self->read_rate;
    return fmax(bytes / (self->gpu->gbps * 1e3 * self->gpu->memory_share),
                flop / (self->gpu->tflops * 1e6 * self->gpu->flop_share));
}

static void put_work(LayerStudy *self, const LayerCellFigures *f)
{
    const double mib = 1 << 20;
    const LayerWork *w = &f->work;
    PaperCsv *csv = &self->csv;
    paper_csv_real(csv, w->gemm_flop / 1e9, 3);
    paper_csv_real(csv, w->gemm_bytes / mib, 3);
    paper_csv_real(csv, w->attention_flop / 1e9, 3);
    paper_csv_real(csv, w->attention_bytes / mib, 3);
    paper_csv_real(csv, w->other_bytes / mib, 3);
    paper_csv_real(csv, floor_us(self, w->gemm_bytes, w->gemm_flop), 2);
    paper_csv_real(csv, floor_us(self, w->attention_bytes, w->attention_flop), 2);
    paper_csv_real(csv, floor_us(self, w->other_bytes, 0), 2);
    g_free(self->floor_of);
    self->floor_of =
        self->engine != NULL
            ? g_strdup_printf("bytes at the read rate measured: %.0f GB/s", self->read_rate / 1e3)
            : g_strdup_printf("estimate: %s by its data sheet, %.0f %% of its memory rate, %.0f %% "
                              "of its matrix rate",
                              self->gpu->name, 100 * self->gpu->memory_share,
                              100 * self->gpu->flop_share);
    paper_csv_text(csv, self->floor_of);
}

static char *note_of(const LayerStudy *self, const LayerCellFigures *f)
{
    if (f->note != NULL)
        return g_strdup(f->note);
    const gboolean all = f->kv_sets == self->layers && self->memory.weight_sets == self->layers;
    g_autofree char *sets =
        all ? NULL
            : g_strdup_printf("%d of %d layers' weights and %d of their pages are held and used in "
                              "turn: %s",
                              self->memory.weight_sets, self->layers, f->kv_sets, f->sums);
    const char *counted = self->engine == NULL ? "counted, not executed" : NULL;
    return counted != NULL && sets != NULL ? g_strdup_printf("%s; %s", counted, sets)
                                           : g_strdup(counted != NULL ? counted : sets);
}

void paper_layer_line(LayerStudy *self, const LayerCellFigures *f, guint route,
                      const LayerTimes *times, const char *chosen_by)
{
    const double gib = 1 << 30;
    const AttnCounts *counts = &self->candidate[route].counts;
    PaperCsv *csv = &self->csv;
    put_machine(self);
    put_case(self, f, route, chosen_by);
    put_times(self, times);
    paper_csv_int(csv, counts->launches);
    paper_csv_int(csv, counts->tasks);
    paper_csv_real(csv, (double)counts->merge_state_bytes / (1 << 20), 4);
    paper_csv_real(csv, times != NULL ? (double)times->upload_bytes : (double)NAN, 0);
    put_work(self, f);
    paper_csv_real(csv, (double)layer_memory_needed(&self->memory, f->pages) / gib, 3);
    paper_csv_real(csv, (double)self->memory.free / gib, 3);
    paper_csv_real(csv, times != NULL ? times->repeats : (double)NAN, 0);
    paper_csv_real(csv, times != NULL ? times->checked_rows : (double)NAN, 0);
    paper_csv_real(csv, times != NULL ? times->max_abs_err : (double)NAN, -3);
    paper_csv_real(csv, times != NULL ? times->mean_abs_err : (double)NAN, -3);
    g_autofree char *note = note_of(self, f);
    paper_csv_text(csv, note);
    paper_csv_end(csv);
    fflush(out_file_stream(csv->out)); /* a long study that is killed leaves whole lines */
}
