"""kvreplay run: the whole main job on a small log."""
import csv
import json
import os
import signal
import subprocess
import sys
import time

from tap import KVREPLAY, Skip, fails, main, ok, run

ARGS = ('--arrivals', 'poisson:rate=6', '--lengths',
        'uniform:prompt_min=10,prompt_max=600,output_min=1,output_max=60', '--requests', 60,
        '--pool-pages', 400)
FILES = ('scenario.ini', 'requests.csv', 'steps.kvsteps', 'replay.csv', 'summary.json', 'report.html')
COLUMNS = ('step,start_ns,duration_ns,rows,prefill_tokens,max_len,sum_len,waiting,pages_used,route,chosen,'
           'launches,merge_launches,copies,memsets,tasks,nonempty_fraction,kv_bytes,kv_bytes_touched,'
           'merge_state_bytes,merge_traffic_bytes,plan_us,upload_bytes,kernel_us,wall_us,repeats,'
           'max_abs_err,mean_abs_err,replica,device,rank_kernel_us,rank_skew_us,tables_us')


def test_main_job_leaves_everything():
    out = ok('run', *ARGS, '--backend', 'cpu', '--execute', 20, '--check-every', 1, '--out', 'o')
    assert 'backend' in out.splitlines()[0] and 'cpu' in out.splitlines()[0]
    for name in FILES:
        assert os.path.getsize(os.path.join('o', name)) > 0, name
    pictures = os.listdir('o/plots')
    for end in ('.png', '.svg', '.gp'):
        assert [p for p in pictures if p.endswith(end)], (end, pictures)
    summary = json.load(open('o/summary.json'))
    assert summary['simulate']['requests'] == 60 and summary['replay']['routes']['workqueue']
    rows = list(csv.DictReader(open('o/replay.csv')))
    assert open('o/replay.csv').readline().strip() == COLUMNS
    steps = summary['simulate']['steps']
    routes = len(summary['replay']['routes'])
    assert len(rows) == steps * routes
    checked = [r for r in rows if r['max_abs_err']]
    assert checked and all(float(r['max_abs_err']) < 2e-3 for r in checked)
    for step in range(steps):
        chosen = [r for r in rows[step * routes:(step + 1) * routes] if r['chosen'] == '1']
        decode = int(rows[step * routes]['rows']) > 0
        assert len(chosen) == (1 if decode else len(chosen)) , step


def test_the_resolved_scenario_gives_the_same_bytes():
    ok('run', *ARGS, '--backend', 'counters', '--out', 'a', '--no-plots', '--no-report')
    ok('run', 'a/scenario.ini', '--out', 'b')
    for name in ('scenario.ini', 'requests.csv', 'steps.kvsteps'):
        assert open('a/' + name, 'rb').read() == open('b/' + name, 'rb').read(), name
    strip = lambda p: [{k: v for k, v in r.items() if k not in ('plan_us',)}
                       for r in csv.DictReader(open(p))]
    assert strip('a/replay.csv') == strip('b/replay.csv')


def test_what_a_reader_must_know_of_the_policy():
    out = ok('run', *ARGS, '--backend', 'counters', '--no-plots', '--out', 'o')
    assert 'policy cost' in out and 'guess' in out, out
    page = open('o/report.html').read()
    assert 'guess' in page.split('All of summary.json')[0], 'told in the page itself'
    known = dict.fromkeys(('fixed_us', 'launch_us', 'stream', 'merge', 'wave_us'), 1)
    json.dump({'kvreplay_profile': 1, 'workers': 8,
               'learned': {'worker_gbps': 1, 'routes': {'single': known}}}, open('p.json', 'w'))
    out = ok('replay', 'o/steps.kvsteps', '--backend', 'counters', '--policy', 'learned', '--profile', 'p.json')
    assert '5 of 6 routes are unknown' in out, out
    out = ok('replay', 'o/steps.kvsteps', '--backend', 'counters', '--policy', 'always:route=single')
    assert 'guess' not in out and 'policy' not in out, out


def test_a_profile_has_whole_workers():
    ok('simulate', *ARGS, '--steps', 's.kvsteps')
    for workers in (0, 1.5, 1000001):
        json.dump({'kvreplay_profile': 1, 'workers': workers}, open('w.json', 'w'))
        fails(2, 'w.json', '"workers"', '1 to 1000000',
              args=('replay', 's.kvsteps', '--backend', 'counters', '--profile', 'w.json'))


def test_json_is_one_object():
    r = json.loads(ok('run', *ARGS, '--backend', 'counters', '--json', '--no-plots', '--no-report',
                      '--out', 'o'))
    for key in ('requests', 'finished', 'refused', 'steps', 'row_steps', 'prompt_tokens', 'output_tokens',
                'recomputed_tokens', 'preemptions', 'duration_s', 'pages_peak', 'pages_end'):
        assert key in r, key
    for key in ('ttft', 'itl', 'tpot', 'e2e', 'queue_delay'):
        assert set(r[key]) >= {'mean', 'p50', 'p90', 'p95', 'p99', 'max'}, key
    assert r['pages_end'] == 0 and r['requests'] == r['finished']


def test_replay_alone():
    ok('simulate', *ARGS, '--steps', 's.kvsteps')
    text = ok('replay', 's.kvsteps', '--backend', 'counters', '--csv', '-', '--quiet')
    assert text.splitlines()[0] == COLUMNS
    r = json.loads(ok('replay', 's.kvsteps', '--backend', 'counters', '--json', '--splits', 'fixed:s=20'))
    routes = r['replay']['routes']
    assert routes['workqueue']['launches_per_step'] == 2
    assert routes['workqueue-fused']['launches_per_step'] == 1
    fails(2, args=('replay', 's.kvsteps', '--json', '--csv', '-'))


def test_interrupt_keeps_what_is_whole():
    p = subprocess.Popen([KVREPLAY, 'run', '--arrivals', 'poisson:rate=50', '--lengths',
                          'fixed:prompt=2000,output=2000', '--requests', '2000', '--pool-pages', '20000',
                          '--backend', 'cpu', '--execute', 'all', '--out', 'o', '--quiet'],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(600):
        if os.path.exists('o/replay.csv.part') and os.path.getsize('o/replay.csv.part') > 0:
            break
        time.sleep(0.05)
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=120)
    assert p.returncode == 130, (p.returncode, err)
    assert not os.path.exists('o/replay.csv')
    text = open('o/replay.csv.part').read()
    assert text.endswith('\n') and text.splitlines()[0] == COLUMNS
    width = COLUMNS.count(',')
    assert all(l.count(',') == width for l in text.splitlines())


def test_resume_measures_nothing_twice():
    """An interrupted replay goes on: steps measured before keep their lines to the byte."""
    args = ('replay', 's.kvsteps', '--backend', 'cpu', '--execute', 'every=8', '--csv', 'r.csv', '--quiet')
    ok('simulate', *ARGS, '--steps', 's.kvsteps')
    ok(*args)
    whole = open('r.csv').read().splitlines(True)
    os.remove('r.csv')
    cut = len(whole) // 2
    with open('r.csv.part', 'w') as f:
        f.write(''.join(whole[:cut]) + whole[cut][:9])
    r = json.loads(ok(*args, '--resume', '--json'))['replay']
    again = open('r.csv').read().splitlines(True)
    assert len(again) == len(whole) and 0 < r['resumed_steps'] < r['executed_steps']
    measured = [l for l in whole[:cut - 6] if l.split(',')[23]]
    assert measured and all(l in again for l in measured)
    assert sorted(os.listdir('.')) == ['r.csv', 's.kvsteps']
    ok('run', *ARGS, '--backend', 'counters', '--out', 'o', '--no-plots', '--no-report')
    ok('run', '--resume', '--out', 'o')
    fails(2, '--out', args=('run', '--resume'))


def test_help_and_lists():
    commands = ok('--list-commands').split()
    assert 'run' in commands and 'replay' in commands
    for c in commands:
        assert c in ok('--help')
        assert 'kvreplay ' + c in ok(c, '--help')
        assert ok('--list-options', c) is not None
    for kind in (l.split()[0] for l in ok('list').splitlines()):
        assert ok('list', kind).strip()
    assert 'gnuplot' in ok('doctor')


sys.exit(main(globals()))
