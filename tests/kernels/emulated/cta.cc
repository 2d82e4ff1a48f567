#include "cta.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#else /* tells AddressSanitizer which stack comes next */
static inline void __sanitizer_start_switch_fiber(void **, const void *, size_t)
{
}
static inline void __sanitizer_finish_switch_fiber(void *, const void **, size_t *)
{
}
#endif

namespace emulated
{

namespace
{

constexpr size_t STACK = 256 * 1024;

struct Meeting { /* of a warp, or of the CTA */
    int come = 0;
    unsigned round = 0;
};

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool done = false;
    const Meeting *waits = nullptr; /* for the end of this meeting's round */
    unsigned round = 0;
    void *fake = nullptr; /* AddressSanitizer's */
};

struct Store {
    uint32_t *to;
    uint32_t word;
};

struct Cta {
    std::vector<Fiber> fibers;
    std::vector<Meeting> warps;
    Meeting all;
    std::vector<uint32_t> words[2]; /* a lane each; of meetings in turn */
    std::vector<Store> kept;
    ucontext_t scheduler;
    const void *stack = nullptr; /* the scheduler's, as AddressSanitizer says it */
    size_t stack_size = 0;
    unsigned now = 0, block = 0, grid = 0;
    uint64_t random = 0;
    const std::function<void()> *body = nullptr;
};

thread_local Cta *cta;

/* Of all CTAs: words that became visible, and threads that returned. Waiting is none of it. */
std::atomic<uint64_t> moved;
std::atomic<double> patience{20};

double cpu_s() /* of the process: other load, or being stopped, is no reason to give up */
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct Watch {
    uint64_t seen = moved;
    double since = cpu_s();
    unsigned rounds = 0;
};

/* Ends the process where no CTA has got anywhere for too long. */
void look(Watch &watch)
{
    if (++watch.rounds % 256 != 0)
        return;
    if (watch.seen != moved) {
        watch.seen = moved, watch.since = cpu_s();
        return;
    }
    if (cpu_s() - watch.since < patience)
        return;
    unsigned left = 0, meeting = 0;
    for (const Fiber &f : cta->fibers)
        left += !f.done, meeting += !f.done && f.waits != nullptr && f.waits->round == f.round;
    fprintf(stderr,
            "Bail out! CTA %u of %u waits for what never comes: %u threads have not returned, %u "
            "of them at a barrier or for their warp, the others for a word of memory\n",
            cta->block, cta->grid, left, meeting);
    abort();
}

void to_scheduler()
{
    Fiber &f = cta->fibers[cta->now];
    __sanitizer_start_switch_fiber(f.done ? nullptr : &f.fake, cta->stack, cta->stack_size);
    swapcontext(&f.context, &cta->scheduler);
    __sanitizer_finish_switch_fiber(f.fake, &cta->stack, &cta->stack_size);
}

void to_fiber(Fiber &f)
{
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, f.stack.get(), STACK);
    swapcontext(&cta->scheduler, &f.context);
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
}

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
    ++moved;
}

void meet(Meeting &m, int expected)
{
    const unsigned round = m.round;
    if (++m.come == expected) {
        m.come = 0, ++m.round;
        return;
    }
    Fiber &f = cta->fibers[cta->now];
    f.waits = &m, f.round = round;
    to_scheduler(); /* who does not come back before the round has ended */
    f.waits = nullptr;
}

void enter()
{
    __sanitizer_finish_switch_fiber(nullptr, &cta->stack, &cta->stack_size);
    (*cta->body)();
    cta->fibers[cta->now].done = true;
    ++moved;
    to_scheduler();
}

/* A turn for everybody who does not wait for others of this CTA, from anywhere; returns how many
 * have returned. */
int turn()
{
    const unsigned n = (unsigned)cta->fibers.size(), from = draw(n);
    int ret = 0;
    for (unsigned i = 0; i < n; ++i) {
        cta->now = (from + i) % n;
        Fiber &f = cta->fibers[cta->now];
        if (f.done || (f.waits != nullptr && f.waits->round == f.round))
            continue;
        to_fiber(f);
        ret += f.done;
    }
    return ret;
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

void be_patient(double seconds)
{
    patience = seconds;
}

void yield()
{
    to_scheduler();
}

void sync_threads()
{
    meet(cta->all, (int)cta->fibers.size());
}

/* Every lane gives a word; returns all of the warp's, which stay until the meeting after the next
 * one: nobody is there before all have read them. */
static const uint32_t *gather(uint32_t word)
{
    const unsigned warp = cta->now / 32;
    uint32_t *all = cta->words[cta->warps[warp].round % 2].data() + warp * 32;
    all[cta->now % 32] = word;
    meet(cta->warps[warp], 32);
    return all;
}

uint32_t exchange(uint32_t word, int from)
{
    return gather(word)[from & 31];
}

uint32_t ballot(bool bit)
{
    const uint32_t *all = gather(bit);
    uint32_t bits = 0;
    for (unsigned i = 0; i < 32; ++i)
        bits |= all[i] << i;
    return bits;
}

int32_t largest(int32_t key)
{
    const uint32_t *all = gather((uint32_t)key);
    for (unsigned i = 0; i < 32; ++i)
        key = std::max(key, (int32_t)all[i]);
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
    for (std::vector<uint32_t> &words : self.words)
        words.resize((size_t)threads);
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
    Watch watch;
    for (int left = threads; left > 0; look(watch)) {
        left -= turn();
        for (size_t n = self.kept.size() / 3 + (draw(4) == 0), k = 0; k < n && !self.kept.empty();
             ++k)
            let_go(draw((uint32_t)self.kept.size()));
        if (self.kept.empty() || draw(4) == 0) /* others' words are what is waited for */
            sched_yield();
    }
    while (!self.kept.empty())
        let_go(draw((uint32_t)self.kept.size()));
    cta = nullptr;
}

} // namespace emulated
