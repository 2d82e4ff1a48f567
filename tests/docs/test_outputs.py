"""docs/outputs.md names every column of the files that the program writes now, each once, and none that is not there.

usage: test_outputs.py KVREPLAY SOURCE-ROOT
"""
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile

KVREPLAY, ROOT = os.path.abspath(sys.argv[1]), sys.argv[2]
COLUMN = re.compile(r"`([a-z0-9_]+)`")


def section(name):
    """The text under the heading that begins with NAME."""
    with open(os.path.join(ROOT, "docs", "outputs.md"), encoding="utf-8") as page:
        parts = re.split(r"^## ", page.read(), flags=re.MULTILINE)
    return next(p for p in parts if name in p.splitlines()[0])


def documented(name, header):
    """Columns of the table's rows, in their order; `a` .. `b` is all of the header's between them."""
    found = []
    for line in section(name).splitlines():
        if not line.startswith("| `"):
            continue
        for part in line.split("|")[1].split(","):
            names = COLUMN.findall(part)
            if " .. " in part and all(n in header for n in names):
                names = header[header.index(names[0]):header.index(names[1]) + 1]
            found += names
    return found


def run(*words):
    done = subprocess.run([KVREPLAY, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "gnuplot is not installed" in done.stderr, done.stderr


def header_of(path):
    with open(path, newline="", encoding="utf-8") as f:
        return next(csv.reader(f))


def check(name, path, beside=""):
    """`beside`: text that names columns outside of the table. Faults as lines."""
    header = header_of(path)
    listed = documented(name, header)
    also = COLUMN.findall(beside)
    return (["%s: column %s is not documented" % (name, c) for c in header if c not in listed and c not in also] +
            ["%s: %s is documented, and no such column is there" % (name, c) for c in listed if c not in header] +
            ["%s: %s is documented twice" % (name, c) for c in sorted(set(listed)) if listed.count(c) > 1] +
            ["%s: order differs: %s" % (name, " ".join(listed))
             for in_order in [[c for c in header if c in listed]] if in_order != listed and not beside])


def cases():
    run("run", "--arrivals", "poisson:rate=5", "--lengths", "fixed:prompt=40,output=8", "--requests", "6", "--backend", "cpu", "--execute",
        "2", "--out", "o", "--no-plots", "--no-report", "-q")
    yield "requests.csv", lambda: check("requests.csv", "o/requests.csv")
    yield "replay.csv", lambda: check("replay.csv", "o/replay.csv")
    run("bench", "--backend", "cpu", "--cells", "len=64;rows=1;dim=64", "--rounds", "1", "--csv", "bench.csv", "-q")
    lead = section("sweep.csv, bench.csv").split("| column")[0]
    names = "`route` `q_heads` `kv_heads` `head_dim` `page_size` `dtype` `layout` `seed` `kv_bytes` `launches` `merge_state_bytes` " \
            "`upload_bytes` `repeats`"  # "as above", in replay.csv and the scenario
    yield "bench.csv", lambda: check("sweep.csv, bench.csv", "bench.csv", lead + names)
    run("paper", "--out", "p", "--runtime", "layer", "--quick", "--quiet")
    yield "layer.csv", lambda: check("layer.csv", "p/layer.csv")

    def files():
        with open(os.path.join(ROOT, "docs", "outputs.md"), encoding="utf-8") as page:
            told = set(re.findall(r"`([a-z]+\.[a-z]+)`", page.read().split("## ")[0]))
        return ["file %s is not told" % n for n in sorted(os.listdir("o")) if n not in told]
    yield "files", files


def main():
    folder = tempfile.mkdtemp(prefix="kvreplay-test-")
    os.chdir(folder)
    failed = 0
    print("1..5")
    for number, (name, faults_of) in enumerate(cases(), 1):
        faults = faults_of()
        failed += bool(faults)
        print("%s %d %s" % ("not ok" if faults else "ok", number, name))
        for fault in faults:
            print("# " + fault)
    os.chdir("/")
    shutil.rmtree(folder, ignore_errors=True)
    return failed > 0


sys.exit(main())
