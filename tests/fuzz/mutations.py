"""Damage to files: bytes changed, cut out, doubled, and put in."""

import io
import zipfile

#: Numbers at the edges of types, and around zero.
EDGES = [0, 1, -1, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1]
EDGES += [2**62, 2**63 - 1, 2**64 - 1, -(2**31), -(2**62)]
#: Pieces of text that mean something to a parser.
TOKENS = [b'"', b"'", b",", b";", b"\t", b"\n", b"\r", b":", b"\0", b"\xff", b"nan"]
TOKENS += [
    b"1e999",
    b"-1:",
    b"0:",
    b"#",
    b"\xef\xbb\xbf",
    b"true",
    b"{",
    b"}",
    b"[",
    b"(",
]


def mutate(data, rng):
    """Return bytes with one to four damages."""
    found = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        if found:
            DAMAGES[int(rng.integers(len(DAMAGES)))](found, rng)
    return bytes(found)


def mutate_inside_archive(data, rng):
    """Return a zip file with a damaged member and right sums, or a damaged file."""
    if rng.random() < 0.3:
        return mutate(data, rng)
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(changed, "w") as new:
        infos = old.infolist()
        chosen = int(rng.integers(len(infos)))
        for number, info in enumerate(infos):
            member = old.read(info)
            if number == chosen:
                member = mutate(member, rng)
            new.writestr(info.filename, member, info.compress_type)
    return changed.getvalue()


def _place(data, rng):
    """Return a place, more often than not among the first or the last bytes."""
    size = len(data)
    near = min(size, 200)
    where = rng.random()
    if where < 0.4:
        return int(rng.integers(near))
    return size - 1 - int(rng.integers(near if where < 0.6 else size))


def _flip(data, rng):
    data[_place(data, rng)] ^= 1 << int(rng.integers(8))


def _replace(data, rng):
    data[_place(data, rng)] = int(rng.integers(256))


def _number(data, rng):
    width = int(rng.choice([1, 2, 4, 8]))
    value = EDGES[int(rng.integers(len(EDGES)))] % 256**width
    place = _place(data, rng)
    data[place : place + width] = value.to_bytes(width, "little")


def _cut(data, rng):
    place = _place(data, rng)
    del data[place : place + int(rng.integers(1, 64))]


def _truncate(data, rng):
    del data[_place(data, rng) :]


def _double(data, rng):
    place = _place(data, rng)
    data[place:place] = data[place : place + int(rng.integers(1, 64))]


def _token(data, rng):
    place = _place(data, rng)
    data[place:place] = TOKENS[int(rng.integers(len(TOKENS)))]


def _digits(data, rng):
    """Put a number in the place of another, as text."""
    place = _place(data, rng)
    data[place : place + 1] = str(EDGES[int(rng.integers(len(EDGES)))]).encode()


DAMAGES = [_flip, _replace, _number, _cut, _truncate, _double, _token, _digits]
