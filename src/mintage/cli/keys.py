"""``mintage keys``: make keys for the callers of the service."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence

from mintage.cli.command import JSON, UsageError, command, group, option


def _grant(text: str) -> tuple[str, list[str]]:
    pattern, mark, rights = text.rpartition("=")
    if not mark:
        raise argparse.ArgumentTypeError(f"{text!a} is not PATTERN=RIGHT,RIGHT")
    return pattern, rights.split(",")


@command(
    "new",
    option("name", metavar="NAME", help="the name of the caller in logs and metrics"),
    option(
        "--right",
        dest="rights",
        type=_grant,
        action="append",
        metavar="PATTERN=RIGHT,RIGHT",
        help="the rights of the key on the names of a pattern; repeat it for another pattern (default: *=next)",
    ),
    JSON,
    examples="""
  mintage keys new shop
  mintage keys new shop --right 'orders*=next,describe' --right sno=mint
  mintage keys new operator --right '*=admin' --json""",
)
def _new(args: argparse.Namespace) -> int:
    """Make a key, and print it with the lines of the configuration file that accept it.

    The command shows the key only once, because the file has only its SHA-256. A pattern is a name, the beginning of
    names followed by *, or * for all names. The name is a namespace for the rights next, reserve, describe and create,
    a scheme for mint, and a pool for lease, describe and create. The rights metrics and admin need the pattern *.
    """
    from mintage.server.config.keys import check_key_name, check_rights, digest, new_key

    check_key_name(args.name)
    rights: dict[str, list[str]] = {}
    for pattern, granted in args.rights or [("*", ["next"])]:
        check_rights(pattern, granted)
        if pattern in rights:
            raise UsageError(f"{pattern!a} has its rights twice; write {pattern}=RIGHT,RIGHT once")
        rights[pattern] = granted
    key = new_key()
    lines = _toml(args.name, digest(key), rights)
    if args.json:
        facts = {"name": args.name, "key": key, "hash": digest(key), "rights": rights, "toml": "\n".join(lines)}
        print(json.dumps(facts))
        return 0
    print(f"the key, shown only now:\n\n  {key}\n\nfor the configuration file:\n")
    for line in lines:
        print(f"  {line}")
    return 0


def _toml(name: str, digest: str, rights: Mapping[str, Sequence[str]]) -> list[str]:
    # Names and patterns have no character that TOML escapes.
    granted = ", ".join(f'"{pattern}" = {json.dumps(list(each))}' for pattern, each in rights.items())
    table = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
    return [f"[keys.{table}]", f'hash = "{digest}"', f"rights = {{ {granted} }}"]


keys = group("keys", "Make keys for the callers of the service.", _new)
