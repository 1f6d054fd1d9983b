"""Fuzz everything that reads input with coverage-guided bytes, for a bounded time.

Each call must raise the documented error or return an ID that writes back the same input; anything else, a crash of
the interpreter above all, ends the run with the input that caused it.
"""

from __future__ import annotations

import argparse
import contextlib
import sys

import atheris

with atheris.instrument_imports():
    from mintage import errors, locality, sno, snowflake
    from mintage.formats import anatomy

DOCUMENTED = (errors.ParseError, errors.FieldError, errors.ConfigError, errors.ArgumentError)


def read_text(text: str) -> None:
    """Feed every parser of text."""
    for scheme in (sno, locality):
        try:
            read = scheme.ID.parse(text)
        except errors.ParseError as error:
            position = error.position
            assert position is None or position < len(text), (text, position)
        else:
            assert str(read) == text.lower(), text
    with contextlib.suppress(DOCUMENTED):
        sno.Snapshot.from_json(text)
    with contextlib.suppress(DOCUMENTED):
        snowflake.Layout(text, epoch_ms=0)
    with contextlib.suppress(DOCUMENTED):
        snowflake.node_from_macs([text])
    with contextlib.suppress(DOCUMENTED):
        anatomy.inspect(text)


def read_bytes(data: bytes) -> None:
    """Feed every reader of bytes."""
    for id_class in (sno.ID, locality.ID):
        try:
            read = id_class.from_bytes(data)
        except errors.ParseError:
            pass
        else:
            assert bytes(read) == data, data
    for array in (sno.Array, locality.Array):
        for read_many in (array, array.parse):
            try:
                ids = read_many(data)
            except errors.ParseError:
                continue
            assert ids.tolist() == list(ids), data
    with contextlib.suppress(DOCUMENTED):
        anatomy.inspect(data)


def one_input(data: bytes) -> None:
    """Test one input of the fuzzer."""
    provider = atheris.FuzzedDataProvider(data)
    if provider.ConsumeBool():
        read_text(provider.ConsumeUnicode(64))
    else:
        read_bytes(provider.ConsumeBytes(64))


def main() -> None:
    """Fuzz for ``--seconds``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    seconds = parser.parse_args().seconds
    # The alphabet, and whole IDs, as seeds: random bytes alone would hardly ever be an ID.
    dictionary = [str(sno.new()), str(locality.new()), "23456789abcdefghijklmnopqrstuvwx", "time:41", "sequence:12"]
    with open("target/fuzz.dict", "w") as file:
        file.writelines(f'"{word}"\n' for word in dictionary)
    flags = [f"-max_total_time={seconds}", "-max_len=128", "-dict=target/fuzz.dict", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *flags, "-artifact_prefix=target/"], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
