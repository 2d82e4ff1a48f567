"""Bad input and a bad machine: one line that names the place, the right exit status, nothing half-written."""
import os
import shutil
import sys

from tap import Skip, fails, main, ok, run

HEAD = 'TIMESTAMP,ContextTokens,GeneratedTokens\n'
ROW = '2023-11-16 18:15:46.6805900,374,44\n'


def log(text, name='log.csv'):
    with open(name, 'wb') as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    return name


def simulate_fails(text, *needles):
    fails(2, 'log.csv', *needles, args=('simulate', log(text), '--steps', 's.kvsteps'))
    assert not [n for n in os.listdir('.') if n.startswith('s.kvsteps')], os.listdir('.')


def test_missing_column():
    simulate_fails('TIMESTAMP,ContextTokens\n2023-11-16 18:15:46.6805900,374\n', 'GeneratedTokens')


def test_letters_where_a_number_belongs():
    simulate_fails(HEAD + ROW + '2023-11-16 18:15:47.0000000,abc,44\n', ':3', 'abc')


def test_negative_tokens():
    simulate_fails(HEAD + ROW + '2023-11-16 18:15:47.0000000,374,-4\n', ':3', '-4')


def test_overflow():
    simulate_fails(HEAD + '2023-11-16 18:15:47.0000000,99999999999999999999,4\n', ':2',
                   '99999999999999999999')
    simulate_fails(HEAD + '2023-11-16 18:15:47.0000000,3000000000,4\n', ':2', '3000000000')


def test_a_cut_line():
    simulate_fails(HEAD + ROW + '2023-11-16 18:15:4', ':3')


def test_an_impossible_date():
    simulate_fails(HEAD + '2023-02-29 18:15:47.0000000,374,4\n', ':2')


def test_empty_files():
    simulate_fails('')
    simulate_fails(HEAD)


def test_nul_bytes():
    simulate_fails(HEAD.encode() + b'2023-11-16 18:15:47.0000000,3\x0074,4\n', ':2')


def test_a_directory():
    os.mkdir('folder')
    fails(2, 'folder', args=('simulate', 'folder'))


def test_a_missing_file():
    fails(2, 'nowhere.csv', args=('simulate', 'nowhere.csv'))


def test_a_git_lfs_pointer():
    simulate_fails('version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 52283111\n',
                   'git-lfs')


def small_steps():
    ok('simulate', '--arrivals', 'poisson:rate=3', '--lengths', 'fixed:prompt=100,output=50',
       '--requests', 200, '--steps', 's.kvsteps')
    return open('s.kvsteps', 'rb').read()


def test_truncated_steps_file():
    whole = small_steps()
    for cut in (0, 5, len(whole) // 3, len(whole) - 20, len(whole) - 1):
        log(whole[:cut], 'cut.kvsteps')
        fails(2, 'cut.kvsteps', args=('steps', 'cut.kvsteps', '--check'))
        status, _, err = run('replay', 'cut.kvsteps', '--backend', 'counters', '--csv', 'r.csv')
        assert status == 2 and not os.path.exists('r.csv'), err


def test_damaged_steps_file():
    whole = small_steps()
    for at in range(0, len(whole), max(1, len(whole) // 40)):
        bad = bytearray(whole)
        bad[at] ^= 0x55
        log(bytes(bad), 'bad.kvsteps')
        status, _, err = run('steps', 'bad.kvsteps', '--check')
        assert status == 2 and 'bad.kvsteps' in err, (at, status, err)


def test_unwritable_output():
    if os.geteuid() == 0:
        log('in the way', 'file')
        fails(1, 'file', args=('run', log(HEAD + ROW), '--out', 'file/out', '--backend', 'counters'))
        fails(1, args=('run', 'log.csv', '--out', '/proc/none', '--backend', 'counters'))
    else:
        os.mkdir('ro', 0o500)
        fails(1, 'ro', args=('run', log(HEAD + ROW), '--out', 'ro/out', '--backend', 'counters'))


def test_full_disk():
    if not os.path.exists('/dev/full'):
        raise Skip('no /dev/full')
    import subprocess
    from tap import KVREPLAY
    with open('/dev/full', 'w') as full:
        for args in (['list', 'routes'], ['simulate', '--arrivals', 'poisson:rate=3', '--lengths',
                                          'fixed:prompt=100,output=50', '--requests', '9', '--json']):
            p = subprocess.run([KVREPLAY, *args], stdout=full, stderr=subprocess.PIPE)
            assert p.returncode == 1, (args, p.returncode, p.stderr)


def test_missing_gnuplot():
    """Everything but the pictures is there, and the error names the package."""
    log(HEAD + ROW * 3)
    status, out, err = run('run', 'log.csv', '--out', 'o', '--backend', 'counters', '--quiet',
                           env={'PATH': '/nonexistent'})
    assert status == 1 and 'gnuplot' in err, (status, err)
    for name in ('scenario.ini', 'requests.csv', 'steps.kvsteps', 'replay.csv', 'summary.json'):
        assert os.path.exists(os.path.join('o', name)), name
    left = [n for _, _, names in os.walk('o') for n in names if n.endswith('.part')]
    assert left == [], left


def test_wrong_choices_name_what_is_there():
    fails(2, 'vllm-v1', args=('simulate', log(HEAD + ROW), '--scheduler', 'vlm-v1'))
    fails(2, 'budget', args=('simulate', log(HEAD + ROW), '--scheduler', 'vllm-v1:bugdet=3'))
    fails(2, 'linear', args=('simulate', log(HEAD + ROW), '--clock', 'linar'))
    fails(2, 'page-size', '12', args=('simulate', log(HEAD + ROW), '--page-size', '12'))
    fails(2, 'pool-pages', args=('simulate', log(HEAD + ROW), '--pool-pages', '0'))
    fails(2, 'no-such', args=('simulate', '--no-such'))
    fails(2, args=('simulate',))


def test_unknown_command():
    status, _, err = run('rum')
    assert status == 2 and 'rum' in err and 'replay' in err


def test_scenario_file_errors_name_the_line():
    log('[engine]\npage-size=16\npool_pages=3\n', 's.ini')
    fails(2, 's.ini:3', 'pool_pages', args=('simulate', 's.ini'))
    log('[motor]\nx=1\n', 's.ini')
    fails(2, 's.ini:1', 'motor', args=('simulate', 's.ini'))
    log('nonsense\n', 's.ini')
    fails(2, 's.ini', args=('simulate', 's.ini'))


def test_outputs_are_not_inputs():
    small_steps()
    before = open('s.kvsteps', 'rb').read()
    fails(2, 'input itself', args=('steps', 's.kvsteps', '--csv', 's.kvsteps'))
    os.symlink('s.kvsteps', 'link')
    fails(2, 'input itself', args=('replay', 's.kvsteps', '--backend', 'counters', '--csv', 'link'))
    assert open('s.kvsteps', 'rb').read() == before
    log(HEAD + ROW * 3)
    fails(2, 'input itself', args=('simulate', 'log.csv', '--requests-csv', 'log.csv'))
    fails(2, 'input itself', args=('workload', 'convert', 'log.csv', '-o', 'log.csv'))
    fails(2, 'no CSV of this sweep', args=('sweep', 'rate=1', '--arrivals', 'poisson', '--lengths', 'fixed',
                                           '--requests', 5, '--resume', '--out', 'log.csv'))
    assert open('log.csv').read() == HEAD + ROW * 3
    fails(2, 'empty name', args=('simulate', 'log.csv', '--steps='))


def test_outputs_do_not_share_a_name():
    """One would replace the other, or mix with it; told before anything is run."""
    small_steps()
    log(HEAD + ROW * 3)
    os.mkdir('d')
    os.symlink('d', 'e')
    for a, b in (('x', 'x'), ('x', './x'), ('x', os.path.abspath('x')), ('d/x', 'e/x'), ('-', '-')):
        fails(2, 'both want', args=('replay', 's.kvsteps', '--backend', 'counters', '--csv', a, '--calibration', b))
        fails(2, 'both want', args=('simulate', 'log.csv', '--steps', a, '--requests-csv', b))
    fails(2, 'both want', args=('replay', 's.kvsteps', '--backend', 'counters', '--csv', 'x', '--perfetto', 'x'))
    fails(2, 'both want', args=('calibrate', '--backend', 'cpu', '-o', 'x', '--table', 'x'))
    fails(2, 'both want', args=('bench', '--backend', 'cpu', '--csv', 'x', '--calibration', 'x'))
    fails(2, 'input itself', args=('calibrate', '--fit', 'log.csv', '-o', 'log.csv'))
    fails(2, 'input itself', args=('bench', '--judge', 'log.csv', '--csv', 'log.csv'))
    ok('replay', 's.kvsteps', '--backend', 'counters', '--csv', '/dev/null', '--calibration', '/dev/null', '-q')
    assert open('log.csv').read() == HEAD + ROW * 3 and not os.path.exists('x')
    assert not [n for n in os.listdir('.') + os.listdir('d') if n.endswith('.part')]


def test_outputs_are_looked_at_first():
    """What takes long is not to fail at its last line: an hour of --seconds would show."""
    small_steps()
    slow = ('--backend', 'cpu', '--cells', 'len=64k;rows=64')
    for bad in ('', 'no/where/x', 's.kvsteps/x'):
        for args in (('calibrate', *slow, '-o', bad), ('calibrate', *slow, '-o', 'p', '--regions', bad),
                     ('calibrate', *slow, '--table', bad), ('bench', *slow, '--csv', bad),
                     ('replay', 's.kvsteps', '--backend', 'cpu', '--execute', 'all', '--repeats', '100000', '--perfetto', bad)):
            fails(1 if bad else 2, bad or 'an empty name', args=args, timeout=20)
    fails(2, 'no.csv', args=('calibrate', *slow, '--with', 'no.csv'), timeout=20)
    fails(2, 'no.csv', args=('calibrate', *slow, '--judge', 'no.csv'), timeout=20)
    fails(2, 'quick', args=('calibrate', '--backend', 'cpu', '--cells', 'quick,full', '--table', 't.csv'))
    for args in (('paper', '--out', '', '--quick'), ('run', 's.kvsteps', '--out', ''), ('plot', 's.kvsteps', '--out', '')):
        fails(2, 'an empty name', args=args)
    assert sorted(os.listdir('.')) == ['s.kvsteps'], os.listdir('.')


def test_a_limit_on_file_sizes():
    """Reported like a full disk, with nothing under a final name."""
    import resource
    import subprocess
    from tap import KVREPLAY
    small_steps()
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
    p = subprocess.run([KVREPLAY, 'replay', 's.kvsteps', '--backend', 'counters', '--csv', 'r.csv', '-q'], preexec_fn=limit,
                       capture_output=True)
    assert p.returncode == 1 and b'r.csv: writing failed' in p.stderr, (p.returncode, p.stderr)
    assert not os.path.exists('r.csv')


def test_bench_judge_takes_no_other_option():
    for option in (('--cells', 'quick'), ('--rounds', '3'), ('--seconds', '5'), ('--kernel-only',), ('--json',)):
        fails(2, option[0], args=('bench', '--judge', 'x.csv', *option))
    fails(2, '--seed', args=('bench', '--backend', 'cpu', '--seed', '-1'))
    fails(2, 'single is named twice', args=('bench', '--backend', 'cpu', '--cells', 'len=64;rows=1', '--routes', 'single,single'))


def test_impossible_models_and_pools():
    log(HEAD + ROW)
    fails(2, 'nope', args=('simulate', 'log.csv', '--model', 'nope'))
    fails(2, '3 query heads', args=('simulate', 'log.csv', '--q-heads', 3))
    fails(2, 'pool-pages', args=('simulate', 'log.csv', '--pool-pages', 4000000000))
    small_steps()
    fails(2, '--tp 3', args=('replay', 's.kvsteps', '--backend', 'counters', '--tp', 3))


def test_scenario_lines_twice_or_not_text():
    log('[engine]\npage-size=16\npage-size=8\n', 's.ini')
    fails(2, 's.ini:3', 'twice', args=('simulate', 's.ini'))
    log(b'[workload]\nworkload=\xff\xfe\n', 's.ini')
    fails(2, 's.ini:2', 'UTF-8', args=('simulate', 's.ini'))
    log(b'\xef\xbb\xbf[workload]\nworkload=log.csv\n', 's.ini')
    log(HEAD + ROW)
    ok('simulate', 's.ini')


def test_interrupt_between_repeats():
    import signal
    import subprocess
    import time
    from tap import KVREPLAY
    small_steps()
    p = subprocess.Popen([KVREPLAY, 'replay', 's.kvsteps', '--backend', 'cpu', '--execute', '1', '--repeats',
                          '1000000', '-q'], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=60)
    assert p.returncode == 130


sys.exit(main(globals()))
