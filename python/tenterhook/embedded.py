"""Gives the package ``tenterhook`` out of the crate itself, where no wheel is installed.

Executed by the binary before anything else; imports nothing of the package.
"""

from __future__ import annotations

import sys
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__all__ = ["install"]


class _Finder(MetaPathFinder, InspectLoader):
    def __init__(self, sources: dict[str, str], native: ModuleType) -> None:
        self.sources = sources
        self.native = native

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "tenterhook._engine":
            return ModuleSpec(fullname, _Native(self.native), origin="tenterhook")
        file = self._file(fullname)
        if file is None:
            return None
        package = file.endswith("/__init__.py")
        spec = ModuleSpec(fullname, self, origin=file, is_package=package)
        spec.has_location = True
        return spec

    def get_source(self, fullname: str) -> str | None:
        return self.sources.get(self._file(fullname) or "")

    def is_package(self, fullname: str) -> bool:
        return (self._file(fullname) or "").endswith("/__init__.py")

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        exec(compile(self.get_source(name) or "", self._file(name) or name, "exec", dont_inherit=True), module.__dict__)

    def _file(self, fullname: str) -> str | None:
        base = fullname.replace(".", "/")
        return next((file for file in (f"{base}.py", f"{base}/__init__.py") if file in self.sources), None)


class _Native(InspectLoader):
    """Gives a module that exists already."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        pass

    def get_source(self, fullname: str) -> None:
        return None


def install(sources: dict[str, str], native: ModuleType) -> None:
    """Puts the finder before every other: an installed wheel of another version must not be mixed in."""
    sys.meta_path.insert(0, _Finder(sources, native))
