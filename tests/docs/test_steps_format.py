"""docs/steps-file.md is enough to read a steps file: a second reader, written from that page alone,
agrees with `kvreplay steps` on every step and on block tables.

usage: test_steps_format.py KVREPLAY SOURCE-ROOT
"""
import csv
import ctypes
import ctypes.util
import io
import json
import os
import struct
import subprocess
import sys
import zlib

KVREPLAY, ROOT = sys.argv[1:3]
FILES = os.path.join(ROOT, "tests", "fuzz", "corpus", "steps")
ZSTD = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
ZSTD.ZSTD_decompress.restype = ctypes.c_size_t
ZSTD.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]


def unzstd(stored, size):
    raw = ctypes.create_string_buffer(size + 1)
    assert ZSTD.ZSTD_decompress(raw, size, stored, len(stored)) == size
    return raw.raw[:size]


class Frame:
    """Variable-length integers, with the predictors that run through a frame."""

    def __init__(self, raw):
        self.raw, self.at, self.request, self.page = raw, 0, 0, 0

    def number(self):
        value = shift = 0
        while True:
            byte = self.raw[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self):
        folded = self.number()
        return folded >> 1 if folded % 2 == 0 else -(folded >> 1) - 1

    def take_request(self):
        self.request += self.signed()
        return self.request

    def take_page(self):
        self.page += self.signed()
        return self.page

    def row(self):
        request, slot, length, pages = (self.take_request(), self.number(), self.number(), self.number())
        return slot, {"request": request, "length": length, "paused": False,
                      "pages": [self.take_page() for _ in range(pages)]}

    def slots(self):
        slot, found = 0, []
        for _ in range(self.number()):
            slot += self.signed()
            found.append(slot)
        return found


def key_state(frame):
    end, rows = frame.signed(), {}
    for _ in range(frame.number()):
        slot, row = frame.row()
        row["paused"] = frame.number() == 1
        rows[slot] = row
    return end, rows


def apply_deltas(frame, flags, rows):
    """Returns (rows left, joined, appended, prefill tokens)."""
    left = frame.slots() if flags & 4 else []
    for slot in left:
        del rows[slot]
    for slot in frame.slots() if flags & 8 else []:
        rows[slot]["paused"] = True
    for slot in frame.slots() if flags & 16 else []:
        rows[slot]["paused"] = False
    joined = dict(frame.row() for _ in range(frame.number())) if flags & 32 else {}
    for slot in rows:
        rows[slot]["length"] += not rows[slot]["paused"]
    rows.update(joined)
    slot = appended = prefill = 0
    for _ in range(frame.number() if flags & 64 else 0):
        slot += frame.signed()
        rows[slot]["pages"].append(frame.take_page())
        appended += 1
    for _ in range(frame.number() if flags & 128 else 0):
        frame.take_request(), frame.number()
        prefill += frame.number()
        frame.number()
    return len(left), len(joined), appended, prefill


def read_frame(frame, steps, first):
    end, rows = key_state(frame)
    duration = waiting = used = held = 0
    for step in range(first, first + steps):
        flags = frame.raw[frame.at]
        frame.at += 1
        start = end + (frame.signed() if flags & 1 else 0)
        duration += frame.signed()
        state = [frame.signed() for _ in range(3)] if flags & 2 else [0, 0, 0]
        left, joined, appended, prefill = apply_deltas(frame, flags, rows)
        lengths = [r["length"] for r in rows.values() if not r["paused"]]
        waiting, used, held = (waiting + state[0], used + state[1] + appended,
                               held + state[2] + len(lengths))
        end = start + duration
        yield {"step": step, "start_ns": start, "duration_ns": duration, "rows": len(lengths),
               "paused": len(rows) - len(lengths), "prefill_tokens": prefill,
               "max_len": max(lengths, default=0), "sum_len": sum(lengths), "waiting": waiting,
               "pages_used": used, "tokens_held": held, "left": left, "joined": joined,
               "appended": appended}, rows
    assert frame.at == len(frame.raw)


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    assert data[:10] == b"kvsteps 1\n"
    size, = struct.unpack_from("<I", data, 10)
    head, at = data[14:14 + size], 18 + size
    assert struct.unpack_from("<I", data, 14 + size)[0] == zlib.crc32(head)
    json.loads(head)
    index = at
    while data[at:at + 4] == b"KVSF":
        steps, first, raw, stored, crc = struct.unpack_from("<IQIII", data, at + 4)
        body = data[at + 28:at + 28 + stored]
        assert crc == zlib.crc32(data[at:at + 24] + body)
        yield from read_frame(Frame(unzstd(body, raw)), steps, first)
        at += 28 + stored
        index = at
    assert data[at:at + 4] == b"KVSI"
    assert struct.unpack("<Q8s", data[-16:]) == (index, b"KVSEND1\n")


def ask(*words):
    return subprocess.run([KVREPLAY, "steps", *words], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def check(path):
    expected = list(csv.DictReader(io.StringIO(ask(path, "--csv", "-"))))
    middle, count = len(expected) // 2, 0
    for want, (step, rows) in zip(expected, read(path), strict=True):
        for key, value in step.items():
            assert int(want[key]) == value, (key, want, step)
        if count == middle and rows:
            text = ask(path, "--rows", str(count))
            for slot, row in rows.items():
                line = "slot %d request %d length %d" % (slot, row["request"], row["length"])
                assert line in text and json.dumps(row["pages"], separators=(",", ":")) in text, line
        count += 1
    assert count == len(expected) > 0


names = sorted(os.listdir(FILES))
print("1..%d" % len(names))
for number, name in enumerate(names, 1):
    try:
        check(os.path.join(FILES, name))
        print("ok %d %s" % (number, name))
    except (AssertionError, KeyError, IndexError, ValueError, struct.error) as fault:
        print("not ok %d %s\n# %r" % (number, name, fault))
