#undef _FORTIFY_SOURCE /* whose longjmp takes another stack for a fault */
#include "cta.h"

#include <algorithm>
#include <memory>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else /* tells AddressSanitizer which stack comes next */
static inline void __sanitizer_start_switch_fiber(void **, const void *, size_t)
{
}
static inline void __sanitizer_finish_switch_fiber(void *, const void **, size_t *)
{
}
static inline void __asan_unpoison_memory_region(const void *, size_t)
{
}
#endif

namespace emulated
{

namespace
{

constexpr size_t STACK = 64 * 1024;

/* Stacks of fibers that have ended, for those to come: a test runner that has malloc() fill what it
 * hands out (MALLOC_PERTURB_) would spend its time on them. */
std::vector<std::unique_ptr<char[]>> spare_stacks;

std::unique_ptr<char[]> take_stack()
{
    if (spare_stacks.empty())
        return std::unique_ptr<char[]>(new char[STACK]);
    std::unique_ptr<char[]> stack = std::move(spare_stacks.back());
    spare_stacks.pop_back();
    __asan_unpoison_memory_region(stack.get(), STACK);
    return stack;
}

struct Meeting { /* of a warp, or of the CTA */
    int come = 0;
    unsigned round = 0;
};

struct Fiber {
    ucontext_t context; /* to begin with */
    jmp_buf at;         /* from then on: a switch is no system call */
    std::unique_ptr<char[]> stack;
    bool begun = false, done = false;
    const Meeting *waits = nullptr; /* for the end of this meeting's round */
    unsigned round = 0;
    void *fake = nullptr; /* AddressSanitizer's */

    ~Fiber()
    {
        if (stack)
            spare_stacks.push_back(std::move(stack));
    }
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
    jmp_buf scheduler;
    const void *stack = nullptr; /* the scheduler's, as AddressSanitizer says it */
    size_t stack_size = 0;
    unsigned now = 0, block = 0, grid = 0;
    int left = 0;                  /* threads that have not returned */
    unsigned late = 0, pace = 1;   /* rounds until it starts; then one of so many is its turn */
    uint64_t random = 0, seen = 0; /* what had moved when its last turn ended */
    const std::function<void(unsigned)> *body = nullptr;
};

Cta *cta; /* whose turn it is */

/* Words that became visible, and threads that returned. Waiting is none of it. */
uint64_t moved;
unsigned patience = 50000;

/* Ends the process where no CTA has got anywhere for too many rounds. */
void give_up(const std::vector<std::unique_ptr<Cta>> &ctas)
{
    for (const std::unique_ptr<Cta> &c : ctas) {
        unsigned meeting = 0;
        for (const Fiber &f : c->fibers)
            meeting += !f.done && f.waits != nullptr && f.waits->round == f.round;
        if (c->left > 0)
            fprintf(stderr,
                    "CTA %u of %u waits for what never comes: %d threads have not returned, %u of "
                    "them at a barrier or for their warp, the others for a word of memory\n",
                    c->block, c->grid, c->left, meeting);
    }
    abort();
}

void to_scheduler()
{
    Fiber &f = cta->fibers[cta->now];
    __sanitizer_start_switch_fiber(f.done ? nullptr : &f.fake, cta->stack, cta->stack_size);
    if (_setjmp(f.at) == 0)
        _longjmp(cta->scheduler, 1);
    __sanitizer_finish_switch_fiber(f.fake, &cta->stack, &cta->stack_size);
}

void to_fiber(Fiber &f)
{
    void *fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, f.stack.get(), STACK);
    if (_setjmp(cta->scheduler) == 0) {
        if (f.begun)
            _longjmp(f.at, 1);
        f.begun = true;
        setcontext(&f.context);
    }
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
    (*cta->body)(cta->block);
    cta->fibers[cta->now].done = true;
    --cta->left, ++moved;
    to_scheduler();
}

/* A turn for everybody who does not wait for others of this CTA, from anywhere; then some of the
 * stores that were kept back. */
void turn()
{
    const unsigned n = (unsigned)cta->fibers.size(), from = draw(n);
    for (unsigned i = 0; i < n; ++i) {
        cta->now = (from + i) % n;
        Fiber &f = cta->fibers[cta->now];
        if (!f.done && (f.waits == nullptr || f.waits->round != f.round))
            to_fiber(f);
    }
    for (size_t k = cta->kept.size() / 3 + (draw(4) == 0); k > 0 && !cta->kept.empty(); --k)
        let_go(draw((uint32_t)cta->kept.size()));
}

std::unique_ptr<Cta> make_cta(int threads, unsigned block, unsigned grid, uint64_t seed,
                              const std::function<void(unsigned)> *body)
{
    std::unique_ptr<Cta> self(new Cta);
    self->fibers = std::vector<Fiber>((size_t)threads);
    self->warps.resize((size_t)threads / 32);
    for (std::vector<uint32_t> &words : self->words)
        words.resize((size_t)threads);
    self->block = block, self->grid = grid, self->left = threads;
    self->random = (seed + 1) * 0x9e3779b97f4a7c15u ^ (block + 1) * 0xbf58476d1ce4e5b9u;
    self->body = body;
    cta = self.get();
    for (int i = 0; i < 8; ++i)
        draw(2);
    self->late = draw(4) == 0 ? draw(300) : 0;
    self->pace = 1u << draw(3);
    for (Fiber &f : self->fibers) {
        f.stack = take_stack();
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.get();
        f.context.uc_stack.ss_size = STACK;
        f.context.uc_link = nullptr;
        makecontext(&f.context, enter, 0);
    }
    return self;
}

/* Rounds, until all threads of all have returned and no store is kept back. */
void run(std::vector<std::unique_ptr<Cta>> &ctas)
{
    uint64_t seen = moved;
    unsigned still = 0;
    for (bool any = true; any;) {
        any = false;
        for (std::unique_ptr<Cta> &c : ctas) {
            cta = c.get();
            if (c->left == 0 && c->kept.empty())
                continue;
            any = true;
            if (c->late > 0)
                --c->late;
            else if (draw(c->pace) == 0 && (c->seen != moved || draw(4) == 0)) {
                turn(); /* seldom where nothing has come that it can wait for */
                c->seen = moved;
            }
        }
        still = seen == moved ? still + 1 : 0;
        seen = moved;
        if (still > patience)
            give_up(ctas);
    }
    cta = nullptr;
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

void be_patient(unsigned rounds)
{
    patience = rounds;
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

int32_t total(int32_t x)
{
    const uint32_t *all = gather((uint32_t)x);
    uint32_t sum = 0;
    for (unsigned i = 0; i < 32; ++i)
        sum += all[i];
    return (int32_t)sum;
}

void store_later(uint32_t *to, uint32_t word)
{
    cta->kept.push_back({to, word});
    if (draw(16) == 0)
        yield();
}

uint32_t load_now(const uint32_t *from)
{
    if (draw(256) == 0)
        yield();
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}

void grid_run(int threads, unsigned grid, uint64_t seed, const std::function<void(unsigned)> &body)
{
    std::vector<std::unique_ptr<Cta>> ctas;
    for (unsigned block = 0; block < grid; ++block)
        ctas.push_back(make_cta(threads, block, grid, seed, &body));
    run(ctas);
}

void cta_run(int threads, unsigned block, unsigned grid, uint64_t seed,
             const std::function<void()> &body)
{
    const std::function<void(unsigned)> of_block = [&](unsigned) { body(); };
    std::vector<std::unique_ptr<Cta>> ctas;
    ctas.push_back(make_cta(threads, block, grid, seed, &of_block));
    ctas[0]->late = 0, ctas[0]->pace = 1;
    run(ctas);
}

} // namespace emulated
