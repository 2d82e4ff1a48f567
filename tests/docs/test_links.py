"""Every relative link in the repository's Markdown leads to a file that is there.

usage: test_links.py SOURCE-ROOT
"""
import os
import re
import sys

ROOT = sys.argv[1]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
SKIPPED = re.compile(r"^(build.*|\.git|kvreplay-run.*)$")


def pages():
    for folder, below, files in os.walk(ROOT):
        below[:] = sorted(d for d in below if not SKIPPED.match(d))
        yield from (os.path.join(folder, f) for f in sorted(files) if f.endswith(".md"))


def dead_links(path):
    with open(path, encoding="utf-8") as page:
        links = LINK.findall(page.read())
    return [l for l in links if "://" not in l and not l.startswith("mailto:")
            and not os.path.exists(os.path.join(os.path.dirname(path), l))]


found = list(pages())
print("1..%d" % len(found))
for number, path in enumerate(found, 1):
    dead = dead_links(path)
    print("%s %d %s" % ("not ok" if dead else "ok", number, os.path.relpath(path, ROOT)))
    for link in dead:
        print("# no %s" % link)
