/* CTAs on the CPU, for tests of what kernels say to one another through memory.
 *
 * grid_run() runs a function by all threads of several CTAs at once, all of them as fibers of the
 * calling OS thread: the same seed is the same run. A fiber runs until it waits (barriers and
 * everything that a warp does together), stores, or now and then loads; who runs next is drawn at
 * random. CTAs differ in pace up to fourfold, and some start late. Stores to memory that other
 * CTAs read are kept back, word by word, and let go at random times in random order: what a GPU
 * promises of relaxed stores, and no more (words of one address keep their order, for they have one
 * writer at a time). Warps are whole: every lane takes part in what a warp does.
 *
 * Nothing hangs: where no word became visible and no thread returned in 50,000 rounds (be_patient()
 * says another number), it says who waits, and aborts.
 */
#ifndef KV_TESTS_KERNELS_EMULATED_CTA_H
#define KV_TESTS_KERNELS_EMULATED_CTA_H

#include <functional>
#include <stdint.h>

namespace emulated
{

struct Dim {
    unsigned x;
};

/* Of the fiber that runs. */
Dim thread_index(), block_dim(), block_index(), grid_dim();

void sync_threads();
/* All lanes give a word and get lane `from`'s. */
uint32_t exchange(uint32_t word, int from);
/* A bit a lane. */
uint32_t ballot(bool bit);
/* The largest of the lanes' keys. */
int32_t largest(int32_t key);
/* The sum of what the lanes give. */
int32_t total(int32_t x);
/* A turn for others, and some of the stores that were kept back. */
void yield();
void store_later(uint32_t *to, uint32_t word);
uint32_t load_now(const uint32_t *from);

void be_patient(unsigned rounds);

/* Both return when all threads have, and all stores are done. */
void grid_run(int threads, unsigned grid, uint64_t seed,
              const std::function<void(unsigned block)> &body);
/* One CTA of a grid, alone. */
void cta_run(int threads, unsigned block, unsigned grid, uint64_t seed,
             const std::function<void()> &body);

} // namespace emulated
#endif
