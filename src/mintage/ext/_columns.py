"""Arguments of the functions on data frames, which all engines share: generators, names of columns, and frames."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from mintage._core import defaults
from mintage.errors import ArgumentError, ConfigError, FieldError
from mintage.formats.kinds import KINDS
from mintage.formats.values import type_name


def generator_of(generator: object) -> Any:
    """Return a generator as it is, or the default one of a scheme by its name or module.

    :raises ArgumentError: it is something else, such as a function, which an engine may call any number of times.
    :raises ConfigError: ``config.policy``: no such scheme.
    """
    name = generator
    if isinstance(generator, ModuleType) and generator.__name__.startswith("mintage."):
        name = generator.__name__.removeprefix("mintage.")
    if isinstance(name, str):
        if name not in KINDS:
            message = f"generator {name!a:.40} is not one of {', '.join(KINDS)}"
            raise ConfigError(message, code="config.policy")
        of = KINDS[name].module.Generator  # first, as this may import the module, which creates its generator
        # The generator that `new` uses now: a test may have replaced it.
        return next(each for each in defaults() if isinstance(each, of))
    if type(generator).__module__.partition(".")[0] != "mintage" or not hasattr(generator, "batch"):
        message = (
            f"generator must be one of mintage's, or a scheme's name, not {type_name(type(generator))}: "
            "one batch fills a column, not a function that is called for each row"
        )
        raise ArgumentError(message, code="argument.type")
    return generator


def check_name(name: object, taken: Any) -> None:
    """Refuse a name of a column that a frame has already.

    :raises ArgumentError: the name is not str.
    :raises FieldError: ``field.format``: there is a column of that name.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"name must be str, not {type_name(type(name))}", code="argument.type")
    if name in taken:
        message = f"there is a column {name!a:.40} already: drop it, or give another name"
        raise FieldError(message, code="field.format")


def refused(frame: object, takes: str, hint: str = "") -> ArgumentError:
    """Return the error for a value that is no frame of an engine.

    :param frame: the value.
    :param takes: the accepted types.
    :param hint: for a plan of the engine, how to run it first.
    """
    lazily = ": it is a plan, which may run more than once, or in pieces, and each run would mint other IDs; " + hint
    message = f"frame must be {takes}, not {type_name(type(frame))}{lazily if hint else ''}"
    return ArgumentError(message, code="argument.type")
