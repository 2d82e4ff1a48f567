"""The published experiments as a folder: tables, pictures, report; and what is refused."""
import csv
import json
import os
import stat
import sys

from tap import Skip, fails, main, ok, run

TABLES = ['main', 'ratios', 'isolated', 'splits', 'gqa', 'merge', 'graph', 'plan', 'padding', 'corrected']
ROUTES = {'single', 'buckets', 'masked', 'workqueue', 'workqueue-fused', 'persistent'}


def table(name, folder='p'):
    with open(os.path.join(folder, name + '.csv'), newline='') as f:
        return list(csv.DictReader(f))


def counted():
    """A folder in which nothing was executed: quick, and enough for every count."""
    status, out, err = run('paper', '--out', 'p', '--quick', '--backend', 'counters', '--quiet')
    if 'gnuplot is not installed' in err:
        raise Skip('no gnuplot')
    assert status == 0, err


def test_every_printed_counter_is_matched():
    counted()
    rows = table('counters')
    printed = [r for r in rows if r['match'] != '']
    assert len(printed) == 2 * 12, len(printed)  # buckets and work queue of twelve runs
    assert all(r['match'] == 'yes' for r in printed), [r for r in printed if r['match'] != 'yes']
    # Not by our own flag alone: the texts beside one another.
    for r in printed:
        for ours, theirs in [('physical_pages', 'published_pages'), ('kv_mib_per_step', 'published_kv_mib'),
                             ('launches_per_step', 'published_launches'), ('cta_per_sm', 'published_cta_per_sm'),
                             ('merge_mib_per_step', 'published_merge_mib'),
                             ('merge_launches_per_step', 'published_merge_launches')]:
            digits = len(r[theirs].partition('.')[2])
            slack = 0.5 * 10 ** -(3 if ours == 'kv_mib_per_step' else digits)
            assert abs(float(r[ours]) - float(r[theirs])) <= slack * (1 + 1e-6), (ours, r)
    seeds = {(r['trace'], r['max_active'], r['seed']) for r in rows}
    assert len(seeds) == 6 * 6, len(seeds)  # six experiments; calibration and five held-out seeds
    calibration = [r for r in rows if r['set'] == 'calibration' and r['route'] == 'single']
    pages = {(r['trace'], r['max_active']): r['physical_pages'] for r in calibration}
    assert pages == {('bucketed', '1'): '30790', ('bimodal', '8'): '25828', ('uniform', '8'): '26265',
                     ('zipf', '8'): '31136', ('bimodal', '4'): '14954', ('homogeneous', '4'): '32838'}, pages


def test_no_line_mixes_two_machines():
    counted()
    for name in TABLES:
        for r in table(name):
            published = r['device'] == 'published, RTX 3060'
            assert published or 'RTX' not in r['device'], r
            if not published:  # nothing was executed here
                assert not r.get('event_ms') and not r.get('wall_ms') and not r.get('event_ratio'), r
    isolated = {(r['case'], r['route']): r['event_ms'] for r in table('isolated')}
    assert float(isolated['8K', 'FlashInfer 0.2.5']) == 0.1194
    ratios = {(r['trace'], r['what']): r['wall_ratio'] for r in table('ratios') if r['max_active'] != '4'}
    assert float(ratios['bimodal', 'published, first version']) == 1.265
    assert float(ratios['bimodal', 'published, latest version']) == 1.080


def test_policies_say_what_they_chose():
    counted()
    chosen = {(r['trace'], r['max_active'], r['name']): r['chosen'] for r in table('main') if r['kind'] == 'policy'}
    assert chosen['bucketed', '1', 'paper-v1'] == 'buckets S=32 320/320', chosen
    # The later gate wants 16384 tokens: most one-row steps of this trace are shorter.
    assert 'workqueue-fused S=24 313/320' in chosen['bucketed', '1', 'paper-v2'], chosen
    assert chosen['zipf', '8', 'paper-v1'] == 'workqueue S=28 240/240', chosen


PROFILE = {'kvreplay_profile': 1, 'device': 'a test card', 'workers': 112,
           'cost': {'bandwidth_gbps': 300, 'launch_us': 3, 'cmin': 64, 'routes': {}},
           'learned': {'worker_gbps': 6, 'routes': {
               'single': {'fixed_us': 5, 'launch_us': 0, 'stream': 1, 'tail': 0, 'merge': 0, 'wave_us': 0},
               'persistent': {'fixed_us': 9, 'launch_us': 0, 'stream': 1, 'tail': 0, 'merge': 0, 'wave_us': 0}}}}


def test_cost_models_stand_beside_the_published_gates():
    counted()
    rows = {(r['trace'], r['max_active'], r['name']): r for r in table('main') if r['kind'] == 'policy'}
    assert {k[2] for k in rows} == {'paper-v1', 'paper-v2', 'cost', 'learned'}
    r = rows['zipf', '8', 'learned']
    assert r['chosen'] == '' and '--profile' in r['note'], r
    assert 'guess' in rows['zipf', '8', 'cost']['note']
    assert 'workqueue-fused' in rows['zipf', '8', 'paper-v2']['note']
    with open('card.json', 'w') as f:
        json.dump(PROFILE, f)
    ok('paper', '--out', 'q', '--quick', '--backend', 'counters', '--quiet', '--profile', 'card.json')
    rows = {(r['trace'], r['max_active'], r['name']): r for r in table('main', 'q') if r['kind'] == 'policy'}
    r = rows['bucketed', '1', 'learned']  # eight tasks of one row are slow: the other one is taken
    assert r['chosen'] == 'persistent 320/320' and r['note'] == '', r
    assert rows['bucketed', '1', 'cost']['note'] == ''
    assert rows['bucketed', '1', 'paper-v1']['chosen'] == 'buckets S=32 320/320'
    assert {(x['trace'], x['policy']) for x in table('ratios', 'q')} >= {('zipf', 'cost'), ('zipf', 'learned')}


def test_studies_cover_their_settings():
    counted()
    padding = [(r['route'], float(r['launches_per_step'])) for r in table('padding')]
    assert [p[0] for p in padding] == ['exact', '2K', '4K', '8K', '16K', '32K', 'single']
    assert padding[0][1] == 16 and padding[-1][1] == 2
    assert all(a[1] >= b[1] for a, b in zip(padding, padding[1:])), padding
    assert {r['case'] for r in table('corrected')} == {'16K', '32K', '64K', '128K'}
    for r in table('corrected'):  # as long as they are called: 4 KiB a token
        assert float(r['kv_mib_per_step']) >= int(r['case'][:-1]) * 4, r
    assert {r['case'] for r in table('gqa')} == {'G=1', 'G=4', 'G=8'}
    names = [r['route'] for r in table('splits')]
    assert names == ['buckets S=28', 'buckets S=32', 'buckets S=36', 'buckets balanced',
                     'workqueue S=16', 'workqueue S=20', 'workqueue S=24', 'workqueue balanced']
    assert all('GPU' in r['note'] for r in table('graph')), table('graph')


def test_the_folder_is_whole_and_self_contained():
    counted()
    for name in ['times', 'launches', 'merge', 'splits', 'padding', 'corrected']:
        for ending in ['png', 'svg', 'dat', 'gp']:
            path = f'p/plots/paper_{name}.{ending}'
            assert os.path.getsize(path) > 200, path
    page = open('p/report.html').read()
    assert 'http://' not in page.replace('http://www.w3.org', '') and 'src="plots' not in page
    assert '24 of 24' in page and 'published, RTX 3060' in page
    assert not [f for _, _, files in os.walk('p') for f in files if f.endswith('.part')]
    summary = json.load(open('p/summary.json'))
    assert summary['backend'] == 'counters' and summary['executions_checked'] == 0


def test_counts_are_the_same_bytes_again():
    counted()
    first = {n: open(f'p/{n}.csv', 'rb').read() for n in TABLES + ['counters']}
    counted()
    assert first == {n: open(f'p/{n}.csv', 'rb').read() for n in TABLES + ['counters']}


def test_bad_input():
    fails(2, 'sinus', args=('paper', '--counters', '--trace', 'sinus'))
    fails(2, '--splits', '0', args=('paper', '--counters', '--trace', 'zipf', '--splits', '0'))
    fails(2, 'seed', '4294967296', args=('paper', '--counters', '--trace', 'zipf', '--seed', '4294967296'))
    fails(2, 'seed', '-1', args=('paper', '--counters', '--trace', 'zipf', '--seed', '-1'))
    fails(2, '--max-active', args=('paper', '--counters', '--trace', 'zipf', '--max-active', '0'))
    fails(2, '--counters or --out', args=('paper',))
    fails(2, '--counters or --out', args=('paper', '--counters', '--out', 'p'))
    fails(2, '--trace', args=('paper', '--out', 'p', '--trace', 'zipf'))
    fails(2, 'abacus', args=('paper', '--out', 'p', '--backend', 'abacus'))
    fails(2, '--runtime', 'engine', args=('paper', '--out', 'p', '--runtime', 'engine'))
    fails(2, '--layers', args=('paper', '--out', 'p', '--layers', '0'))
    fails(2, 'none.json', args=('paper', '--out', 'p', '--profile', 'none.json'))
    fails(2, '--requests', args=('paper', '--counters', '--trace', 'zipf', '--requests', '0'))
    fails(2, '--steps', args=('paper', '--counters', '--trace', 'zipf', '--steps', '-1'))
    assert not os.path.exists('p')


def test_no_option_is_ignored():
    for option in [('--trace', 'zipf'), ('--max-active', '8'), ('--seed', '20260623'), ('--requests', '4'),
                   ('--steps', '0'), ('--splits', '8'), ('--steps-file', 'f'), ('--json',)]:
        fails(2, option[0], '--counters', args=('paper', '--out', 'p', *option))
    for option in [('--quick',), ('--backend', 'cpu'), ('--runtime', 'attention'), ('--profile', 'f'),
                   ('--layers', '32'), ('--device', '0')]:
        fails(2, option[0], '--out', args=('paper', '--counters', '--trace', 'zipf', *option))
    for option in [('--json',), ('--steps-file', 'f'), ('--max-active', '8')]:
        fails(2, option[0], '--trace', args=('paper', '--counters', *option))
    assert not os.path.exists('p')


def test_the_layer_runtime_says_what_is_missing():
    fails(1, 'cuBLAS', args=('paper', '--out', 'p', '--runtime', 'layer'))
    assert not os.path.exists('p')


def test_a_folder_that_cannot_be_made():
    open('file', 'w').close()
    fails(1, 'file', args=('paper', '--out', 'file/p', '--quick', '--backend', 'counters'))
    if os.geteuid() == 0:
        return  # nothing is unwritable for root
    os.mkdir('locked')
    os.chmod('locked', stat.S_IRUSR | stat.S_IXUSR)
    fails(1, 'locked', args=('paper', '--out', 'locked/p', '--quick', '--backend', 'counters'))


if __name__ == '__main__':
    sys.exit(main(globals()))
