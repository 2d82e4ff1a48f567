"""tools/measure-policy, all parts on a CPU in a folder made by tools/bundle; then judged again elsewhere, to the same bytes."""
import os
import shutil
import subprocess
import sys
import tempfile

TOOLS, KVREPLAY = os.path.join(os.path.abspath(sys.argv[1]), "tools"), os.path.abspath(sys.argv[2])
JUDGED = ("policy.txt", "judged.txt", "judged.csv", "published.md", "walls.txt", "regions.csv", "profile-replay.json", "profile-bench.json")


def main(work):
    bundle, out, again = (os.path.join(work, name) for name in ("bundle", "out", "again"))
    subprocess.run([os.path.join(TOOLS, "bundle"), "--build", os.path.dirname(KVREPLAY), bundle], check=True)
    subprocess.run([os.path.join(bundle, "measure-policy"), "--backend", "cpu", "--quick", "--out", out], check=True, cwd="/")
    lines = open(os.path.join(out, "parts.csv")).read().splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [[p, "done"] for p in ("bench", "calibrate", "traces", "logs", "peers", "paper", "judge")], lines
    for name in JUDGED + ("grid.csv.gz", "rep-peers.json", "rep-azure.json", "cal-mooncake.csv.gz", "paper/main.csv", "paper/report.html"):
        assert os.path.getsize(os.path.join(out, name)) > 0, name
    odd = [f for f in os.listdir(out) if f.endswith((".part", ".kvsteps", ".csv")) and f not in ("parts.csv",) + JUDGED]
    assert not odd and not os.path.exists(os.path.join(out, "profile.json")), odd
    shutil.copytree(out, again)
    for name in JUDGED:
        os.unlink(os.path.join(again, name))
    subprocess.run([os.path.join(TOOLS, "judge-policy"), "--build", os.path.dirname(KVREPLAY), again], check=True, stdout=subprocess.DEVNULL)
    for name in JUDGED:
        with open(os.path.join(out, name), "rb") as a, open(os.path.join(again, name), "rb") as b:
            assert a.read() == b.read(), name


with tempfile.TemporaryDirectory(prefix="kvreplay tools ") as folder:
    main(folder)
