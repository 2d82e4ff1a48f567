"""Every scenario under examples/ runs, counting only, and draws its pictures."""
import glob
import json
import os
import sys

from tap import SOURCE, main, ok


def example(path):
    def test():
        os.symlink(os.path.join(SOURCE, 'examples'), 'examples')
        ok('run', path, '--out', 'o', '--backend', 'counters', '--quiet')
        summary = json.load(open('o/summary.json'))
        r = summary['simulate']
        assert r['requests'] == r['finished'] + sum(r['refused'].values()) and r['pages_end'] == 0
        assert [n for n in os.listdir('o/plots') if n.endswith('.svg')]
    return test


paths = sorted(glob.glob(os.path.join(SOURCE, 'examples', '*.ini')))
assert len(paths) >= 12
for p in paths:
    globals()['test_' + os.path.basename(p)[:-4].replace('-', '_')] = example(p)

sys.exit(main(globals()))
