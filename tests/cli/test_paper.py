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
    fails(2, 'not with --out', args=('paper', '--counters', '--out', 'p'))
    fails(2, '--trace', args=('paper', '--out', 'p', '--trace', 'zipf'))
    fails(2, 'abacus', args=('paper', '--out', 'p', '--backend', 'abacus'))
    fails(2, '--runtime', 'engine', 'all', args=('paper', '--out', 'p', '--runtime', 'engine'))
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


def layer(*options, folder='p'):
    status, out, err = run('paper', '--out', folder, '--runtime', 'layer', '--backend', 'counters', '--quiet', *options)
    if 'gnuplot is not installed' in err:
        raise Skip('no gnuplot')
    assert status == 0, err
    return table('layer', folder)


def test_whole_steps_are_counted_without_a_gpu():
    rows = layer('--cells', 'len=2k,8k;rows=1,5', '--routes', 'persistent,buckets:s=32')
    assert [(r['cell'], r['batch'], r['bucket'], r['route']) for r in rows] == [
        (c, b, k, r) for c, b, k in [('2K_B1', '1', '1'), ('2K_B5', '5', '8'), ('8K_B1', '1', '1'), ('8K_B5', '5', '8')]
        for r in ['persistent', 'buckets S=32']]
    for r in rows:
        assert r['model'] == 'llama-3.1-8b' and r['layers'] == '32'
        assert not r['step_us'] and not r['attention_share'] and not r['date'], r  # nothing was measured
        assert 'counted' in r['note'] and r['floor_of'].startswith('estimate: h200'), r
        # 131072 bytes a token in all layers, and a query and an output row of 8 KiB in each
        b, n = int(r['batch']), int(float(r['context']))
        assert abs(float(r['attention_mib']) - b * (n * 131072 + 32 * 16384) / 2 ** 20) < 1e-3, r
        # 7.504e9 weights are multiplied, 2 FLOP each and row of the bucket
        assert abs(float(r['gemm_gflop']) - 2 * 7.504658432 * int(r['bucket'])) < 1e-3, r
    for ending in ['png', 'svg', 'dat', 'gp']:
        assert os.path.getsize(f'p/plots/paper_layer.{ending}') > 200
    page = open('p/report.html').read()
    assert 'Whole decode steps' in page and 'Serving traces' not in page
    assert json.load(open('p/layer.json'))['backend'] == 'counters'
    assert not os.path.exists('p/main.csv') and not os.path.exists('p/steps')


def test_both_runtimes_share_a_folder_and_can_be_redrawn():
    counted()
    rows = layer('--quick', '--model', 'llama-3.2-1b', '--model', 'llama-3.1-70b', '--tp', '8')
    assert {(r['model'], r['tp']) for r in rows} == {('llama-3.2-1b', '8'), ('llama-3.1-70b', '8')}
    page = open('p/report.html').read()
    assert 'Whole decode steps' in page and 'Serving traces' in page
    os.remove('p/report.html')
    os.remove('p/plots/paper_layer.svg')
    before = open('p/layer.csv').read()
    ok('paper', '--out', 'p', '--redraw')
    assert open('p/report.html').read() == page and open('p/layer.csv').read() == before
    assert os.path.getsize('p/plots/paper_layer.svg') > 200


def test_a_step_that_does_not_fit_says_the_sums():
    rows = layer('--gpu', 'a10', '--cells', 'len=2k,128k;rows=64', '--routes', 'persistent')
    small, large = rows
    assert int(small['weight_sets']) < 32 and 'in turn' in small['note'] and 'GiB of 24.00' in small['note'], small
    assert large['kv_sets'] == '0' and large['note'].startswith('n/a: not even one'), large


def test_bad_layer_input():
    def bad(code, *needles, args):
        fails(code, *needles, args=('paper', '--out', 'p', '--runtime', 'layer', '--quiet', *args))
        assert not os.path.exists('p/layer.csv')
    bad(1, 'cpu', 'GEMMs', args=('--backend', 'cpu'))
    bad(2, 'gpt-9', 'llama-3.1-8b', args=('--model', 'gpt-9'))
    bad(2, 'none.json', args=('--model', 'none.json'))
    bad(1, 'phi-3-mini', 'head size 96', args=('--model', 'phi-3-mini'))
    bad(2, '--tp 3', args=('--tp', '3'))
    bad(2, '--tp', args=('--tp', '0'))
    bad(2, 'heads=', args=('--cells', 'heads=8:8'))
    bad(2, 'page size', args=('--cells', 'page=16,32'))
    bad(2, '1024 rows', args=('--cells', 'rows=2000'))
    bad(2, 'torus', args=('--routes', 'torus'))
    bad(1, 'flashinfer', args=('--routes', 'flashinfer'))
    bad(2, 'expected 1 to', args=('--routes', ''))
    bad(2, 'single is named twice', args=('--routes', 'single,single'))
    bad(2, 'empty', args=('--cells', ''))
    bad(2, 'once', args=('--cells', 'rows=4,4'))
    bad(2, 'twice', args=('--model', 'llama-3.2-1b', '--model', 'llama-3.2-1b'))
    bad(2, 'folder', args=('--model', '/'))
    # with the experiments too: told before they are run
    fails(2, 'torus', args=('paper', '--out', 'p', '--runtime', 'all', '--quiet', '--routes', 'torus'), timeout=20)
    assert not os.path.exists('p/counters.csv')
    bad(2, 'abacus', args=('--gpu', 'abacus'))
    bad(2, '--sampling', args=('--sampling', 'beam'))
    bad(2, '--seed', args=('--seed', '-1'))
    for option in [('--model', 'llama-3.1-8b'), ('--tp', '1'), ('--cells', 'quick'), ('--routes', 'single'),
                   ('--gpu', 'h100'), ('--sampling', 'argmax')]:
        fails(2, option[0], '--runtime layer', args=('paper', '--out', 'p', *option))
    fails(2, '--quick', '--redraw', args=('paper', '--out', 'p', '--redraw', '--quick'))


def test_damaged_tables_are_not_drawn():
    layer('--quick')
    good, good_json = open('p/layer.csv').read(), open('p/layer.json').read()
    head, first = good.splitlines()[:2]
    damage = [('', ':1'), (head + '\n', 'no line follows'), (good[:len(head) + 100], ':2'), (head + '\n' + '"' + first + '\n', ':2'),
              (good.replace(',1,1,', ',x,1,', 1), ":2: column batch: 'x'"), (good.replace('model', 'mdl', 1), "no column 'model'")]
    for text, needle in damage:
        open('p/layer.csv', 'w').write(text)
        fails(2, 'p/layer.csv', needle, args=('paper', '--out', 'p', '--redraw'))
    open('p/layer.csv', 'w').write(good)
    for text, needle in [('', ':1: empty'), ('[]', 'no object'), ('{\n"a" }', ':2: not JSON')]:
        open('p/layer.json', 'w').write(text)
        fails(2, 'p/layer.json', needle, args=('paper', '--out', 'p', '--redraw'))
    open('p/layer.json', 'w').write('{"device": {"name": [1]}, "backend": {}, "quick": "x", "max_abs_err": {}}')
    status, out, err = run('paper', '--out', 'p', '--redraw')  # odd members are left out
    assert status == 0 and err == '', err
    os.remove('p/layer.json')
    fails(2, 'layer.json', 'p:', args=('paper', '--out', 'p', '--redraw'))
    fails(2, 'nowhere', args=('paper', '--out', 'nowhere', '--redraw'))
    assert not os.path.exists('nowhere')


def test_without_gnuplot_all_but_the_pictures():
    status, out, err = run('paper', '--out', 'p', '--runtime', 'layer', '--quick', '--quiet', env={'PATH': '/nonexistent'})
    assert status == 1 and 'gnuplot-nox' in err, err
    assert 'Whole decode steps' in open('p/report.html').read()
    assert os.path.exists('p/layer.csv') and os.path.exists('p/layer.json') and os.path.exists('p/plots/paper_layer.gp')


def test_scripts_alone_where_there_is_no_gnuplot():
    here = {'PATH': '/nonexistent'}
    status, out, err = run('paper', '--out', 'p', '--quick', '--backend', 'counters', '--quiet', '--scripts', env=here)
    assert status == 0 and 'gnuplot' not in err, (status, err)
    assert os.path.exists('p/main.csv') and os.path.exists('p/report.html')
    drawn = {f.rsplit('.', 1)[1] for f in os.listdir('p/plots')}
    assert drawn == {'dat', 'gp'}, drawn
    status, out, err = run('paper', '--out', 'p', '--redraw', '--scripts', env=here)
    assert status == 0 and not [f for f in os.listdir('p/plots') if f.endswith('.png')], (status, err)
    ok('paper', '--out', 'p', '--redraw')
    assert os.path.getsize('p/plots/paper_times.png') > 200 and 'data:image/svg' in open('p/report.html').read()
    fails(2, '--scripts', '--out', args=('paper', '--counters', '--scripts'))


def test_two_config_files_are_told_apart():
    import json
    config = {'num_hidden_layers': 2, 'hidden_size': 1024, 'num_attention_heads': 8, 'num_key_value_heads': 2, 'head_dim': 128,
              'intermediate_size': 2048, 'vocab_size': 1000}
    for name in ('a.json', 'b.json'):
        json.dump(config, open(name, 'w'))
    rows = layer('--quick', '--model', 'a.json', '--model', 'b.json')
    assert {r['model'] for r in rows} == {'a.json', 'b.json'}


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
