"""Mutated manifests: nothing but a ManifestError, and none slower than 50 ms.

Each input is a correct manifest that was damaged: bytes and lines changed, dropped, doubled or swapped, tokens of TOML
put in, values exchanged, keys nested or repeated. A seed makes an input the same everywhere.

    python -m benchmarks.fuzz_manifests --count 100000 [--seed 0]
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from compat_patches import manifest
from compat_patches.errors import ManifestError

ROOT = Path(__file__).resolve().parent.parent
SEEDS = [
    (ROOT / "patches.toml").read_bytes(),
    (ROOT / "examples" / "acme-compat" / "acme_compat" / "patches.toml").read_bytes(),
    b'[manifest]\nname = "a"\nschema = 1\n[[patch]]\nid = "b"\nsummary = "s"\nwhy = "w"\nupstream = ["u"]\n'
    b'remove_when = "r"\naction = "env"\nkey = "A"\nvalue = "1"\n',
]
BUDGET = 0.050
"""Seconds."""
TOKENS = [
    *b"[ ] [[ ]] { } = . , # \" ' \\ \n \r \x00 \xff \xef\xbb\xbf \"\"\" ''' inf nan -0".split(b" "),
    *b"\\u0000 \\U0010ffff \\ud800 \xed\xa0\x80".split(b" "),
    *b"1e999 1979-05-27T07:32:00Z 99:99:99 true [[patch]]\n [[patch.step]]\n [manifest]\n [patch.needed_if]\n".split(
        b" "
    ),
    *b"step=[]\n pins={}\n after=['a']\n conflicts=['m/a']\n needed_if={probe='a:b'}\n requires=['torch>=2']\n".split(
        b" "
    ),
    *b"build=['cpu']\n marker='a'\n skip_if_marked='_x'\n".split(b" "),
    *(
        b"x" * 5000,
        b"1" * 5000,
        b"0x" + b"f" * 300,
        b"[" * 200,
        b"a." * 300,
        b"{a=" * 100,
        b"=\n" * 50,
        b'"' + b"\\" * 99,
    ),
    b"sample='f(" + b"(" * 50 + b"'\n",
]


def inputs(count: int, seed: int = 0) -> Iterator[bytes]:
    """Damaged manifests; the same for the same seed."""
    randomness = random.Random(seed)
    for _ in range(count):
        data = bytearray(randomness.choice(SEEDS))
        # Mostly a part of a manifest: what is short is checked further.
        if randomness.random() < 0.7:
            parts = bytes(data).split(b"[[patch]]")
            data = bytearray(b"[[patch]]".join([parts[0], *randomness.sample(parts[1:], min(2, len(parts) - 1))]))
        for _ in range(randomness.choice((1, 1, 2, 3, 8))):
            _damage(data, randomness)
        yield bytes(data)


def _damage(data: bytearray, randomness: random.Random) -> None:
    place = randomness.randrange(len(data) + 1)
    match randomness.randrange(7):
        case 0:
            data[place:place] = randomness.choice(TOKENS)
        case 1:
            del data[place : place + randomness.choice((1, 2, 10, 100))]
        case 2:
            data[place : place + 1] = bytes([randomness.randrange(256)])
        case 3:
            length = randomness.choice((1, 10, 100))
            data[place:place] = data[place : place + length] * randomness.choice((1, 2, 20))
        case _:
            lines = bytes(data).split(b"\n")
            one, other = randomness.randrange(len(lines)), randomness.randrange(len(lines))
            match randomness.randrange(4):
                case 0:
                    lines[one], lines[other] = lines[other], lines[one]
                case 1:
                    del lines[one]
                case 2:
                    lines.insert(one, randomness.choice(TOKENS))
                case 3:
                    # The key of one and the value of another.
                    lines[one] = lines[one].partition(b"=")[0] + b"=" + lines[other].partition(b"=")[2]
            data[:] = b"\n".join(lines)


def outcome(data: bytes) -> tuple[str, float]:
    """ "loaded" or "refused", and the seconds of this thread's processor time that it took.

    Raises:
        Exception: what must not happen.
    """
    begin = time.thread_time()
    try:
        manifest.parse(data, "fuzzed")
        found = "loaded"
    except ManifestError as error:
        str(error)
        found = "refused"
    return found, time.thread_time() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts = {"loaded": 0, "refused": 0, "broken": 0}
    slowest, slow = (0.0, -1), 0
    outcome(SEEDS[0])  # Imports what checking needs.
    for number, data in enumerate(inputs(options.count, options.seed)):
        try:
            found, seconds = outcome(data)
        except Exception as error:
            counts["broken"] += 1
            print(f"input {number}: {type(error).__name__}: {error}")
            continue
        counts[found] += 1
        if seconds > BUDGET:
            # Somebody else's work on this machine can only make it slower.
            seconds = min(seconds, *(outcome(data)[1] for _ in range(3)))
        slow += seconds > BUDGET
        slowest = max(slowest, (seconds, number))
        if sys.stderr.isatty() and number % 1000 == 0:
            print(f"\r{number} of {options.count}", end="", file=sys.stderr)
    told = ", ".join(f"{number} {name}" for name, number in counts.items())
    print(f"{options.count} inputs: {told}; slower than {BUDGET * 1e3:.0f} ms: {slow}")
    print(f"the slowest, input {slowest[1]}, took {slowest[0] * 1e3:.1f} ms, budget {BUDGET * 1e3:.0f} ms")
    return int(counts["broken"] > 0 or slow > 0)


if __name__ == "__main__":
    sys.exit(main())
