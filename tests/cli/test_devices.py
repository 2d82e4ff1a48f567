"""Several devices (virtual ones: backends cpu and counters): fleets, tensor-parallel shares, resumption."""
import csv
import json
import os
import signal
import subprocess
import time

from tap import KVREPLAY, fails, main, ok, run

ARGS = ('--arrivals', 'poisson:rate=8', '--lengths',
        'uniform:prompt_min=10,prompt_max=400,output_min=1,output_max=30', '--requests', 40,
        '--pool-pages', 400, '--replicas', 3)
TIMES = {'plan_us', 'kernel_us', 'wall_us', 'device', 'rank_kernel_us', 'rank_skew_us', 'tables_us'}


def lines(path):
    return list(csv.DictReader(open(path)))


def timeless(path):
    return [{k: v for k, v in r.items() if k not in TIMES} for r in lines(path)]


def steps():
    ok('simulate', *ARGS, '--steps', 's.kvsteps', '-q')
    return ['s-2.kvsteps', 's.kvsteps', 's-1.kvsteps']  # any order


def test_a_fleet_on_one_device_and_on_two():
    files = steps()
    for backend in ('cpu', 'counters'):
        for devices in ('0', '0,1', '1,0'):
            ok('replay', *files, '--backend', backend, '--execute', 6, '--check-every', 1,
               '--devices', devices, '--csv', devices + '.csv', '-q')
        assert timeless('0.csv') == timeless('0,1.csv') == timeless('1,0.csv')
        rows = lines('0,1.csv')
        assert [r['replica'] for r in rows] == sorted(r['replica'] for r in rows)
        assert {r['replica'] for r in rows} == {'0', '1', '2'}
        ran = {(r['replica'], r['device']) for r in rows if r['kernel_us']}
        assert ran == ({('0', '0'), ('1', '1'), ('2', '0')} if backend == 'cpu' else set())
    assert not [n for n in os.listdir('.') if n.endswith('.part')]


def test_run_spreads_its_replicas():
    out = ok('run', *ARGS, '--backend', 'cpu', '--execute', 5, '--devices', '0,1', '--json', '-q',
             '--out', 'o')
    r = json.loads(out)
    assert r['replay']['replica'] == 0 and r['replay']['devices'] == '0'
    assert [(x['replay']['replica'], x['replay']['devices']) for x in r['replays']] == [(1, '1'), (2, '0')]
    assert {x['replica'] for x in lines('o/replay.csv')} == {'0', '1', '2'}
    ok('run', 'o/scenario.ini', '--out', 'p', '-q')
    a, b = timeless('o/replay.csv'), timeless('p/replay.csv')
    assert len(a) == len(b)
    assert 'replay.csv' in os.listdir('o') and 'replay-1.csv' not in os.listdir('o')
    assert [n for n in os.listdir('o/plots') if n.endswith('.png')]
    ok('compare', 'o', 'p')


def test_shares_of_the_heads():
    steps()
    for devices in ('0', '0,1', '0,1,2,3'):
        ok('replay', 's.kvsteps', '--tp', 4, '--backend', 'cpu', '--execute', 5, '--check-every', 1,
           '--devices', devices, '--csv', devices + '.csv', '-q')
    assert timeless('0.csv') == timeless('0,1.csv') == timeless('0,1,2,3.csv')
    ran = [r for r in lines('0,1.csv') if r['kernel_us']]
    assert ran and all(r['device'] == '0;1' and r['rank_kernel_us'].count(';') == 3 for r in ran)
    assert all(float(r['rank_skew_us']) >= 0 for r in ran)
    whole = json.loads(ok('replay', 's.kvsteps', '--backend', 'counters', '--json'))['replay']
    share = json.loads(ok('replay', 's.kvsteps', '--backend', 'counters', '--tp', 4, '--json'))['replay']
    a, b = (x['routes']['single']['one_layer']['kv_bytes'] for x in (whole, share))
    assert a == 4 * b


def test_resume_takes_what_each_replica_measured():
    files = steps()
    args = ('replay', *files, '--backend', 'cpu', '--execute', 8, '--devices', '0,1', '--csv', 'r.csv', '-q')
    ok(*args)
    whole = open('r.csv').read().splitlines()
    by = {k: [l for l in whole[1:] if l.split(',')[28] == k] for k in '012'}
    # as a killed run leaves it: replica 1 cut in the middle of a line, 2 not begun
    for k, keep in (('0', len(by['0'])), ('1', len(by['1']) // 2), ('2', 0)):
        name = 'r.csv.part' if k == '0' else 'r-%s.csv.part' % k
        text = '\n'.join([whole[0]] + by[k][:keep])
        open(name, 'w').write(text[:-10] if k == '1' else text + '\n')
    os.unlink('r.csv')
    out = json.loads(ok(*args, '--resume', '--json'))
    resumed = [out['replay']['resumed_steps']] + [x['replay']['resumed_steps'] for x in out['replays']]
    assert resumed[0] == out['replay']['executed_steps'] and resumed[2] == 0
    assert 0 < resumed[1] < out['replays'][0]['replay']['executed_steps']
    again = open('r.csv').read().splitlines()
    assert len(again) == len(whole) and [l for l in again[1:] if l.split(',')[28] == '0'] == by['0']
    assert sorted(n for n in os.listdir('.') if n.startswith('r')) == ['r.csv']


def test_interrupted_on_two_devices_and_resumed():
    files = steps()
    args = [KVREPLAY, 'replay', *files, '--backend', 'cpu', '--execute', 'all', '--check-every', '100000', '--repeats', '40',
            '--devices', '0,1', '--csv', 'r.csv', '--quiet']
    p = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(600):
        if os.path.exists('r-2.csv.part'):
            break
        time.sleep(0.05)
    time.sleep(0.2)
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=120)
    assert p.returncode == 130, (p.returncode, err)
    parts = sorted(n for n in os.listdir('.') if n.startswith('r'))
    # replica 2 waits for a device: what it had was kept if it had begun
    assert parts in (['r-1.csv.part', 'r.csv.part'], ['r-1.csv.part', 'r-2.csv.part', 'r.csv.part']), parts
    for name in parts:
        text = open(name).read()
        assert text == '' or text.endswith('\n'), name
        width = {l.count(',') for l in text.splitlines()}
        assert len(width) <= 1, (name, width)
    args[args.index('40')] = '1'
    again = subprocess.run(args + ['--resume', '--json'], capture_output=True, timeout=200)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)['replay']['correct'] in (True, None)
    assert sorted(n for n in os.listdir('.') if n.startswith('r')) == ['r.csv']
    ran = [r for r in lines('r.csv') if r['kernel_us']]
    assert {r['replica'] for r in ran} == {'0', '1', '2'}


def test_refusals_and_remarks():
    files = steps()
    fails(2, 'twice', args=('replay', 's.kvsteps', '--backend', 'cpu', '--devices', '0,0'))
    fails(2, 'devices', args=('replay', 's.kvsteps', '--backend', 'cpu', '--devices', 'x'))
    ok('simulate', *ARGS, '--model', 'llama-3.2-1b', '--steps', 'm.kvsteps', '-q')
    fails(2, 's.kvsteps', 'm-1.kvsteps', 'model', args=('replay', 's.kvsteps', 'm-1.kvsteps', '--backend', 'cpu'))
    fails(2, 'replica 0', args=('replay', 's.kvsteps', 's.kvsteps', '--backend', 'cpu'))
    fails(2, 'standard output', args=('replay', *files, '--backend', 'cpu', '--csv', '-'))
    fails(2, 'KV heads', args=('replay', 's.kvsteps', '--backend', 'cpu', '--tp', 3))
    fails(2, '--execute', args=('replay', 's.kvsteps', '--backend', 'cpu', '--execute', '90000:90010'))
    fails(2, '--from', args=('replay', 's.kvsteps', '--backend', 'cpu', '--from', 90000))
    status, out, err = run('replay', 's.kvsteps', '--backend', 'counters', '--graphs', '--repeats', 3)
    assert status == 0 and err.count('remark:') == 1 and '--graphs, --repeats' in err, err
    status, out, err = run('replay', 's.kvsteps', '--backend', 'counters')
    assert status == 0 and 'remark' not in err


if __name__ == "__main__":
    raise SystemExit(main(globals()))
