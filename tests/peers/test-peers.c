/* The peers' interface, without a GPU: the table is the same whether they are built or not, every
 * peer that is not built says what to do, and what a peer cannot do is refused in words.
 */
#include <glib.h>
#include <string.h>

#include "kernels/peers/peers.h"

static const char *const names[] = {"flashinfer",       "flashinfer-tc",      "flashinfer-batch",
                                    "vllm-pa1",         "vllm-pa2",           "trtllm-xqa",
                                    "flashinfer-0.2.5", "flashinfer-tc-0.2.5"};

static PeerConfig plain_config(void)
{
    PeerConfig config = {.shape = {32, 8, 128, 16, ATTN_F16, ATTN_HND},
                         .max_rows = 64,
                         .max_len = 32768,
                         .max_pages = 64 * 2048};
    attn_pool_strides(&config.pool, &config.shape);
    config.pool.pages = 1000;
    return config;
}

static void test_table(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_assert_nonnull(peers[i]);
        g_assert_cmpstr(peers[i]->name, ==, names[i]);
        g_assert_true(peer_find(names[i]) == peers[i]);
        g_assert_nonnull(peers[i]->package);
    }
    g_assert_null(peers[G_N_ELEMENTS(names)]);
    g_assert_null(peer_find("flash"));
    g_assert_null(peer_find(""));
}

static void test_not_built(void)
{
    const PeerConfig config = plain_config();
    for (gsize i = 0; peers[i]; i++) {
        if (peers[i]->built) {
            g_assert_nonnull(peers[i]->create);
            continue;
        }
        PeerError error = {{0}};
        g_assert_cmpint(peer_supports(peers[i], &config, &error), ==, ATTN_UNSUPPORTED_SHAPE);
        g_assert_nonnull(strstr(error.text, "tools/get-peers"));
    }
}

/* What `peer` says to `config` on a card of compute capability `arch` with 227 KiB a CTA. */
static AttnStatus ask(const char *peer, const PeerConfig *config, int arch, PeerError *error)
{
    memset(error, 0, sizeof *error);
    return peer_find(peer)->supports(config, arch, 227 << 10, error);
}

static gboolean skipped(void)
{
    if (!peers[0]->built)
        g_test_skip("peers are not built");
    return !peers[0]->built;
}

static void test_refusals(void)
{
    PeerError error;
    PeerConfig config = plain_config();
    if (skipped())
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_assert_cmpint(ask(names[i], &config, 90, &error), ==, ATTN_OK);
        g_assert_cmpint(ask(names[i], &config, 86, &error), ==, ATTN_OK);
        g_assert_cmpint(ask(names[i], &config, 75, &error), !=, ATTN_OK);
        g_assert_cmpint(peers[i]->workspace(&config), >, 0);
    }
    config.shape.dtype = ATTN_BF16;
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_assert_cmpint(ask(names[i], &config, 90, &error), ==, ATTN_UNSUPPORTED_SHAPE);
        g_assert_cmpuint(strlen(error.text), >, 8);
    }
}

static void test_limits(void)
{
    PeerError error;
    if (skipped())
        return;
    PeerConfig config = plain_config();
    config.max_len = 60000; /* 240,000 bytes of scores */
    g_assert_cmpint(ask("vllm-pa1", &config, 90, &error), ==, ATTN_UNSUPPORTED_SHAPE);
    g_assert_nonnull(strstr(error.text, "60000"));
    g_assert_cmpint(ask("vllm-pa2", &config, 90, &error), ==, ATTN_OK);

    config = plain_config();
    config.pool.pages = 262144; /* x 16384 elements = 2^32 */
    g_assert_cmpint(ask("flashinfer-batch", &config, 90, &error), ==, ATTN_UNSUPPORTED_SHAPE);
    config.pool.pages--;
    g_assert_cmpint(ask("flashinfer-batch", &config, 90, &error), ==, ATTN_OK);

    config = plain_config();
    config.shape.q_heads = 40; /* G 5 */
    g_assert_cmpint(ask("flashinfer", &config, 90, &error), ==, ATTN_UNSUPPORTED_SHAPE);
    g_assert_cmpint(ask("trtllm-xqa", &config, 90, &error), ==, ATTN_UNSUPPORTED_SHAPE);
    g_assert_cmpint(ask("flashinfer-tc", &config, 90, &error), ==, ATTN_OK);

    config = plain_config();
    config.settings.split_tokens = 2040; /* no whole pages */
    g_assert_cmpint(ask("flashinfer-tc", &config, 90, &error), ==, ATTN_UNSUPPORTED_SHAPE);
    config.settings.split_tokens = 2048;
    g_assert_cmpint(ask("flashinfer-tc", &config, 90, &error), ==, ATTN_OK);
    g_assert_cmpint(ask("flashinfer-tc-0.2.5", &config, 90, &error), ==, ATTN_UNSUPPORTED_SHAPE);
    config.settings.graph = 1;
    g_assert_cmpint(ask("flashinfer-tc", &config, 90, &error), ==, ATTN_UNSUPPORTED_SHAPE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/peers/table", test_table);
    g_test_add_func("/peers/not-built", test_not_built);
    g_test_add_func("/peers/refusals", test_refusals);
    g_test_add_func("/peers/limits", test_limits);
    return g_test_run();
}
