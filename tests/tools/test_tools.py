"""The scripts under tools/ with odd words, odd folders and no GPU: one line that says so, the right exit status, nothing lost."""
import csv
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

TOOLS, KVREPLAY = os.path.join(os.path.abspath(sys.argv[1]), "tools"), os.path.abspath(sys.argv[2])
CASES = []


def case(function):
    CASES.append(function)
    return function


def tool(name, *args, path=None, cwd=None):
    env = dict(os.environ, LC_ALL="C.UTF-8")
    if path is not None:
        env["PATH"] = path
    done = subprocess.run([os.path.join(TOOLS, name), *args], capture_output=True, text=True, env=env, cwd=cwd, check=False)
    return done.returncode, done.stdout, done.stderr


def refused(status, needle, name, *args, **kw):
    got, _, err = tool(name, *args, **kw)
    assert got == status, (name, args, got, err)
    assert needle in err, (needle, err)
    for bad in ("unbound variable", "Traceback", "command not found", ": line "):
        assert bad not in err, err


def script(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


# A lab: says its first word, and writes its tables. Instead of "true" it may do something before.
LAB = """true
echo "lab $1"
while [ $# -gt 0 ]; do case $1 in --csv | --skew) echo "$1" >"$2"; esac; shift; done
"""


def read(folder, name):
    with open(os.path.join(folder, name)) as f:
        return f.read()


def parts(out):
    return {r["part"]: r["outcome"] for r in csv.DictReader(open(os.path.join(out, "parts.csv")))}


def running(words):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                if f.read().replace(b"\0", b" ").strip() == words.encode():
                    return True
        except OSError:
            pass
    return False


def without_smi():
    """The PATH less the folders that have an nvidia-smi."""
    return os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if not os.path.exists(os.path.join(p, "nvidia-smi")))


def stand_in(folder, lab):
    """A build folder whose lab is a script, and a PATH with an nvidia-smi that is one."""
    build = os.path.join(folder, "a build")
    script(os.path.join(build, "tests", "gpu", "attn-lab"), lab)
    script(os.path.join(build, "kvreplay"), 'exec "%s" "$@"\n' % KVREPLAY)
    script(os.path.join(folder, "bin", "nvidia-smi"), "echo 999.1\n")
    return build, os.path.join(folder, "bin") + os.pathsep + os.environ["PATH"]


@case
def measure_gpu_words(folder):
    build, path = stand_in(folder, "true\n")
    for words in (["--only"], ["--out"], ["--build"], ["--sms"], ["--bogus"], ["word"], ["--sms", "x"]):
        refused(2, "usage: measure-gpu", "measure-gpu", *words, path=path)
    refused(2, "--only foo: expected some of correct", "measure-gpu", "--build", build, "--only", "correct,foo", path=path)
    refused(1, "attn-lab is not there", "measure-gpu", "--build", os.path.join(folder, "none"), path=path)
    assert not os.path.exists(os.path.join(folder, "gpu-results"))


@case
def measure_gpu_without_a_gpu(folder):
    build, _ = stand_in(folder, "true\n")
    refused(1, "no nvidia-smi here", "measure-gpu", "--build", build, "--out", os.path.join(folder, "o"), path=without_smi())
    assert not os.path.exists(os.path.join(folder, "o"))
    build, path = stand_in(folder, "exit 77\n")
    refused(1, "CUDA finds no GPU, though nvidia-smi does", "measure-gpu", "--build", build, "--out", os.path.join(folder, "o"), path=path)


@case
def measure_gpu_writes_whole_files(folder):
    build, path = stand_in(folder, LAB)
    out = os.path.join(folder, "out of it")
    status, _, err = tool("measure-gpu", "--build", build, "--out", out, "--only", "correct,stress,speed", path=path)
    assert status == 0, err
    assert sorted(os.listdir(out)) == ["correct.txt", "machine.txt", "parts.csv", "skew.csv", "speed.csv", "speed.txt", "stress.txt"], os.listdir(out)
    assert read(out, "stress.txt") == "lab stress\n"
    build, path = stand_in(folder, 'echo half; exit 3\n')
    status, text, err = tool("measure-gpu", "--build", build, "--out", out, "--only", "stress", path=path)
    assert status == 1 and read(out, "stress.txt") == "lab stress\n" and read(out, "stress.txt.part") == "half\n", (status, err)
    assert "not whole: stress\n" in text and "stress       failed (3)" in text and "stress.txt.part" in text, text


@case
def measure_gpu_stops_what_hangs(folder):
    build, path = stand_in(folder, LAB.replace("true", 'case $1 in stress) echo half; sleep 99; esac'))
    out = os.path.join(folder, "out")
    words = ("measure-gpu", "--build", build, "--out", out, "--only", "correct,speed,stress,sms", "--limit", "1")
    status, text, err = tool(*words, path=path)
    assert status == 1 and "stress       stopped" in text and "not whole: stress\n" in text, (status, text, err)
    assert parts(out) == {"correct": "done", "speed": "done", "sms": "done", "stress": "stopped"}, parts(out)
    assert not running("sleep 99"), "what was stopped still runs"
    # Again: what is done is not done again; what was stopped is.
    script(os.path.join(build, "tests", "gpu", "attn-lab"), LAB.replace("true", 'case $1 in time) exit 9; esac'))
    status, text, err = tool(*words, "--resume", path=path)
    assert status == 0 and "speed        earlier" in text, (status, text, err)
    assert parts(out) == {"correct": "done", "speed": "done", "sms": "done", "stress": "done"}, parts(out)
    assert not [f for f in os.listdir(out) if f.endswith(".part") or f.startswith(".")], os.listdir(out)


@case
def measure_gpu_odd_numbers(folder):
    build, path = stand_in(folder, LAB)
    out = os.path.join(folder, "it's \"odd\" $x [a]*")
    for words in (["--only", ","], ["--only", "*"], ["--limit", "99999999999999"], ["--part", "foo"], ["--sms", "1234567"]):
        refused(2, words[0], "measure-gpu", "--build", build, "--out", out, *words, path=path, cwd=folder)
    assert tool("measure-gpu", "--build", build, "--out", out, "--only", "sms,stress", "--limit", "08", "--sms", "08", path=path)[0] == 0
    assert sorted(os.listdir(out)) == ["machine.txt", "parts.csv", "speed-8sms.csv", "speed-8sms.txt", "stress.txt"], os.listdir(out)
    # Another number of SMs is not what was done; another GPU's results are not this one's.
    words = ("measure-gpu", "--build", build, "--out", out, "--only", "sms,stress", "--resume")
    status, text, _ = tool(*words, "--sms", "9", path=path)
    assert status == 0 and "stress       earlier" in text and "sms          done" in text, text
    script(os.path.join(folder, "bin", "nvidia-smi"), "case $1 in *name*) echo 'another, GPU';; *) echo 999.1; esac\n")
    status, text, _ = tool(*words, "--sms", "9", path=path)
    assert status == 0 and "earlier" not in text and ",another  GPU,999.1," in read(out, "parts.csv"), text
    assert tool("measure-gpu", "--build", build, "--out", "-dash", "--only", "stress", path=path, cwd=folder)[0] == 0
    assert os.path.exists(os.path.join(folder, "-dash", "stress.txt"))
    script(os.path.join(folder, "bin", "nvidia-smi"), "echo NVIDIA-SMI has failed because it could not talk to the driver; exit 9\n")
    refused(1, "nvidia-smi finds no GPU", "measure-gpu", "--build", build, "--out", os.path.join(folder, "o"), path=path)


@case
def measure_gpu_without_timeout(folder):
    build, path = stand_in(folder, LAB)
    few = os.path.join(folder, "few")
    os.mkdir(few)
    for name in ("bash", "sh", "dirname", "basename", "cat", "git", "realpath"):
        os.symlink(shutil.which(name), os.path.join(few, name))
    refused(1, "no timeout here", "measure-gpu", "--build", build, "--out", os.path.join(folder, "o"), path=os.path.join(folder, "bin") + os.pathsep + few)
    assert not os.path.exists(os.path.join(folder, "o"))


@case
def measure_gpu_interrupted(folder):
    """Ends what runs, keeps what was done; meanwhile the folder is nobody else's."""
    build, path = stand_in(folder, LAB.replace("true", 'case $1 in stress) echo half; sleep 98; esac'))
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        out = os.path.join(folder, str(status))
        words = [os.path.join(TOOLS, "measure-gpu"), "--build", build, "--out", out, "--only", "correct,stress"]
        p = subprocess.Popen(words, env=dict(os.environ, PATH=path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        at = os.path.join(out, "stress.txt.part")
        while not os.path.exists(at) or read(out, "stress.txt.part") == "":
            assert p.poll() is None, p.communicate()
            time.sleep(0.02)
        refused(1, "another measurement writes there", *["measure-gpu"] + words[1:], path=path)
        p.send_signal(number)
        _, err = p.communicate(timeout=30)
        assert p.returncode == status and "interrupted" in err, (p.returncode, err)
        assert not running("sleep 98"), "what was stopped still runs"
        assert sorted(os.listdir(out)) == ["correct.txt", "machine.txt", "parts.csv", "stress.txt.part"], os.listdir(out)
        assert parts(out) == {"correct": "done"}


@case
def measure_gpu_full_disk(folder):
    """A limit on the size of files in place of a full disk: nothing of the earlier run is lost, and one line says it."""
    build, path = stand_in(folder, LAB)
    out = os.path.join(folder, "out")
    words = ["measure-gpu", "--build", build, "--out", out, "--only", "correct,stress"]
    assert tool(*words, path=path)[0] == 0
    before = {name: read(out, name) for name in ("correct.txt", "stress.txt", "parts.csv")}

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    for limit, needle in ((0, "no file can be written there"), (len(before["parts.csv"]) - 9, "parts.csv could not be written")):
        done = subprocess.run([os.path.join(TOOLS, words[0])] + words[1:], capture_output=True, text=True, env=dict(os.environ, PATH=path), preexec_fn=limited, check=False)
        assert done.returncode == 1 and needle in done.stderr and done.stderr.count("\n") == 1, (done.returncode, done.stderr)
        assert {name: read(out, name) for name in before} == before
    assert tool(*words, path=path)[0] == 0


@case
def measure_gpu_keeps_to_its_time(folder):
    build, path = stand_in(folder, LAB.replace("true", "[ $# = 0 ] || sleep 99"))
    out = os.path.join(folder, "out")
    status, text, _ = tool("measure-gpu", "--build", build, "--out", out, "--only", "correct,speed", "--limit", "60", "--within", "2", path=path)
    assert status == 1 and parts(out) == {"correct": "stopped", "speed": "not begun"}, (status, text)


@case
def measure_gpu_leaves_out(folder):
    """No profiler, no sanitizer, no GPU with more SMs: said, and no failure."""
    build, path = stand_in(folder, LAB.replace("true", 'case "$*" in *--sms*) echo "GPU has 28 SMs"; exit 77; esac'))
    out = os.path.join(folder, "out")
    for tool_there in ("ncu", "compute-sanitizer"):
        if shutil.which(tool_there, path=path) or os.path.exists("/usr/local/cuda/bin/" + tool_there):
            return
    status, text, err = tool("measure-gpu", "--build", build, "--out", out, "--only", "profile,sms,sanitizer,plots", path=path)
    assert status == 0 and set(parts(out).values()) == {"left out"}, (status, text, err)
    for line in ("no ncu here", "GPU has 28 SMs", "no compute-sanitizer here", "no replay.csv"):
        assert line in text, text
    assert sorted(os.listdir(out)) == ["machine.txt", "parts.csv"], os.listdir(out)


def fake_ncu(folder, says, lacks="no such metric"):
    """Writes `says` (a file) where ncu would write its output, and runs the program; or, asked for metric `lacks`, complains."""
    path = os.path.join(folder, "ncu")
    script(path, 'case "$*" in *"%s"*) echo "==ERROR== Failed to find metric regex:^%s\\.(sum|min)$"; exit 1;; esac\n' % (lacks, lacks) +
                 'while [ $# -gt 0 ]; do case $1 in --log-file) log=$2; shift;; */kvreplay) break;; esac; shift; done\n'
                 'cp "%s" "$log"\nexec "$@"\n' % says)
    return path


@case
def measure_ncu(folder):
    sample = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ncu-raw.csv")  # made up, in ncu's format
    words = (KVREPLAY, folder, "--backend", "cpu", "--pairs", "len=64+rows=2=persistent,workqueue")
    status, text, err = tool("measure-ncu", *words, "--ncu", fake_ncu(folder, sample))
    assert status == 0, (status, text, err)
    rows = list(csv.DictReader(open(os.path.join(folder, "profile-ncu.csv"))))
    assert [(r["cell"], r["route"], r["kernel"]) for r in rows] == [
        ("64_B2", route, kernel) for route in ("persistent", "workqueue") for kernel in ("attn_stream", "attn_merge")], rows
    first = rows[0]
    assert first["commit"] and first["date"] and first["gpu"], first
    assert first["gpu__time_duration.sum"] == "72448" and first["dram__bytes_read.sum"] == "268911104"  # the first launch, thousands
    assert (first["grid"], first["block"], rows[1]["grid"]) == ("132", "256", "64"), first
    assert rows[1]["sm__warps_active.avg.pct_of_peak_sustained_active"] == ""  # n/a
    assert "persistent attn_stream 72.4 268.9 3712" in " ".join(text.split()), text
    assert "long_scoreboard 41 %, barrier 20 %, wait 10 %" in text, text
    assert text == read(folder, "profile-ncu.txt")
    status, text, err = tool("measure-ncu", KVREPLAY, folder, "--backend", "cpu", "--pairs", "len=64+rows=2=persistent;len=64+rows=1=flashinfer",
                             "--ncu", fake_ncu(folder, os.devnull))  # two that give nothing
    assert status == 1 and "flashinfer: a GPU kernel" in text and "2 of the pairs gave nothing" in err, (status, text, err)
    status, text, err = tool("measure-ncu", *words, "--ncu", fake_ncu(folder, sample, lacks="lts__t_sector_hit_rate"))
    assert status == 0 and text.count("ncu has no lts__t_sector_hit_rate here") == 1, (status, text, err)
    with open(os.path.join(folder, "scaled.csv"), "w") as f:  # where ncu does not keep to base units
        f.write(open(sample).read().replace('"ns"', '"usecond"').replace("72,448", "72.448"))
    status, scaled, _ = tool("measure-ncu", "--read", os.path.join(folder, "scaled.csv"))
    assert status == 0 and " 72.4 " in scaled, scaled


@case
def measure_ncu_refused(folder):
    words = ("measure-ncu", KVREPLAY, folder, "--backend", "cpu", "--pairs", "len=64+rows=2=persistent")
    status, text, err = tool(*words, "--ncu", os.path.join(folder, "none"))
    assert (status, err) == (77, "") and "no ncu here" in text, (status, text, err)
    log = os.path.join(folder, "log")
    for says, needle, expected in (("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", "may not read this GPU's counters", 77),
                                   ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded\n", "does not work on this machine", 77),
                                   ("==WARNING== No kernels were profiled.\n", "No kernels were profiled", 1)):
        with open(log, "w") as f:
            f.write(says)
        status, text, err = tool(*words, "--ncu", fake_ncu(folder, log))
        assert status == expected and needle in text and text.count("\n") == 1, (status, text, err)
        assert not os.path.exists(os.path.join(folder, "profile-ncu.csv"))


@case
def measure_ncu_odd(folder):
    sample = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ncu-raw.csv")
    out = os.path.join(folder, "it's \"o\" [x]")
    words = (KVREPLAY, out, "--backend", "cpu", "--pairs", "len=64+rows=2=persistent", "--ncu", fake_ncu(folder, sample))
    for bad in ([], ["a"], ["--pairs"], ["--bogus"], ["a", "b", "c"], [KVREPLAY, folder, "--pairs", "x"]):
        refused(2, "measure-ncu KVREPLAY OUT", "measure-ncu", *bad)
    refused(1, "no folder", "measure-ncu", *words)
    os.mkdir(out)
    refused(1, "no program", "measure-ncu", os.path.join(folder, "none"), out)
    refused(1, "No such file", "measure-ncu", "--read", os.path.join(folder, "none.csv"))
    for data in (b"", b"\xff\0\n\"ID\",\"Kernel Name\"\n", b'"ID"\n"0"\n', b'x\n"ID","Kernel Name","a"\n"","",""\n'):
        with open(os.path.join(folder, "damaged.csv"), "wb") as f:
            f.write(data)
        refused(1, "damaged.csv", "measure-ncu", "--read", os.path.join(folder, "damaged.csv"))
    with open(os.path.join(folder, "nan.csv"), "w") as f:
        f.write(open(sample).read().replace("72,448", "nan"))
    status, text, _ = tool("measure-ncu", "--read", os.path.join(folder, "nan.csv"))
    assert status == 0 and "nan" not in text, text
    assert tool("measure-ncu", *words)[0] == 0
    before = {name: read(out, name) for name in os.listdir(out)}

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
    done = subprocess.run([os.path.join(TOOLS, "measure-ncu"), *words], capture_output=True, text=True, preexec_fn=limited, check=False)
    assert done.returncode == 1 and "File too large" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert before == {name: read(out, name) for name in before}
    slow = os.path.join(folder, "slow")
    script(slow, "sleep 97\n")
    p = subprocess.Popen([os.path.join(TOOLS, "measure-ncu"), *words[:-1], slow], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         start_new_session=True)
    while not running("sleep 97"):
        assert p.poll() is None
        time.sleep(0.02)
    os.killpg(p.pid, signal.SIGINT)  # as a terminal does
    _, err = p.communicate(timeout=30)
    assert p.returncode == 130 and "Traceback" not in err, (p.returncode, err)
    assert not running("sleep 97"), "what was stopped still runs"
    assert before == {name: read(out, name) for name in before}


@case
def plot_results(folder):
    refused(2, "usage", "plot-results")
    refused(2, "usage", "plot-results", "--build")
    refused(2, "usage", "plot-results", folder)
    open(os.path.join(folder, "replay.csv"), "w").close()
    refused(1, "kvreplay is not there", "plot-results", "--build", os.path.join(folder, "none"), folder)
    if shutil.which("gnuplot") is None:
        return
    kept, out = os.path.join(os.path.dirname(TOOLS), "docs", "results", "h200"), os.path.join(folder, "it's [a] $x")
    os.mkdir(out)
    shutil.copy(os.path.join(kept, "replay.json"), out)
    with open(os.path.join(kept, "replay.csv")) as f, open(os.path.join(out, "replay.csv"), "w") as g:
        g.writelines(f.readlines()[:200])
    words = ("plot-results", "--build", os.path.dirname(KVREPLAY), out)
    assert tool(*words)[0] == 0
    before = sorted(os.listdir(os.path.join(out, "replay")))
    assert before and sorted(os.listdir(out)) == ["replay", "replay.csv", "replay.json"], os.listdir(out)

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
    done = subprocess.run([os.path.join(TOOLS, words[0]), *words[1:]], capture_output=True, text=True, preexec_fn=limited, check=False)
    assert done.returncode == 1 and sorted(os.listdir(os.path.join(out, "replay"))) == before, (done.returncode, done.stderr)
    assert sorted(os.listdir(out)) == ["replay", "replay.csv", "replay.json"], os.listdir(out)


@case
def measure_policy(folder):
    for words in (["--out"], ["--build"], ["--backend"], ["--bogus"], ["word"]):
        refused(2, "usage: measure-policy", "measure-policy", *words)
    refused(1, "kvreplay is not there", "measure-policy", "--build", os.path.join(folder, "none"), "--out", os.path.join(folder, "o"))
    assert not os.path.exists(os.path.join(folder, "o"))
    open(os.path.join(folder, "mine.csv"), "w").close()
    refused(1, "holds something else", "measure-policy", "--build", os.path.dirname(KVREPLAY), "--out", folder)
    assert os.listdir(folder) == ["mine.csv"]
    out = os.path.join(folder, "out")
    refused(1, "no GPU here", "measure-policy", "--build", os.path.dirname(KVREPLAY), "--out", out, path=without_smi())


@case
def measure_policy_interrupted(folder):
    """Stopped in its first part, and gone on with: the folder is known, files are whole."""
    out = os.path.join(folder, "it's [a] \"copy\" $x")
    words = [os.path.join(TOOLS, "measure-policy"), "--build", os.path.dirname(KVREPLAY), "--backend", "cpu", "--quick", "--out", out, "--only", "bench"]
    p = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not os.path.exists(os.path.join(out, "grid.csv.part")):
        assert p.poll() is None, p.communicate()
        time.sleep(0.02)
    p.terminate()
    _, err = p.communicate(timeout=30)
    assert p.returncode == 143 and "interrupted" in err, (p.returncode, err)
    assert sorted(os.listdir(out)) == ["grid.csv.part", "grid.txt.part", "parts.csv"] and parts(out) == {}, os.listdir(out)
    status, _, err = tool("measure-policy", *words[1:], "--resume")
    assert status == 0 and sorted(os.listdir(out)) == ["grid.csv.gz", "grid.txt", "parts.csv"], (status, err, os.listdir(out))


@case
def measure_policy_paper_without_gnuplot(folder):
    """The tables are kept and the part is done; pictures are drawn later."""
    build, out, path = (os.path.join(folder, name) for name in ("build", "out", "bin"))
    for name in (path, out):
        os.makedirs(name)
    for there in os.environ["PATH"].split(os.pathsep):
        for name in os.listdir(there) if os.path.isdir(there) else ():
            if name != "gnuplot" and not os.path.lexists(os.path.join(path, name)):
                os.symlink(os.path.join(there, name), os.path.join(path, name))
    # Nothing is executed, so that it is quick.
    script(os.path.join(build, "kvreplay"), '[ "$1" = paper ] || exec "%s" "$@"\n' % KVREPLAY +
           'exec "%s" $(echo "$@" | sed "s/--backend cpu/--backend counters/")\n' % KVREPLAY)
    shutil.copy(os.path.join(os.path.dirname(TOOLS), "docs", "results", "h200", "profile-nvidia-h200.json"), os.path.join(out, "profile.json"))
    with open(os.path.join(out, "parts.csv"), "w") as f:
        f.write("part,outcome,seconds,gpu,driver,commit,date,options\n")
    status, text, err = tool("measure-policy", "--build", build, "--backend", "cpu", "--quick", "--out", out, "--only", "paper", path=path)
    assert status == 0 and parts(out) == {"paper": "done"}, (status, text, err)
    assert "no gnuplot here" in text, text
    kept = os.listdir(os.path.join(out, "paper", "plots"))
    assert "paper_times.gp" in kept and "paper_times.png" not in kept and os.path.exists(os.path.join(out, "paper", "main.csv")), kept
    subprocess.run([KVREPLAY, "paper", "--out", os.path.join(out, "paper"), "--redraw"], check=True)
    assert os.path.exists(os.path.join(out, "paper", "plots", "paper_times.png"))


@case
def judge_speed(folder):
    """Goals by size and shape; the kept notes hold what the kept table gives; what is refused."""
    head = "cell,route,q_heads,kv_heads,head_dim,kv_bytes,floor_us,kernel_us,graph_us\n"
    table, page = os.path.join(folder, "speed.csv"), os.path.join(folder, "page.md")

    def judged(*lines):
        with open(table, "w") as f:
            f.write(head + "".join(line + "\n" for line in lines))
        status, text, err = tool("judge-speed", table)
        assert status == 0, err
        return [line.split("|")[-2].strip() for line in text.split("\n\n")[0].splitlines()[2:]], text
    small, large = "32,8,128,200000000,50,%s,0", "32,8,128,%d,200,%s,199"
    assert judged("a,persistent," + small % 54.5, "b,persistent," + small % 54.51)[0] == ["persistent", "no"]
    assert judged("a,workqueue-fused," + large % (256e6, 212), "b,workqueue-fused," + large % (1e9, 206.01))[0] == ["fused", "no"]
    assert judged("a,persistent,32,4,128,200000000,50,56,0", "b,persistent,32,8,64,200000000,50,56,0")[0] == ["persistent"] * 2
    assert judged("a,persistent,32,4,128,1000000000,200,216,0", "b,persistent,32,8,64,1000000000,200,208.01,0")[0] == ["persistent", "no"]
    met, text = judged("short256,persistent," + small % 65, "short256,workqueue-fused," + small % 65.01, "x_even,persistent," + small % 1)
    assert met[0] == "persistent" and "x_even" not in text
    met, text = judged("a,persistent," + small % 60, "a,single," + small % 54)
    assert met == ["single"] and "| below 256 MB | 1 | 0 | 1 | a (1.200, +10.0) |" in text, text

    kept = os.path.join(os.path.dirname(TOOLS), "docs", "results", "h200")
    shutil.copy(os.path.join(kept, "notes.md"), page)
    assert tool("judge-speed", os.path.join(kept, "speed.csv"), "--into", page)[0] == 0
    assert read(folder, "page.md") == read(kept, "notes.md"), "tools/judge-speed docs/results/h200/speed.csv --into docs/results/h200/notes.md"

    for text, needle in ((head, "no line follows"), ("cell,route\n", "speed.csv:1: no column 'q_heads'"), (head + "a,persistent,32,8,128,x,50,60,0\n", "speed.csv:2: ")):
        with open(table, "w") as f:
            f.write(text)
        refused(2, needle, "judge-speed", table)
    for line, needle in (("a,persistent,32,8,128,1e6,0,60,0", "floor_us"), ("a,persistent,32,8,128,1e6,nan,60,0", "floor_us"), ("a,persistent,32,8,128,1e6,50,inf,0", "kernel_us"),
                         ("a,persistent,32,8,128", ""), ("a,persistent,32,8,128,-5,50,60,0", "kv_bytes"), ("a,persistent,32,8,128,1e6,50,,0", "kernel_us")):
        with open(table, "w") as f:
            f.write(head + line + "\n")
        refused(2, "speed.csv:2: " + needle, "judge-speed", table)
    for data in (b"\xff\xfe\0", head.encode() + b"a,\0,\n", os.urandom(3000)):
        with open(table, "wb") as f:
            f.write(data)
        refused(2, "speed.csv", "judge-speed", table)
    refused(2, "No such file", "judge-speed", os.path.join(folder, "none.csv"))
    before = read(folder, "page.md")  # a full disk, nearly: the page is as it was

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    done = subprocess.run([os.path.join(TOOLS, "judge-speed"), os.path.join(kept, "speed.csv"), "--into", page], capture_output=True, text=True, preexec_fn=limited, check=False)
    assert done.returncode == 1 and "File too large" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert read(folder, "page.md") == before and sorted(os.listdir(folder)) == ["page.md", "speed.csv"], os.listdir(folder)
    with open(page, "w") as f:
        f.write("no marks\n")
    refused(2, "once each", "judge-speed", os.path.join(kept, "speed.csv"), "--into", page)
    assert read(folder, "page.md") == "no marks\n"


@case
def measure_policy_from_a_bundle(folder):
    """Parts that are quick on a CPU; a part without what it needs fails, and says what."""
    into, out = os.path.join(folder, "packed here"), os.path.join(folder, "out")
    status, _, err = tool("bundle", "--build", os.path.dirname(KVREPLAY), into)
    assert status == 0, err
    done = subprocess.run([os.path.join(into, "measure-policy"), "--backend", "cpu", "--quick", "--out", out, "--only", "peers,logs,judge"],
                          capture_output=True, text=True, cwd="/", check=False)
    assert done.returncode == 1 and "not whole: logs judge\n" in done.stdout, (done.stdout, done.stderr)
    assert "nothing to fit a policy to" in done.stderr and "no cal-replay.csv" in done.stderr, done.stderr
    assert parts(out) == {"peers": "done", "logs": "failed (1)", "judge": "failed (1)"}, parts(out)
    assert sorted(os.listdir(out)) == ["parts.csv", "rep-peers.csv.gz", "rep-peers.json"], os.listdir(out)


@case
def judge_policy(folder):
    build, _ = stand_in(folder, "true\n")
    refused(2, "usage", "judge-policy", "--build")
    refused(2, "usage", "judge-policy", "a", "b")
    refused(1, "kvreplay is not there", "judge-policy", "--build", os.path.join(folder, "none"))
    refused(1, "is not there", "judge-policy", "--build", build, os.path.join(folder, "none"))
    os.mkdir(os.path.join(folder, "empty"))
    refused(1, "no cal-replay.csv", "judge-policy", "--build", build, os.path.join(folder, "empty"))
    assert os.listdir(os.path.join(folder, "empty")) == []
    # The kept tables, in a folder of an odd name: what is not whole is not read, logs may be missing.
    out = os.path.join(folder, "it's [a] \"copy\" $x")
    shutil.copytree(os.path.join(os.path.dirname(TOOLS), "docs", "results", "h200", "policy"), out)
    for name in os.listdir(out):
        if name.startswith(("cal-azure", "cal-mooncake", "policy.txt", "tables.md")):
            os.unlink(os.path.join(out, name))
    for name in ("grid.csv.part", "rep-x-B1-20260623.csv.part", "cal-x.csv.gz.part"):
        with open(os.path.join(out, name), "w") as f:
            f.write("half\n")
    status, _, err = tool("judge-policy", "--build", os.path.dirname(KVREPLAY), out)
    assert status == 0 and os.path.getsize(os.path.join(out, "tables.md")) > 0, err
    before = read(out, "policy.txt")
    with open(os.path.join(out, "grid.csv"), "w") as f:
        f.write("another\n")
    refused(1, "grid.csv and grid.csv.gz are both there", "judge-policy", "--build", os.path.dirname(KVREPLAY), out)
    os.unlink(os.path.join(out, "grid.csv"))
    os.truncate(os.path.join(out, "grid.csv.gz"), 1000)
    refused(1, "grid.csv.gz: cannot be unpacked", "judge-policy", "--build", os.path.dirname(KVREPLAY), out)
    assert read(out, "policy.txt") == before


@case
def bundle(folder):
    for words in ([], ["--build"], ["--bogus"], ["a", "b"]):
        refused(2, "usage", "bundle", *words)
    refused(1, "kvreplay is not there", "bundle", "--build", os.path.join(folder, "none"), os.path.join(folder, "b"))
    into = os.path.join(folder, "packed here")
    status, _, err = tool("bundle", "--build", os.path.dirname(KVREPLAY), into, cwd=folder)
    assert status == 0, err
    mine = os.path.join(into, "gpu-results", "speed.csv")
    os.makedirs(os.path.dirname(mine))
    open(mine, "w").close()
    assert tool("bundle", "--build", os.path.dirname(KVREPLAY), into)[0] == 0  # over an earlier one
    assert os.path.exists(mine) and not [f for f in os.listdir(into) if f.startswith(".")], os.listdir(into)
    before = {f: os.stat(os.path.join(into, "bin", f)).st_size for f in os.listdir(os.path.join(into, "bin"))}

    def limited():  # as a full disk would
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
    done = subprocess.run([os.path.join(TOOLS, "bundle"), "--build", os.path.dirname(KVREPLAY), into], capture_output=True, text=True, preexec_fn=limited, check=False)
    assert done.returncode == 1 and "bundle: " in done.stderr, (done.returncode, done.stderr)
    assert before == {f: os.stat(os.path.join(into, "bin", f)).st_size for f in os.listdir(os.path.join(into, "bin"))}
    assert not [f for f in os.listdir(into) if f.startswith(".")], os.listdir(into)
    os.makedirs(os.path.join(folder, "usr", "lib"))
    refused(1, "no bundle's", "bundle", "--build", os.path.dirname(KVREPLAY), os.path.join(folder, "usr"))
    assert os.listdir(os.path.join(folder, "usr")) == ["lib"]
    done = subprocess.run([os.path.join(into, "kvreplay"), "list", "routes"], capture_output=True, text=True, cwd="/", check=False)
    assert done.returncode == 0 and "persistent" in done.stdout, done.stderr


@case
def measure_devices(folder):
    log = os.path.join(folder, "log.csv")
    refused(2, "measure-devices", "measure-devices")
    refused(2, "measure-devices", "measure-devices", KVREPLAY, log, folder, "--backend")
    refused(2, "/nowhere is not there", "measure-devices", "/nowhere", log, folder)
    refused(2, "log.csv is not there", "measure-devices", KVREPLAY, log, folder)
    with open(log, "w") as f:
        f.write("nonsense\n")
    mine = os.path.join(folder, "fleet-of-mine.csv"), os.path.join(folder, "mine.kvsteps")
    for path in mine:
        open(path, "w").close()
    refused(1, "log.csv", "measure-devices", KVREPLAY, log, folder, "--backend", "cpu")
    assert all(map(os.path.exists, mine))


@case
def measure_devices_stopped(folder):
    log = os.path.join(os.path.dirname(TOOLS), "tests", "data", "azure-2023-conv.csv.gz")
    for end, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        p = subprocess.Popen([os.path.join(TOOLS, "measure-devices"), KVREPLAY, log, folder, "--backend", "cpu", "--execute", "500"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        assert "backend cpu" in p.stdout.readline()
        os.killpg(p.pid, end)
        _, err = p.communicate(timeout=30)
        assert p.returncode == status and "Traceback" not in err, (p.returncode, err)
        assert sorted(os.listdir(folder)) == ["several-gpus.csv.part", "several-gpus.txt.part"], os.listdir(folder)
    in_the_way = os.path.join(folder, "file")
    open(in_the_way, "w").close()
    refused(1, "file", "measure-devices", KVREPLAY, log, os.path.join(in_the_way, "x"), "--backend", "cpu")


print("1..%d" % len(CASES))
failed = 0
for number, function in enumerate(CASES, 1):
    folder = tempfile.mkdtemp(prefix="kvreplay tools ")
    try:
        function(folder)
        print("ok %d %s" % (number, function.__name__))
    except (AssertionError, OSError) as error:
        failed += 1
        print("not ok %d %s\n# %s" % (number, function.__name__, str(error).replace("\n", "\n# ")))
    shutil.rmtree(folder, ignore_errors=True)
sys.exit(failed > 0)
