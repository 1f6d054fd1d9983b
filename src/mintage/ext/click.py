"""IDs as parameters of a command line of Click or Typer."""

from __future__ import annotations

from typing import Any, Final

from mintage.errors import MintError
from mintage.formats.annotations import kind_of
from mintage.installation import missing

try:
    import click
except ModuleNotFoundError as error:
    raise missing(error, "click") from None

__all__ = ["IDType"]


class IDType(click.ParamType):  # type: ignore[type-arg]  # before Click 8.5 it is not generic
    """A type of parameters that converts text to IDs.

    Write ``IDType(sno.ID)``, ``IDType("nanoid")`` or ``IDType(snowflake.Str(layout))``. In Typer, write
    ``Annotated[sno.ID, typer.Option(parser=sno.ID.parse)]``, or ``parser=IDType(snowflake.Str()).read``. A Typer that
    uses Pydantic, such as 0.29, needs only ``id: sno.ID``.

    >>> import click
    >>> from click.testing import CliRunner
    >>> from mintage import sno
    >>> from mintage.ext.click import IDType
    >>> @click.command
    ... @click.argument("order", type=IDType(sno.ID))
    ... def show(order: sno.ID) -> None:
    ...     click.echo(f"{order} has the metabyte {order.meta}")
    >>> print(CliRunner().invoke(show, ["brpk4q72xwf2m63l"]).output)
    brpk4q72xwf2m63l has the metabyte 255
    <BLANKLINE>

    :param of: a class of IDs; the name of a scheme, or ``typeid``; :class:`mintage.snowflake.Str`; or
        :class:`~mintage.ext.kinds.TypeID` for TypeIDs of one prefix.
    :raises ArgumentError: ``argument.type``: it is none of these.
    """

    def __init__(self, of: Any) -> None:
        self.kind: Final = kind_of(of)
        self.name = self.kind.name

    def read(self, text: str) -> Any:
        """Return the ID of a text, for Typer's ``parser``.

        :raises MintError: it is no ID.
        """
        return self.kind.read(text)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the ID of a value, or make Click show the error with the usage."""
        try:
            return self.kind.read(value)
        except MintError as error:
            self.fail(str(error), param, ctx)

    def __repr__(self) -> str:
        return f"IDType({self.name!r})"
