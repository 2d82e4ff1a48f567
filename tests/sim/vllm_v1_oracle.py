#!/usr/bin/env python3
"""A second vLLM V1 scheduler, written from its rules alone, compared with ours step by step.

vllm_v1_oracle.py SIM_LEDGER [RUNS [SEED]]

Random scenarios (lengths at page edges, shared beginnings, small pools and budgets, both years' rules,
priorities) go through SIM_LEDGER and through Scheduler below; the ledgers must be equal, line by line.
Token by token, with plain lists: slow and simple on purpose. Names follow vLLM's own.
"""
import json
import random
import subprocess
import sys

STEP_NS = 10_000_000


class Block:
    def __init__(self, number):
        self.number, self.ref_cnt, self.block_hash = number, 0, None


class Request:
    def __init__(self, number, line):
        self.number = number
        self.arrival, self.prompt, self.max_tokens, self.priority, self.block_tokens = line[:5]
        self.ids = line[5:]
        self.num_outputs = self.num_computed = self.num_preemptions = 0
        self.blocks, self.num_cached_blocks = [], 0
        self.preempted = False

    @property
    def num_tokens(self):
        return self.prompt + self.num_outputs

    def token(self, position):
        """What identifies the token at a position: the log's block and place in it, or itself."""
        if position < self.prompt and self.block_tokens:
            block = position // self.block_tokens
            if block < len(self.ids):
                return ("block", self.ids[block], position % self.block_tokens)
        return ("own", self.number, position)

    def block_hashes(self, size):
        hashes, last = [], None
        for i in range(self.num_tokens // size):
            last = hash((last, tuple(self.token(i * size + k) for k in range(size))))
            hashes.append(last)
        return hashes


class Pool:
    def __init__(self, config):
        self.size, self.caching = config["page_size"], config["cache"]
        self.append_all = config["compat"] == 2025 and self.caching
        self.num_blocks = config["pool"] + 1
        self.blocks = [Block(i) for i in range(self.num_blocks)]
        self.free = self.blocks[1:]  # block 0 is the null block
        self.cached = {}  # hash -> blocks, in order of caching

    def lookup(self, block_hash):
        found = self.cached.get(block_hash)
        return found[0] if found else None

    def touch(self, blocks):
        for block in blocks:
            if block.ref_cnt == 0:
                self.free.remove(block)
            block.ref_cnt += 1

    def pop(self):
        block = self.free.pop(0)
        assert block.ref_cnt == 0
        if block.block_hash is not None:
            self.cached[block.block_hash].remove(block)
            if not self.cached[block.block_hash]:
                del self.cached[block.block_hash]
            block.block_hash = None
        block.ref_cnt = 1
        return block

    def cache_full(self, request, num_tokens):
        if not self.caching:
            return
        hashes = request.block_hashes(self.size)
        for i in range(request.num_cached_blocks, num_tokens // self.size):
            block = request.blocks[i]
            block.block_hash = hashes[i]
            self.cached.setdefault(hashes[i], []).append(block)
        request.num_cached_blocks = max(request.num_cached_blocks, num_tokens // self.size)

    def release(self, request):
        freed = []
        for block in reversed(request.blocks):
            block.ref_cnt -= 1
            assert block.ref_cnt >= 0
            if block.ref_cnt == 0:
                freed.append(block)
        if self.append_all:
            self.free += freed
        else:  # without caching no block has a hash
            plain = [b for b in freed if b.block_hash is None]
            self.free = plain + self.free + [b for b in freed if b.block_hash is not None]
        request.blocks, request.num_cached_blocks = [], 0


class Scheduler:
    def __init__(self, config):
        self.c, self.pool = config, Pool(config)
        self.running, self.waiting = [], []

    def ceil_blocks(self, tokens):
        return -(-tokens // self.c["page_size"])

    def computed_blocks(self, request):
        if not self.pool.caching:
            return []
        hits = []
        hashes = request.block_hashes(self.c["page_size"])
        for i in range((request.num_tokens - 1) // self.c["page_size"]):
            block = self.pool.lookup(hashes[i])
            if block is None:
                break
            hits.append(block)
        return hits

    def allocate(self, request, n, hits, admitting, something_runs):
        size, free = self.c["page_size"], len(self.pool.free)
        known = request.num_computed + len(hits) * size
        need = self.ceil_blocks(known + n)
        new = need - len(request.blocks) - len(hits)
        evictable = sum(1 for b in hits if b.ref_cnt == 0)
        mark = 0
        if admitting and self.c["compat"] == 2026 and something_runs:
            mark = int(self.c["watermark"] * self.pool.num_blocks)
        if admitting and self.c["full_isl"]:
            if self.ceil_blocks(request.num_tokens) - len(hits) + evictable + mark > free:
                return None
        if max(new, 0) + evictable + mark > free:
            return None
        self.pool.touch(hits)
        request.blocks += hits
        if hits:
            request.num_cached_blocks = len(hits)
        fresh = [self.pool.pop() for _ in range(max(new, 0))]
        request.blocks += fresh
        self.pool.cache_full(request, min(known + n, request.num_tokens))
        return fresh

    def preempt(self, request):
        self.pool.release(request)
        request.num_computed, request.preempted = 0, True
        request.num_preemptions += 1
        if self.c["queue"] == "priority":
            self.add(request)
        else:
            self.waiting.insert(0, request)

    def add(self, request):
        self.waiting.append(request)
        if self.c["queue"] == "priority":
            self.waiting.sort(key=lambda r: (r.priority, r.arrival, r.number))

    def limit(self, n):
        return min(n, self.c["long_threshold"]) if self.c["long_threshold"] > 0 else n

    def schedule(self):
        budget, sched, preempted = self.c["budget"], {}, []
        i = 0
        while i < len(self.running) and budget > 0:
            r = self.running[i]
            n = min(self.limit(r.num_tokens - r.num_computed), budget)
            assert n > 0
            while True:
                fresh = self.allocate(r, n, [], False, True)
                if fresh is not None:
                    break
                if self.c["queue"] == "priority":
                    # wall-clock arrivals are never equal; ours may be: the later one
                    victim = max(self.running, key=lambda v: (v.priority, v.arrival, v.number))
                    self.running.remove(victim)
                    if victim in sched:
                        budget += sched.pop(victim)[0]
                        i -= 1
                else:
                    victim = self.running.pop()
                self.preempt(victim)
                preempted.append(victim)
                if victim is r:
                    break
            if fresh is None:
                break
            sched[r] = (n, r.num_computed, fresh, 0)
            budget -= n
            i += 1
        if not preempted:
            self.admit(sched, budget)
        for r, entry in sched.items():
            r.num_computed += entry[0]
        return sched, preempted

    def admit(self, sched, budget):
        while self.waiting and budget > 0 and len(self.running) < self.c["seqs"]:
            r = self.waiting[0]
            hits = self.computed_blocks(r) if r.num_computed == 0 else []
            known = r.num_computed + len(hits) * self.c["page_size"]
            n = self.limit(r.num_tokens - known)
            if not self.c["chunked"] and n > budget:
                break
            n = min(n, budget)
            fresh = self.allocate(r, n, hits, True, bool(self.running))
            if fresh is None:
                break
            self.waiting.pop(0)
            self.running.append(r)
            sched[r] = (n, known, fresh, len(hits))
            budget -= n
            r.num_computed = known

    def update(self, sched):
        finished = []
        for r in sched:
            if r.num_computed < r.num_tokens:
                continue
            r.num_outputs += 1
            if r.num_outputs >= r.max_tokens:
                self.pool.release(r)
                finished.append(r)
        self.running = [r for r in self.running if r not in finished]
        return finished


def servable(config, request):
    stored = request.prompt + request.max_tokens - 1
    if -(-stored // config["page_size"]) > config["pool"]:
        return False
    return config["chunked"] or stored <= config["budget"]


def oracle(config, lines):
    scheduler, out, now = Scheduler(config), [], 0
    coming = [Request(i, line) for i, line in enumerate(lines)]
    while True:
        while coming and coming[0].arrival <= now:
            request = coming.pop(0)
            if servable(config, request):
                scheduler.add(request)
        if not scheduler.running and not scheduler.waiting:
            if not coming:
                return out
            now = coming[0].arrival
            continue
        sched, preempted = scheduler.schedule()
        finished = scheduler.update(sched)
        out.append({
            "step": len(out),
            "sched": [[r.number, n, before, [b.number for b in fresh], hits]
                      for r, (n, before, fresh, hits) in sched.items()],
            "preempted": [r.number for r in preempted],
            "finished": [r.number for r in finished],
            "free": len(scheduler.pool.free),
            "free_head": [b.number for b in scheduler.pool.free[:8]],
            "waiting": [r.number for r in scheduler.waiting],
        })
        if sched:  # a step in which the first row gave way itself takes no time
            now += STEP_NS


def random_config(rng):
    config = {
        "compat": rng.choice([2025, 2026]),
        "page_size": rng.choice([1, 2, 4, 8, 16]),
        "budget": rng.choice([3, 8, 17, 64, 200, 2048]),
        "seqs": rng.choice([1, 2, 4, 9, 64]),
        "chunked": rng.random() < 0.85,
        "long_threshold": rng.choice([0, 0, 0, 5, 16]),
        "watermark": rng.choice([0, 0, 0.05, 0.3]),
        "queue": rng.choice(["fcfs", "fcfs", "priority"]),
        "cache": rng.random() < 0.7,
    }
    full = rng.choice(["auto", "yes", "no"])
    config["full_isl_text"] = full
    config["full_isl"] = config["compat"] == 2026 if full == "auto" else full == "yes"
    return config


def random_lines(rng, config):
    longest, now, lines = rng.choice([6, 30, 90]), 0, []
    size = config["page_size"]
    for i in range(rng.randrange(1, 45)):
        now += rng.choice([0, 0, rng.randrange(0, 12 * STEP_NS)])
        prompt, output = rng.randrange(1, longest + 1), rng.randrange(1, longest + 1)
        if rng.random() < 0.3:
            prompt = max(1, prompt // size * size + rng.choice([-1, 0, 0, 1]))
        block_tokens = rng.choice([size, size, 2 * size, max(1, size // 2)])
        blocks = []
        if rng.random() < 0.8:
            n = prompt // block_tokens + rng.choice([0, 1]) * (prompt % block_tokens > 0)
            shared = rng.randrange(0, n + 1)
            family = rng.randrange(0, 3)
            blocks = [100 * family + k if k < shared else 10000 + 1000 * i + k for k in range(n)]
        lines.append([now, prompt, output, rng.randrange(0, 3), block_tokens if blocks else 0]
                     + blocks)
    most = max(l[1] + l[2] for l in lines)
    config["pool"] = max(1, most // size + rng.randrange(-1, 20))
    return lines


def ours(program, config, lines):
    yes = {True: "yes", False: "no"}
    text = (f"vllm-v1:compat={config['compat']},budget={config['budget']},seqs={config['seqs']},"
            f"chunked={yes[config['chunked']]},long_threshold={config['long_threshold']},"
            f"full_isl={config['full_isl_text']},watermark={config['watermark']},"
            f"cache={yes[config['cache']]},queue={config['queue']}\n"
            f"{config['page_size']} {config['pool']}\n")
    text += "".join(" ".join(map(str, line)) + "\n" for line in lines)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=False,
                          timeout=60)
    if done.returncode != 0:
        sys.exit(f"{program} failed: {done.stderr}\n{text}")
    return text, [json.loads(line) for line in done.stdout.splitlines()]


def main():
    program, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 300
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    steps = preemptions = hits = 0
    print(f"1..1\n# seed {seed}")
    for run in range(runs):
        rng = random.Random(seed * 100003 + run)
        config = random_config(rng)
        lines = random_lines(rng, config)
        text, got = ours(program, config, lines)
        want = oracle(config, lines)
        for a, b in zip(got + [None] * len(want), want + [None] * (len(got) - len(want))):
            if a != b:
                print(f"# run {run}\n# " + text.replace("\n", "\n# "))
                print(f"# ours   {json.dumps(a)}\n# oracle {json.dumps(b)}")
                print("not ok 1 - ledgers differ")
                return 1
        steps += len(want)
        preemptions += sum(len(w["preempted"]) for w in want)
        hits += sum(e[4] for w in want for e in w["sched"])
    print(f"# {runs} scenarios, {steps} steps, {preemptions} preemptions, {hits} blocks hit")
    print("ok 1 - ledgers are equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
