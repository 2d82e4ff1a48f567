/* `kvreplay paper --out`: the folder as a whole. */
#include <string.h>

#include "base/error.h"
#include "cli/paper_run.h"
#include "cli/stages.h"
#include "plots/paper_pictures.h"
#include "replay/layer.h"

static gboolean read_profile(PaperRun *run, GError **error)
{
    if (run->profile == NULL)
        return TRUE;
    g_autoptr(DeviceProfile) profile = device_profile_read(run->profile, error);
    run->learned = profile != NULL && profile->has_learned;
    return profile != NULL;
}

static gboolean open_run(PaperRun *run, GError **error)
{
    if (!read_profile(run, error))
        return FALSE;
    ReplayConfig config;
    replay_config_init(&config);
    config.config.device = run->device;
    gboolean ok = run->backend == NULL ||
                  plugin_choice_parse(&config.backend, "backend", backends, run->backend, error);
    if (ok) {
        g_autofree char *why = NULL;
        const BackendOps *ops = backend_choose(config.backend.info, &config.config, &why);
        run->backend_line = replay_backend_line(&config, error);
        run->executes = ops->executes;
        run->gpu = ops == &backend_cuda;
        run->backend = ops->info.name;
        ok = run->backend_line != NULL;
    }
    replay_config_clear(&config);
    return ok;
}

static gboolean make_folders(const PaperRun *run, gboolean attention, GError **error)
{
    static const char *const folders[] = {"plots", "steps", "replay"};
    for (guint i = 0; i < (attention ? G_N_ELEMENTS(folders) : 1); i++) {
        g_autofree char *path = g_build_filename(run->out, folders[i], NULL);
        if (!out_folder_make(path, error))
            return FALSE;
    }
    return TRUE;
}

static void put_text(JsonBuilder *b, const char *key, const char *value)
{
    json_builder_set_member_name(b, key);
    json_builder_add_string_value(b, value != NULL ? value : "");
}

static gboolean write_summary(const PaperRun *run, GError **error)
{
    g_autoptr(JsonBuilder) b = json_builder_new();
    json_builder_begin_object(b);
    json_add_program(b);
    put_text(b, "backend", run->backend);
    put_text(b, "backend_line", run->backend_line);
    put_text(b, "device", run->device_name);
    put_text(b, "profile", run->profile);
    put_text(b, "published_device", PAPER_CARD);
    json_builder_set_member_name(b, "quick");
    json_builder_add_boolean_value(b, run->quick);
    json_builder_set_member_name(b, "layers");
    json_builder_add_int_value(b, run->layers);
    json_builder_set_member_name(b, "executions_checked");
    json_builder_add_int_value(b, (gint64)run->checked);
    json_builder_set_member_name(b, "series_wrong");
    json_builder_add_int_value(b, (gint64)run->wrong);
    json_builder_set_member_name(b, "max_abs_err");
    if (run->checked > 0)
        json_builder_add_double_value(b, run->max_err);
    else
        json_builder_add_null_value(b);
    json_builder_end_object(b);
    g_autofree char *path = g_build_filename(run->out, "summary.json", NULL);
    g_autofree char *text = json_builder_text(b);
    return write_text(path, text, error);
}

static gboolean write_attention(PaperRun *run, GError **error)
{
    return paper_write_counters(run, error) && paper_write_main(run, error) &&
           paper_write_studies(run, error) && write_summary(run, error);
}

/* Whole layers want a GPU and cuBLAS. A machine without a GPU counts them, if it was not asked for
 * more. */
static gboolean open_layer(PaperRun *run, gboolean named, GError **error)
{
    if (strcmp(run->backend, "counters") == 0 || (!named && !run->gpu)) {
        g_printerr("layer runtime: bytes and FLOP are counted and times estimated; measuring wants "
                   "an NVIDIA GPU and cuBLAS\n");
        return TRUE;
    }
    if (run->gpu)
        return layer_available(run->device, error);
    g_set_error(error, KV_ERROR, KV_ERROR_UNSUPPORTED,
                "--runtime layer: backend %s has no GEMMs; cuda measures a step (with cuBLAS), "
                "counters counts its bytes and FLOP",
                run->backend);
    return FALSE;
}

/* Where pictures cannot be drawn the page comes without them, and the error is theirs. */
gboolean paper_draw(const char *folder, gboolean scripts_only, GError **error)
{
    g_autoptr(GError) local = NULL;
    if (!paper_pictures_draw(folder, scripts_only, &local) &&
        g_error_matches(local, KV_ERROR, KV_ERROR_INPUT)) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (!paper_report_write(folder, error))
        return FALSE;
    if (local == NULL)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&local));
    return FALSE;
}

gboolean paper_write_all(PaperRun *run, gboolean attention, const PaperLayer *layer, GError **error)
{
    const gboolean named = run->backend != NULL;
    gboolean ok = open_run(run, error) &&
                  (layer == NULL ||
                   (open_layer(run, named, error) && paper_check_layer(run, layer, error))) &&
                  make_folders(run, attention, error);
    if (ok)
        g_printerr("%s\n", run->backend_line);
    ok = ok && (!attention || write_attention(run, error)) &&
         (layer == NULL || paper_write_layer(run, layer, error));
    if (ok && run->wrong > 0) {
        g_set_error(error, KV_ERROR, KV_ERROR_MACHINE,
                    "outputs of %" G_GUINT64_FORMAT
                    " series differ from the fp64 reference by more "
                    "than the tolerance: see max_abs_err in %s",
                    run->wrong, run->out);
        ok = FALSE;
    }
    ok = ok && paper_draw(run->out, run->scripts, error);
    g_free(run->backend_line);
    g_free(run->device_name);
    return ok;
}
