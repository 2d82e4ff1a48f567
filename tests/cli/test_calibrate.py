"""kvreplay calibrate: a profile measured on the CPU backend, and what runs from it."""
import csv
import json
import os

from tap import fails, main, ok

GRID = 'len=64,ragged:512,spike:512;rows=1,2,4,8;heads=8:2;dim=64'
ARGS = ('--arrivals', 'poisson:rate=6', '--lengths',
        'uniform:prompt_min=10,prompt_max=300,output_min=1,output_max=30', '--requests', 20)


def measure(*more):
    return ok('calibrate', '--backend', 'cpu', '--cells', GRID, '-q', *more)


def test_the_profile_says_what_was_measured():
    out = measure('--table', 't.csv')
    name = out.splitlines()[-1]
    assert name.startswith('profile-') and name.endswith('.json'), name
    p = json.load(open(name))
    m = p['measured']
    assert m['backend'] == 'cpu' and m['on']['name'] == p['device'] and m['cells'] == 12
    assert m['read_gbps'] > 0.1 and m['copy_gbps'] > 0.1 and m['event_us'] > 0
    assert m['launch_us'] is None  # a GPU's
    assert len(m['plan']['host_us']['persistent']) == len(m['plan']['rows']) == 4
    assert all(us > 0 for row in m['plan']['host_us'].values() for us in row)
    assert m['command'].startswith('kvreplay calibrate --backend cpu') and m['date'] and m['commit']
    # no byte is told cheaper than it was read
    assert 0 < p['cost']['bandwidth_gbps'] <= m['read_gbps'] * 1.000001
    for r in p['learned']['routes'].values():
        assert min(v for k, v in r.items() if k != 'near') >= 0 and r['stream'] >= 0.999999 * p['cost']['bandwidth_gbps'] / m['read_gbps']
    rows = list(csv.DictReader(open('t.csv')))
    assert len(rows) == 12 * 6 and len({r['step'] for r in rows}) == 12
    one = [r for r in rows if r['step'] == '0' and r['route'] == 'workqueue']
    assert len(one) == 1 and int(one[0]['sum_len']) == 64 and int(one[0]['rows']) == 1


def test_what_runs_from_it():
    measure('-o', 'p.json', '--table', 't.csv')
    a = json.loads(ok('simulate', *ARGS, '--clock', 'profile:file=p.json', '--json', '-q'))
    assert a['finished'] == 20 and a['duration_s'] > 0
    r = json.loads(ok('run', *ARGS, '--backend', 'cpu', '--profile', 'p.json', '--policy', 'learned',
                      '--execute', 10, '--json', '-q', '--no-plots', '--no-report', '--out', 'o'))['replay']
    assert r['policy']['profile_is_a_guess'] is False and r['correct'] is True
    # the table that it wrote fits and judges too
    out = ok('calibrate', '--fit', 't.csv', '--judge', 't.csv', '--device', 'this one', '-o', 'again.json')
    assert 'held-out' in out and json.load(open('again.json'))['device'] == 'this one'
    ok('calibrate', '--fit', 't.csv', '--rates', 'p.json', '-o', 'r.json')
    p, r = json.load(open('p.json')), json.load(open('r.json'))
    assert r['device'] == p['device'] and r['cost']['bandwidth_gbps'] <= p['measured']['read_gbps'] * 1.000001
    assert r['measured'].pop('fitted_again_by').startswith('kvreplay') and r['measured'].pop('fitted_again_commit')
    assert r['measured'] == p['measured']
    fails(2, 'read_gbps', args=('calibrate', '--fit', 't.csv', '--rates', 'again.json'))
    out = measure('-o', 'q.json', '--judge', 't.csv', '--with', 't.csv')
    assert 'on held-out tables' in out and 'commit' in out.splitlines()[0]
    line = out[out.index('fitted to'):].splitlines()[2].split()
    assert line[0] == 'cost' and int(line[1]) == 10 + 12  # ten of twelve cells, and the table


def test_refusals():
    fails(2, '--device', args=('calibrate', '--device', 'RTX'))
    fails(2, '--fit', args=('calibrate', '--fit', 't.csv', '--quick'))
    fails(2, '--rates', args=('calibrate', '--rates', 'p.json'))
    fails(2, 'cells', args=('calibrate', '--backend', 'cpu', '--cells', 'len=x'))
    fails(1, 'counters', args=('calibrate', '--backend', 'counters'))
    fails(2, 'at least 3', args=('calibrate', '--backend', 'cpu', '--cells', 'len=64;rows=1;heads=8:2'))
    assert not [n for n in os.listdir('.') if n.startswith('profile')]


if __name__ == "__main__":
    raise SystemExit(main(globals()))
