#!/usr/bin/env python3
"""Makes a plausible run folder for the tests of plots/: fixture.py FOLDER STEPS EXECUTE_EVERY

Not a simulation: lengths, batch sizes and times are drawn so that every picture has something to
show (queues that build up, an idle stretch, several chosen routes, measured times on some steps).
The same arguments give the same bytes.
"""
import json
import os
import random
import sys

H_KV, H_Q, D = 8, 32, 128
ROUTES = ["single", "buckets", "masked", "workqueue", "workqueue-fused"]
REPLAY = ("step,start_ns,duration_ns,rows,prefill_tokens,max_len,sum_len,waiting,pages_used,route,"
          "chosen,launches,merge_launches,copies,memsets,tasks,nonempty_fraction,kv_bytes,"
          "kv_bytes_touched,merge_state_bytes,merge_traffic_bytes,plan_us,upload_bytes,kernel_us,"
          "wall_us,repeats,max_abs_err,mean_abs_err")
REQUESTS = ("request_id,session_id,turn,class,replica,arrival_ns,sent_ns,first_scheduled_ns,"
            "first_token_ns,finish_ns,prompt_tokens,output_tokens,cached_tokens,recomputed_tokens,"
            "preemptions,status,reason")


def counts(route, lens):
    rows, most = len(lens), max(lens)
    splits = [max(1, min(16, n // 512)) for n in lens]
    if route == "single":
        return 1, 0, rows * H_KV, 1.0, 0
    if route == "buckets":
        distinct = len(set(lens))
        return 2 * distinct, distinct, sum(splits) * H_KV, 1.0, sum(splits)
    slots = sum(s for s in splits if s > 1)
    tasks = sum(splits) * H_KV
    fraction = tasks / (rows * H_KV * max(splits))
    if route == "masked":
        return 2, 1, tasks, fraction, rows * max(splits)
    return (1, 0, tasks, fraction, slots) if "fused" in route else (2, 1, tasks, fraction, slots)


def step_lines(rng, out, step, start, duration, lens, prefill, waiting, pages, executed):
    kv = 2 * sum(lens) * H_KV * D * 2
    lines, times = [], {}
    for route in ROUTES:
        if not lens:
            lines.append([route, "", 0, 0, 0, 0, 0, "", 0, 0, 0, 0, "", "", "", "", "", "", ""])
            continue
        launches, merges, tasks, fraction, slots = counts(route, lens)
        state = slots * H_Q * (2 + D) * 4
        touched = kv if route != "masked" else int(kv / max(fraction, 0.05))
        plan = 2 + 0.02 * tasks
        fill = min(1.0, tasks / 300)
        kernel = (kv / 330e9 / fill + 3e-6 * launches + 2 * state / 330e9) * 1e6
        kernel *= rng.uniform(0.97, 1.06)
        wall = kernel + plan + rng.uniform(8, 14)
        times[route] = kernel
        lines.append([route, "", launches, merges, 1, 0, tasks, f"{fraction:.6f}", kv, touched,
                      state, 2 * state, f"{plan:.3f}" if executed else "", tasks * 20,
                      f"{kernel:.3f}" if executed else "", f"{wall:.3f}" if executed else "",
                      5 if executed else "", "0.000213" if executed else "",
                      "0.0000171" if executed else ""])
    chosen = None
    if lens:
        chosen = "workqueue-fused" if len(lens) < 6 else "workqueue"
        if max(lens) < 300:
            chosen = "single"
    for line in lines:
        line[1] = int(line[0] == chosen)
        head = [step, start, duration, len(lens), prefill, max(lens, default=0), sum(lens), waiting,
                pages]
        out.write(",".join(str(v) for v in head + line) + "\n")


def main():
    folder, steps, every = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(7)
    os.makedirs(folder, exist_ok=True)
    now, waiting, live, next_id, finished = 0, [], [], 0, []
    next_arrival = 0.0
    with open(os.path.join(folder, "replay.csv"), "w") as out:
        out.write(REPLAY + "\n")
        for step in range(steps):
            if step == steps // 3:
                now += int(min(2e9, 1.5e7 * steps))  # an idle stretch
            while next_arrival <= now:
                burst = 1 + int(rng.random() < 0.3)
                for _ in range(burst):
                    waiting.append({"id": next_id, "arrival": int(next_arrival), "turn": 0,
                                    "prompt": min(16000, max(8, int(rng.lognormvariate(6.5, 1)))),
                                    "output": max(1, int(rng.lognormvariate(3.2, 1)))})
                    next_id += 1
                calm = 0.05 if step % (steps // 2 + 1) < steps // 3 else 0.15
                next_arrival += rng.expovariate(1) * 1e9 * calm
            prefill = 0
            while waiting and sum(r["len"] for r in live) + waiting[0]["prompt"] < 38000 and \
                    len(live) < 40 and prefill < 1500:
                r = waiting.pop(0)
                r["first_scheduled"] = now
                r["len"], r["left"] = r["prompt"], r["output"] - 1
                prefill += r["prompt"]
                r["new"] = True
                live.append(r)
            rows = [r for r in live if not r["new"]]
            for r in rows:
                r["len"] += 1
            lens = [r["len"] for r in rows]
            duration = int(16e6 + prefill * 0.4e5 + 60e3 * len(lens) + 436 * sum(lens))
            pages = sum(-(-r["len"] // 16) for r in live)
            step_lines(rng, out, step, now, duration, lens, prefill, len(waiting), pages,
                       step % every == 0)
            now += duration
            for r in rows:
                r["left"] -= 1
            for r in live:
                if r["new"]:
                    r["first_token"] = now
                    r["new"] = False
            done = [r for r in live if r["left"] <= 0]
            for r in done:
                r["finish"] = now
            finished += done
            live = [r for r in live if r["left"] > 0]
    with open(os.path.join(folder, "requests.csv"), "w") as out:
        out.write(REQUESTS + "\n")
        out.write(f"{next_id},,,,0,0,0,,,,90000,5,0,0,0,refused,pool\n")
        for r in sorted(finished, key=lambda r: r["id"]):
            session = r["id"] // 3
            out.write(f"{r['id']},{session},{r['id'] % 3},chat,0,{r['arrival']},{r['arrival']},"
                      f"{r['first_scheduled']},{r['first_token']},{r['finish']},{r['prompt']},"
                      f"{r['output']},0,0,{int(r['id'] % 17 == 0)},finished,\n")
    summary = {
        "kvreplay": {"version": "0.1.0", "commit": "0123abc"},
        "workload": {"name": "fixture <b>&amp;</b>", "requests": next_id, "sha256": None},
        "simulate": {"requests": len(finished) + 1, "finished": len(finished),
                     "refused": {"pool": 1}, "steps": steps, "pool_pages": 2560,
                     "row_steps": 1000, "prompt_tokens": 40000, "output_tokens": 1200,
                     "recomputed_tokens": 0,
                     "preemptions": 3, "duration_s": now / 1e9, "pages_peak": 2410, "pages_end": 0,
                     "itl": {"mean": 0.031, "p50": 0.028, "p90": 0.041, "p95": 0.05, "p99": 0.071,
                             "max": 0.2},
                     "tpot": {"mean": 0.03, "p50": 0.03, "p90": 0.04, "p95": 0.05, "p99": 0.07,
                              "max": 0.1},
                     "e2e": {"mean": 2.0, "p50": 1.8, "p90": 3.9, "p95": 4.4, "p99": 5.1, "max": 6.2},
                     "queue_delay": {"mean": 0.5, "p50": 0.2, "p90": 1.5, "p95": 2, "p99": 2.7,
                                     "max": 3.9},
                     "ttft": {"mean": 0.9, "p50": 0.5, "p90": 1.9, "p95": 2.4, "p99": 3.1,
                              "max": 4.2}},
        "replay": {"backend": "cpu", "device": {"name": "fixture CPU", "threads": 2,
                                                "read_gbps": 345.0},
                   "routes": {r: {"launches_per_step": 2.0, "kernel_us_mean": 250.5,
                                  "executed_steps": steps // every} for r in ROUTES},
                   "policy": {"name": "cost", "shares": {"workqueue": 0.7, "workqueue-fused": 0.3},
                              "regret": {"steps": steps // every,
                                         "mean": {"value": 0.021, "low95": 0.015, "high95": 0.03}}}},
    }
    with open(os.path.join(folder, "summary.json"), "w") as out:
        json.dump(summary, out, indent=2)
        out.write("\n")
    with open(os.path.join(folder, "scenario.ini"), "w") as out:
        out.write("[workload]\nworkload=fixture.csv\nseed=1\n[model]\nmodel=llama-3.1-8b\n"
                  "[engine]\npool-pages=2560\npage-size=16\n[replay]\npolicy=cost\n")


main()
