"""A few lines of TAP: functions named test_* run in order, each in an empty folder."""
import os
import shutil
import subprocess
import sys
import tempfile
import traceback

KVREPLAY = os.path.abspath(sys.argv[1])
SOURCE = os.path.abspath(sys.argv[2])


class Skip(Exception):
    """Raised by a test that cannot run here; the text says why."""


def run(*args, stdin=None, env=None, timeout=300):
    """Runs kvreplay; returns (exit status, stdout, stderr)."""
    full = dict(os.environ, LC_ALL='C.UTF-8', **(env or {}))
    p = subprocess.run([KVREPLAY, *map(str, args)], input=stdin, capture_output=True, env=full,
                       timeout=timeout)
    return p.returncode, p.stdout.decode(), p.stderr.decode(errors='replace')


def ok(*args, **kw):
    """Runs kvreplay, asserts success, returns stdout."""
    status, out, err = run(*args, **kw)
    assert status == 0, f'exit {status} from {args}: {err}'
    return out


def fails(status, *needles, args, **kw):
    """Asserts the exit status, one line of error, and that it names each needle."""
    got, out, err = run(*args, **kw)
    assert got == status, f'exit {got}, expected {status}, from {args}: {err}'
    lines = [l for l in err.splitlines() if l.startswith('kvreplay ')]
    assert len(lines) == 1, f'expected one error line, got: {err!r}'
    for n in needles:
        assert str(n) in lines[0], f'{n!r} not in {lines[0]!r}'
    return lines[0]


def data(*parts):
    return os.path.join(SOURCE, 'tests', *parts)


def main(namespace):
    tests = [(n, f) for n, f in namespace.items() if n.startswith('test_') and callable(f)]
    print(f'1..{len(tests)}')
    failed = 0
    for i, (name, function) in enumerate(tests, 1):
        folder = tempfile.mkdtemp(prefix='kvreplay-test-')
        os.chdir(folder)
        try:
            function()
            print(f'ok {i} {name}')
        except Skip as why:
            print(f'ok {i} {name} # SKIP {why}')
        except BaseException:  # a time-out or a failed assert is this test's failure
            failed += 1
            print(f'not ok {i} {name}')
            print('# ' + traceback.format_exc().replace('\n', '\n# '))
        finally:
            os.chdir('/')
            subprocess.run(['chmod', '-R', 'u+rwx', folder])
            shutil.rmtree(folder, ignore_errors=True)
        sys.stdout.flush()
    return 1 if failed else 0
