"""Every option of every command has an entry in its man page, and no page has one that is not there.

usage: test_man.py KVREPLAY SOURCE-ROOT
"""
import os
import re
import subprocess
import sys

KVREPLAY, ROOT = sys.argv[1:3]
MAN = os.path.join(ROOT, "docs", "man")
ENTRY = re.compile(r"^\*\*--[a-z].*$", re.MULTILINE)
NAME = re.compile(r"\*\*(--[a-z][a-z0-9-]*)\*\*")


def ask(*words):
    return subprocess.run([KVREPLAY, *words], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.split()


def entries(path):
    with open(path, encoding="utf-8") as page:
        return {name for line in ENTRY.findall(page.read()) for name in NAME.findall(line)}


def options_of(command):
    return set(ask("--list-options", command)) - {"--help", "--help-all"}  # those are in kvreplay(1)


def takes_scenario(options):
    """Options of kvreplay-scenario(5) are told there for the commands that read a scenario."""
    return bool(options & {"--scheduler", "--verify-launches", "--arrivals"})


def faults_of(command, shared):
    path = os.path.join(MAN, "kvreplay-%s.1.rst" % command)
    if not os.path.exists(path):
        return ["no page %s" % os.path.relpath(path, ROOT)]
    options, own = options_of(command), entries(path)
    if not takes_scenario(options):
        shared = set()
    return (["%s is not in the page" % o for o in sorted(options - own - shared)] +
            ["%s is in the page, but the command has no such option" % o for o in sorted(own - options)])


def main():
    shared = entries(os.path.join(MAN, "kvreplay-scenario.5.rst"))
    commands = ask("--list-commands")
    known = set()
    print("1..%d" % (len(commands) + 1))
    for number, command in enumerate(commands, 1):
        known |= options_of(command)
        faults = faults_of(command, shared)
        print("%s %d %s" % ("not ok" if faults else "ok", number, command))
        for fault in faults:
            print("# " + fault)
    stale = sorted(shared - known)
    print("%s %d scenario" % ("not ok" if stale else "ok", len(commands) + 1))
    for option in stale:
        print("# %s is in kvreplay-scenario(5), but no command has it" % option)


main()
