"""Sweeps and capacity: the same bytes on any number of threads, resumption, and a law of queueing."""
import csv
import glob
import json
import os
import sys

from tap import fails, main, ok

LOAD = ('--arrivals', 'poisson', '--lengths', 'fixed:prompt=64,output=16', '--requests', 200,
        '--pool-pages', 400, '--clock', 'linear:base=4ms,prefill_token=25us,decode_row=60us,kv_token=2ns')


def test_bytes_do_not_depend_on_threads():
    for jobs in (1, 2, 5):
        ok('sweep', 'rate=2|4', 'seed=1..3', *LOAD, '--out', f'{jobs}.csv', '--jobs', jobs, '--quiet')
    one = open('1.csv').read()
    assert one == open('2.csv').read() == open('5.csv').read()
    rows = list(csv.DictReader(open('1.csv')))
    assert [(r['rate'], r['seed']) for r in rows] == [(a, b) for a in '24' for b in '123']
    assert all(int(r['finished']) == 200 and float(r['ttft_p99']) > 0 for r in rows)
    assert len({r['ttft_p99'] for r in rows}) == 6


def test_a_cell_is_the_run_by_itself():
    ok('sweep', 'rate=3', 'budget=512', *LOAD, '--out', 's.csv', '--quiet')
    row = next(csv.DictReader(open('s.csv')))
    alone = json.loads(ok('simulate', *LOAD, '--arrivals', 'poisson:rate=3', '--max-num-batched-tokens',
                          512, '--json'))
    assert int(row['steps']) == alone['steps']
    assert float(row['ttft_p99']) == alone['ttft']['p99'] and float(row['e2e_mean']) == alone['e2e']['mean']


def test_resume_after_an_end():
    ok('sweep', 'rate=2|4', *LOAD, '--out', 's.csv', '--quiet')
    whole = open('s.csv').read()
    ok('sweep', 'rate=2|4', *LOAD, '--out', 's.csv', '--quiet', '--resume')
    assert open('s.csv').read() == whole and not glob.glob('s.csv.*')


def test_bad_axes():
    fails(2, 'nope', args=('sweep', 'nope=1..3', *LOAD))
    fails(2, args=('sweep', 'rate=4..1', *LOAD))
    fails(2, 'vary', args=('sweep', *LOAD))
    fails(2, args=('sweep', 'scheduler=nope', *LOAD))
    assert os.listdir('.') == [], os.listdir('.')


def test_capacity_of_a_known_server():
    """One request at a time, all alike and back to back: a server of 1/S requests a second cannot be
    loaded above that with a bounded queue, and keeps a loose target below it."""
    one = ('--scheduler', 'vllm-v1:seqs=1', '--lengths', 'fixed:prompt=16,output=1', '--clock',
           'fixed:step=10ms', '--requests', 3000)
    r = json.loads(ok('capacity', '--targets', 'e2e.p99<=10.5ms', '--arrivals', 'constant', *one,
                      '--replications', 2, '--json', '--quiet'))
    assert 98 < r['load'] <= 100.5, r
    fails(2, 'targets', args=('capacity', '--arrivals', 'constant', *one))
    fails(2, 'ttfft', args=('capacity', '--targets', 'ttfft.p99<=2s', '--arrivals', 'constant', *one))


sys.exit(main(globals()))
