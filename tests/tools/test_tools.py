"""The scripts under tools/ with odd words, odd folders and no GPU: one line that says so, the right exit status, nothing lost."""
import os
import shutil
import stat
import subprocess
import sys
import tempfile

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


@case
def measure_gpu_writes_whole_files(folder):
    build, path = stand_in(folder, 'echo "lab $1"\n')
    out = os.path.join(folder, "out of it")
    status, _, err = tool("measure-gpu", "--build", build, "--out", out, "--only", "correct,stress,speed", path=path)
    assert status == 0, err
    assert sorted(os.listdir(out)) == ["correct.txt", "machine.txt", "speed.txt", "stress.txt"], os.listdir(out)
    assert open(os.path.join(out, "stress.txt")).read() == "lab stress\n"
    build, path = stand_in(folder, 'echo half; exit 3\n')
    status, _, err = tool("measure-gpu", "--build", build, "--out", out, "--only", "stress", path=path)
    assert status != 0 and open(os.path.join(out, "stress.txt")).read() == "lab stress\n", (status, err)


@case
def plot_results(folder):
    refused(2, "usage", "plot-results")
    refused(2, "usage", "plot-results", "--build")
    refused(2, "usage", "plot-results", folder)
    open(os.path.join(folder, "replay.csv"), "w").close()
    refused(1, "kvreplay is not there", "plot-results", "--build", os.path.join(folder, "none"), folder)


@case
def measure_policy(folder):
    for words in (["--out"], ["--build"], ["--backend"], ["--bogus"], ["word"]):
        refused(2, "usage: measure-policy", "measure-policy", *words)
    refused(1, "kvreplay is not there", "measure-policy", "--build", os.path.join(folder, "none"), "--out", os.path.join(folder, "o"))
    assert not os.path.exists(os.path.join(folder, "o"))
    open(os.path.join(folder, "mine.csv"), "w").close()
    refused(1, "holds something else", "measure-policy", "--build", os.path.dirname(KVREPLAY), "--out", folder)
    assert os.listdir(folder) == ["mine.csv"]


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


@case
def bundle(folder):
    refused(1, "usage", "bundle")
    refused(1, "usage", "bundle", "--build")
    refused(1, "kvreplay is not there", "bundle", "--build", os.path.join(folder, "none"), os.path.join(folder, "b"))
    into = os.path.join(folder, "packed here")
    status, _, err = tool("bundle", "--build", os.path.dirname(KVREPLAY), into, cwd=folder)
    assert status == 0, err
    assert tool("bundle", "--build", os.path.dirname(KVREPLAY), into)[0] == 0  # over an earlier one
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
