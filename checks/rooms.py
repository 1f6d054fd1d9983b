"""A layers contract for import-linter in which ``{formats}`` stands for the module of each format.

So one more format needs no line in the contract. A module that another one names in a string, to import it late,
counts as imported.
"""

import re
from pathlib import Path

from grimp import ImportGraph
from importlinter import ContractCheck, fields
from importlinter.application.contract_utils import AlertLevel
from importlinter.contracts.layers import Layer, LayerField, LayersContract

from mintage.formats.kinds import NAMES

__all__ = ["RoomsContract"]


class _RoomField(LayerField):
    def parse(self, raw_data: str | list[str]) -> Layer:
        return super().parse(str(raw_data).replace("{formats}", " | ".join(NAMES)))


class RoomsContract(LayersContract):
    """Layers, with the modules of all formats as one. import-linter finds the fields of this very class alone."""

    type_name = "rooms"

    layers = fields.ListField(subfield=_RoomField())
    containers = fields.ListField(subfield=fields.ModuleExpressionField(), required=False)
    ignore_imports = fields.SetField(subfield=fields.ImportExpressionField(), required=False)
    unmatched_ignore_imports_alerting = fields.EnumField(AlertLevel, default=AlertLevel.ERROR)
    exhaustive = fields.BooleanField(default=False)
    exhaustive_ignores = fields.SetField(subfield=fields.StringField(), required=False)
    broken_contract_guidance = fields.TextField(required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Check the imports of all modules."""
        for module in graph.modules:
            path = Path("src", *module.split("."))
            source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            for named in set(re.findall(r'"(mintage(?:\.\w+)+)"', source.read_text("utf-8"))) & graph.modules - {
                module
            }:
                graph.add_import(importer=module, imported=named)
        return super().check(graph, verbose)
