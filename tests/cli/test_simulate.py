"""kvreplay simulate and steps, run as a user would: small workloads with answers worked out by hand."""
import csv
import io
import json
import sys

from tap import Skip, fails, main, ok


def simulate(text, *args):
    with open('log.csv', 'w') as f:
        f.write('arrived_at,num_prefill_tokens,num_decode_tokens\n' + text)
    out = ok('simulate', 'log.csv', '--json', '--steps', 's.kvsteps', '--requests-csv', 'r.csv', *args)
    steps = list(csv.DictReader(io.StringIO(ok('steps', 's.kvsteps', '--csv', '-'))))
    requests = list(csv.DictReader(open('r.csv')))
    ok('steps', 's.kvsteps', '--check')
    return json.loads(out), steps, requests


def test_prefill_emits_the_first_token():
    """P prompt and D output tokens: D-1 decode rows, P+D-1 entries at the end; a limit on entries."""
    r, steps, req = simulate('0.0,200,50\n0.0,16,1\n0.0,16,2\n0.0,2048,1\n0.0,2048,2\n',
                             '--context-limit', 2048)
    assert r['requests'] == 5 and r['finished'] == 4
    assert r['refused'] == {'context_limit': 1}
    assert r['output_tokens'] == 50 + 1 + 2 + 1
    assert r['row_steps'] == 49 + 0 + 1 + 0
    lengths = [int(s['max_len']) for s in steps if int(s['rows']) > 0]
    assert lengths[0] == 201 and lengths[-1] == 249
    assert [q['status'] for q in req] == ['finished'] * 4 + ['refused']


def test_clip_cuts_the_output_and_counts_it():
    r, _, req = simulate('0.0,2048,2\n', '--context-limit', 2048, '--clip')
    assert r['finished'] == 1 and r['output_tokens'] == 1
    assert req[0]['status'] != 'refused'


def test_the_last_token_needs_no_page():
    r, _, req = simulate('0.0,31,2\n100.0,32,1\n200.0,32,2\n', '--pool-pages', 2)
    assert r['finished'] == 2 and r['refused'] == {'pool': 1}
    assert r['pages_peak'] == 2 and r['pages_end'] == 0 and r['preemptions'] == 0
    assert '3' in req[2]['reason'] or req[2]['reason']


def test_a_request_bigger_than_the_pool_never_blocks():
    r, _, _ = simulate('0.0,100,10\n0.1,5000,10\n0.2,100,10\n0.3,900,200\n', '--pool-pages', 64)
    assert r['finished'] == 2 and r['output_tokens'] == 20
    assert sum(r['refused'].values()) == 2


def test_pages_used_is_not_tokens_held():
    _, steps, _ = simulate('0.0,17,1\n' * 20, '--pool-pages', 60)
    assert int(steps[0]['pages_used']) == 40 and int(steps[0]['tokens_held']) == 340


def test_a_chunk_gets_what_is_left_of_the_budget():
    _, steps, req = simulate('0.0,4,1\n0.0,8,1\n', '--page-size', 4, '--scheduler',
                             'vllm-v1:budget=8')
    assert [int(s['prefill_tokens']) for s in steps] == [8, 4]
    ends = [int(s['start_ns']) + int(s['duration_ns']) for s in steps]
    assert [int(q['first_token_ns']) for q in req] == ends
    _, steps, _ = simulate('0.0,4,1\n0.0,8,1\n', '--page-size', 4, '--scheduler',
                           'vllm-v1:budget=8,chunked=no')
    assert [int(s['prefill_tokens']) for s in steps] == [4, 8]


def test_same_seed_same_bytes():
    args = ('simulate', '--arrivals', 'poisson:rate=3', '--lengths', 'uniform:prompt_min=10,prompt_max=900,'
            'output_min=1,output_max=300', '--requests', 300, '--pool-pages', 300)
    for name, more in (('a', ()), ('b', ()), ('c', ('--no-fast-forward',)), ('d', ('--seed', 2))):
        ok(*args, '--steps', name, '--requests-csv', name + '.csv', '--json', *more)
    a, b, d = (open(n, 'rb').read() for n in 'abd')
    assert a == b and a != d
    assert open('a.csv').read() == open('c.csv').read()
    ok('steps', 'a', '--compare', 'c')
    fails(1, 'differ at step', args=('steps', 'a', '--compare', 'd'))


def test_steps_text_forms():
    simulate('0.0,20,3\n0.0,5,2\n')
    lines = [json.loads(l) for l in ok('steps', 's.kvsteps', '--jsonl', '-').splitlines()]
    assert lines[0]['prefill'][0] == {'request': 0, 'offset': 0, 'tokens': 20, 'cached': 0}
    assert [j['request'] for j in lines[1]['joined']] == [0, 1]
    assert 'slot' in ok('steps', 's.kvsteps', '--rows', 1)
    assert json.loads(ok('steps', 's.kvsteps', '--json'))['steps'] == len(lines)


def test_vllm_names_mean_ours():
    a = ok('simulate', '--arrivals', 'poisson:rate=3', '--lengths', 'fixed:prompt=100,output=50',
           '--requests', 50, '--max-num-seqs', 4, '--max-num-batched-tokens', 64, '--json')
    b = ok('simulate', '--arrivals', 'poisson:rate=3', '--lengths', 'fixed:prompt=100,output=50',
           '--requests', 50, '--scheduler', 'vllm-v1:budget=64,seqs=4', '--json')
    assert a == b


def test_measured_clock_executes_every_step():
    """Closed loop: the same tokens and rows as with any clock, times from the engine."""
    args = ('simulate', '--arrivals', 'poisson:rate=3', '--lengths', 'fixed:prompt=60,output=8', '--requests',
            10, '--json')
    m = json.loads(ok(*args, '--clock', 'measured:base=5ms,backend=cpu', '--steps', 'm.kvsteps'))
    assert m['finished'] == 10 and m['output_tokens'] == 80 and m['row_steps'] == 70
    assert m['itl']['min'] > 0.005
    ok('steps', 'm.kvsteps', '--check')
    fails(2, 'counters', args=(*args, '--clock', 'measured:backend=counters'))
    fails(2, 'no route', args=(*args, '--clock', 'measured:route=nope'))


def test_describe_draws():
    import os
    import shutil
    from tap import SOURCE
    if shutil.which('gnuplot') is None:
        raise Skip('no gnuplot')
    log = os.path.join(SOURCE, 'examples', 'azure-conv-slice.csv')
    r = json.loads(ok('workload', 'describe', log, '--json', '--plots', 'p'))
    assert r['requests'] == 1500 and r['prompt_tokens'] == 1600943 and r['output_tokens'] == 385847
    for name in ('rate', 'lengths'):
        for end in ('png', 'svg', 'gp', 'dat'):
            assert os.path.getsize(f'p/{name}.{end}') > 0
    points = [l for l in open('p/lengths.dat') if l[0] not in '#\n']
    assert len(points) == 1500


sys.exit(main(globals()))
