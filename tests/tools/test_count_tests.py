"""tools/count-tests: what ran is counted, what broke is never lost."""
import json
import os
import subprocess
import sys
import tempfile

TOOL = sys.argv[1]


def count(records, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as log:
        for result, stdout in records:
            log.write(json.dumps({"name": "t", "result": result, "stdout": stdout}) + "\n")
    try:
        done = subprocess.run([sys.executable, TOOL, *options, log.name], text=True,
                              stdout=subprocess.PIPE, check=False)
    finally:
        os.unlink(log.name)
    return done.stdout, done.returncode


CASES = [
    ("subtests count one by one", [("OK", "TAP version 13\nok 1 /a\nok 2 /b # SKIP no GPU\n1..2\n")], [],
     "1 passed, 0 failed, 1 skipped\n", 0),
    ("a failed subtest", [("FAIL", "ok 1 /a\nnot ok 2 /b\n1..2\n")], [],
     "1 passed, 1 failed, 0 skipped\n", 1),
    ("killed after two subtests", [("ERROR", "ok 1 /a\nok 2 /b\n")], [],
     "2 passed, 1 failed, 0 skipped\n", 1),
    ("timed out without a word", [("TIMEOUT", "")], [], "0 passed, 1 failed, 0 skipped\n", 1),
    ("no TAP", [("OK", "all fine\nokay\n"), ("SKIP", "")], [], "1 passed, 0 failed, 1 skipped\n", 0),
    ("a skipped TAP test", [("OK", "ok 1 /a\n1..1\n"), ("SKIP", "1..0 # SKIP no GPU\n")], [],
     "1 passed, 0 failed, 1 skipped\n", 0),
    ("broken builds and skipped ones", [("OK", "ok 1 /a\n1..1\n")], ["--failed", "2", "--skipped", "1"],
     "1 passed, 2 failed, 1 skipped\n", 1),
    ("nothing ran", [], [], "0 passed, 0 failed, 0 skipped\n", 1),
]

print("1..%d" % len(CASES))
for number, (name, records, options, line, status) in enumerate(CASES, 1):
    got = count(records, *options)
    good = got == (line, status)
    print("%s %d %s" % ("ok" if good else "not ok", number, name))
    if not good:
        print("# expected %r, got %r" % ((line, status), got))
