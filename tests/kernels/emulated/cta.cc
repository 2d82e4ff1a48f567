#include "cta.h"

#include <memory>
#include <sched.h>
#include <ucontext.h>
#include <vector>

namespace emulated
{

namespace
{

constexpr size_t STACK = 256 * 1024;

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool done = false;
};

struct Meeting { /* of a warp, or of the CTA */
    int come = 0;
    unsigned round = 0;
};

struct Store {
    uint32_t *to;
    uint32_t word;
};

struct Cta {
    std::vector<Fiber> fibers;
    std::vector<Meeting> warps;
    Meeting all;
    std::vector<uint32_t> words; /* a lane each */
    std::vector<Store> kept;
    ucontext_t scheduler;
    unsigned now = 0, block = 0, grid = 0;
    uint64_t random = 0;
    const std::function<void()> *body = nullptr;
};

thread_local Cta *cta;

uint32_t draw(uint32_t below)
{
    uint64_t &x = cta->random;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return (uint32_t)(x >> 33) % below;
}

void let_go(size_t i)
{
    /* An address' older word goes first. */
    size_t first = i;
    for (size_t k = 0; k < i; ++k)
        if (cta->kept[k].to == cta->kept[i].to) {
            first = k;
            break;
        }
    const Store s = cta->kept[first];
    cta->kept.erase(cta->kept.begin() + (long)first);
    __atomic_store_n(s.to, s.word, __ATOMIC_RELAXED);
}

void meet(Meeting &m, int expected)
{
    const unsigned round = m.round;
    if (++m.come == expected) {
        m.come = 0, ++m.round;
        return;
    }
    while (m.round == round)
        yield();
}

void enter()
{
    (*cta->body)();
    cta->fibers[cta->now].done = true;
    swapcontext(&cta->fibers[cta->now].context, &cta->scheduler);
}

} // namespace

Dim thread_index()
{
    return {cta->now};
}
Dim block_dim()
{
    return {(unsigned)cta->fibers.size()};
}
Dim block_index()
{
    return {cta->block};
}
Dim grid_dim()
{
    return {cta->grid};
}

void yield()
{
    swapcontext(&cta->fibers[cta->now].context, &cta->scheduler);
}

void sync_threads()
{
    meet(cta->all, (int)cta->fibers.size());
}

uint32_t exchange(uint32_t word, int from)
{
    Meeting &warp = cta->warps[cta->now / 32];
    cta->words[cta->now] = word;
    meet(warp, 32);
    const uint32_t got = cta->words[cta->now / 32 * 32 + (unsigned)(from & 31)];
    meet(warp, 32);
    return got;
}

uint32_t ballot(bool bit)
{
    Meeting &warp = cta->warps[cta->now / 32];
    uint32_t bits = 0;
    cta->words[cta->now] = bit;
    meet(warp, 32);
    for (unsigned i = 0; i < 32; ++i)
        bits |= cta->words[cta->now / 32 * 32 + i] << i;
    meet(warp, 32);
    return bits;
}

int32_t largest(int32_t key)
{
    Meeting &warp = cta->warps[cta->now / 32];
    cta->words[cta->now] = (uint32_t)key;
    meet(warp, 32);
    for (unsigned i = 0; i < 32; ++i) {
        const int32_t other = (int32_t)cta->words[cta->now / 32 * 32 + i];
        key = other > key ? other : key;
    }
    meet(warp, 32);
    return key;
}

void store_later(uint32_t *to, uint32_t word)
{
    cta->kept.push_back({to, word});
    if (draw(16) == 0)
        yield();
}

uint32_t load_now(const uint32_t *from)
{
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}

void cta_run(int threads, unsigned block, unsigned grid, uint64_t seed,
             const std::function<void()> &body)
{
    Cta self;
    self.fibers = std::vector<Fiber>((size_t)threads);
    self.warps.resize((size_t)threads / 32);
    self.words.resize((size_t)threads);
    self.block = block, self.grid = grid;
    self.random = seed * 2654435761u + block + 1;
    self.body = &body;
    cta = &self;
    for (Fiber &f : self.fibers) {
        f.stack.reset(new char[STACK]);
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.get();
        f.context.uc_stack.ss_size = STACK;
        f.context.uc_link = nullptr;
        makecontext(&f.context, enter, 0);
    }
    for (int left = threads; left > 0;) {
        const unsigned from = draw((uint32_t)threads); /* round, from anywhere */
        for (unsigned i = 0; i < (unsigned)threads; ++i) {
            Fiber &f = self.fibers[(from + i) % (unsigned)threads];
            if (f.done)
                continue;
            self.now = (from + i) % (unsigned)threads;
            swapcontext(&self.scheduler, &f.context);
            left -= f.done;
        }
        for (size_t n = self.kept.size() / 3 + (draw(4) == 0), k = 0; k < n && !self.kept.empty();
             ++k)
            let_go(draw((uint32_t)self.kept.size()));
        if (draw(4) == 0)
            sched_yield();
    }
    while (!self.kept.empty())
        let_go(draw((uint32_t)self.kept.size()));
    cta = nullptr;
}

} // namespace emulated
