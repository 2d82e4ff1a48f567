#!/usr/bin/env python3
"""The compiler's resource report of the kernels: python3 test_resources.py BUILD_FOLDER

Every instance must run on sm_86: no local memory (spills, stack), registers of its largest CTA within 64 K, no
static shared memory beyond what the block limit leaves. Needs cuobjdump (with the CUDA toolkit, or the
package nvidia-cuda-cuobjdump); exit status 77 (skipped) where there is none.
"""
import glob
import re
import shutil
import subprocess
import sys

WARPS = {64: 8, 128: 8, 256: 8}  # largest CTA that attn_cuda.cu may choose, by head dimension
REGISTERS = 65536


def report(tool, thing):
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


def main():
    tool = shutil.which("cuobjdump") or shutil.which("/usr/local/cuda/bin/cuobjdump")
    if not tool:
        print("cuobjdump is not here: skipped")
        return 77
    seen = wrong = 0
    for thing in sorted(glob.glob(sys.argv[1] + "/kernels/libattn_stream_*.a.p/*.o")):
        for arch, name, use in report(tool, thing):
            shape = re.search(r"attn_stream.*Li(\d+)ELi(\d+)E", name)
            if not shape:
                continue
            d, tiles = int(shape.group(1)), int(shape.group(2))
            half = "bf16" if "bfloat" in name else "fp16"
            registers = (use["REG"] + 7) // 8 * 8 * 32 * WARPS[d]
            bad = use.get("LOCAL", 0) > 0 or use.get("STACK", 0) > 0 or registers > REGISTERS
            print(f"{'not ok' if bad else 'ok'} {arch} d {d} {half} heads up to {8 * tiles}: {use['REG']} registers, "
                  f"stack {use.get('STACK', 0)}, local {use.get('LOCAL', 0)}")
            seen += 1
            wrong += bad
    print(f"{seen} instances, {wrong} beyond the limits of sm_86")
    return 1 if wrong or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
