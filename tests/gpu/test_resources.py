#!/usr/bin/env python3
"""The compiler's resource report of the kernels: python3 test_resources.py BUILD_FOLDER

Every instance must run on sm_86: no local memory (spills, stack), registers of its largest CTA within 64 K, no
static shared memory beyond what the block limit leaves. Read from the objects of the build by cuobjdump (with some
toolkits, or the package nvidia-cuda-cuobjdump); where there is none, nvcc compiles each unit once more for sm_86 with the
build's own options and ptxas reports (-Xptxas -v), some seconds a unit. Exit status 77 (skipped) without nvcc.
"""
import concurrent.futures
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

WARPS = {64: 12, 128: 8, 256: 8}  # largest CTA that attn_cuda.cu may choose, by head dimension
REGISTERS = 65536
SHARED = 1024  # static bytes; the rings are dynamic
BARE = {"-c", "-MD", "-M", "-MMD", "-rdc=true"}  # options of the build that a report does not want
PAIRS = {"-o", "-MF", "-MQ", "-MT", "-gencode", "-arch", "-Xptxas"}


def find(tool):
    return shutil.which(tool) or shutil.which("/usr/local/cuda/bin/" + tool)


def of_object(tool, thing):
    """(arch, function, {"REG": .., "STACK": .., "LOCAL": .., "SHARED": ..}) of a compiled unit."""
    text = subprocess.run([tool, "--dump-resource-usage", thing], capture_output=True, text=True, check=True).stdout
    arch = "?"
    for line in text.splitlines():
        found = re.search(r"arch\s*=\s*(sm_\d+)", line)
        arch = found.group(1) if found else arch
        found = re.search(r"Function (\S+):", line)
        name = found.group(1) if found else None
        if name:
            current = name
        if "REG:" in line:
            yield arch, current, {k: int(v) for k, v in re.findall(r"([A-Z]+):(\d+)", line)}


def report_command(command, out):
    """The build's command for a unit, as one that makes an sm_86 cubin and reports."""
    keep, skip = [], False
    for word in command:
        if skip or word in BARE or word.startswith(("-gencode=", "-arch=", "--generate-code")):
            skip = False
        elif word in PAIRS:
            skip = True
        else:
            keep.append(word)
    return keep + ["-cubin", "-arch=sm_86", "-Xptxas", "-v", "-o", out]


def of_source(entry, folder):
    command = entry.get("arguments") or shlex.split(entry["command"])
    out = os.path.join(folder, os.path.basename(entry["file"]) + ".cubin")
    done = subprocess.run(report_command(command, out), cwd=entry["directory"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return list(of_ptxas(done.stderr + done.stdout))


def of_ptxas(text):
    current, use = None, {}
    for line in text.splitlines():
        found = re.search(r"Compiling entry function '(\S+)'", line)
        if found:
            current, use = found.group(1), {}
        found = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)
        if found:
            use["STACK"], use["LOCAL"] = int(found.group(1)), int(found.group(2)) + int(found.group(3))
        found = re.search(r"Used (\d+) registers", line)
        if found and current:
            use["REG"] = int(found.group(1))
            shared = re.search(r"(\d+) bytes smem", line)
            use["SHARED"] = int(shared.group(1)) if shared else 0
            yield "sm_86", current, use
            current = None


def reports(build):
    tool = find("cuobjdump")
    if tool:
        for thing in sorted(glob.glob(build + "/kernels/libattn_stream_*.a.p/*.o")):
            yield from of_object(tool, thing)
        return
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        units = {e["file"]: e for e in json.load(f) if re.search(r"attn_stream_\w+\.cu$", e["file"])}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for unit in pool.map(lambda e: of_source(e, folder), [units[k] for k in sorted(units)]):
            yield from unit


def main():
    if not find("cuobjdump") and not find("nvcc"):
        print("neither cuobjdump nor nvcc is here: skipped")
        return 77
    seen = wrong = 0
    for arch, name, use in reports(sys.argv[1]):
        shape = re.search(r"attn_stream.*Li(\d+)ELi(\d+)E", name)
        if not shape:
            continue
        d, tiles = int(shape.group(1)), int(shape.group(2))
        half = "bf16" if "bfloat" in name else "fp16"
        registers = (use["REG"] + 7) // 8 * 8 * 32 * WARPS[d]
        bad = use.get("LOCAL", 0) > 0 or use.get("STACK", 0) > 0 or registers > REGISTERS or use.get("SHARED", 0) > SHARED
        print(f"{'not ok' if bad else 'ok'} {arch} d {d} {half} heads up to {8 * tiles}: {use['REG']} registers, "
              f"stack {use.get('STACK', 0)}, local {use.get('LOCAL', 0)}, shared {use.get('SHARED', 0)}")
        seen += 1
        wrong += bad
    print(f"{seen} instances, {wrong} beyond the limits of sm_86")
    return 1 if wrong or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
