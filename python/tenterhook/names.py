"""Gives the names ``rasa.mantle.*`` without a file under ``rasa/``.

A finder answers for exactly the modules that we implement. Every other name below ``rasa`` falls through to an installed
``rasa``; where there is none, empty packages stand in for the parents.
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__all__ = ["FALLBACKS", "MODULES", "PARENTS", "install", "is_installed", "real_rasa_is_installed", "uninstall"]

#: Public name of a module, and the module of ours that it leads to.
MODULES = {
    "rasa.mantle.hooks": "tenterhook.mantle.hooks",
    "rasa.mantle.tools.decorator": "tenterhook.mantle.tools.decorator",
    "rasa.mantle.tools.result": "tenterhook.mantle.tools.result",
    "rasa.mantle.orchestration.turn_context": "tenterhook.mantle.orchestration.turn_context",
    "rasa.calm_v2.hooks": "tenterhook.mantle.hooks",
    "rasa.calm_v2.tools.decorator": "tenterhook.mantle.tools.decorator",
    "rasa.calm_v2.tools.result": "tenterhook.mantle.tools.result",
    "rasa.calm_v2.orchestration.turn_context": "tenterhook.mantle.orchestration.turn_context",
}

#: As ``MODULES``, where nothing else has them: an installed ``rasa`` keeps its own.
FALLBACKS = {
    "rasa.exceptions": "tenterhook.mantle.exceptions",
    "rasa.mantle.validation": "tenterhook.mantle.validation",
    "rasa.calm_v2.validation": "tenterhook.mantle.validation",
}

#: The packages on the way to them.
PARENTS = (
    "rasa",
    *(f"rasa.{engine}{inside}" for engine in ("mantle", "calm_v2") for inside in ("", ".tools", ".orchestration")),
)


class _Ours(Loader):
    """Gives one of our modules under its public name: the same module object, whichever name asks for it."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module({**FALLBACKS, **MODULES}[spec.name])
        self.own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # It has been executed under its own name; the import system has just set the public one's spec.
        module.__spec__ = self.own_spec


class _EmptyPackage(Loader):
    """A parent package with nothing of its own in it."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__path__ = []


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in MODULES or (fullname in FALLBACKS and not _is_found_elsewhere(fullname, path)):
            return ModuleSpec(fullname, _Ours(), origin="tenterhook")
        if fullname in PARENTS and not _is_found_elsewhere(fullname, path):
            return ModuleSpec(fullname, _EmptyPackage(), origin="tenterhook", is_package=True)
        return None


_FINDER = _Finder()


def _is_found_elsewhere(fullname: str, path: Sequence[str] | None) -> bool:
    """Whether another finder knows the name: an editable install has one of its own."""
    others = (finder for finder in sys.meta_path if finder is not _FINDER and hasattr(finder, "find_spec"))
    return any(finder.find_spec(fullname, path, None) is not None for finder in others)


def real_rasa_is_installed() -> bool:
    """Whether ``import rasa`` leads to a distribution, and not to us."""
    return _is_found_elsewhere("rasa", None)


def install() -> None:
    """Makes ``import rasa.mantle.hooks`` work in this process. Calling it again does nothing.

    An installed ``rasa`` keeps all its other modules; those in :data:`MODULES` are ours from now on, also where they have
    been imported before.
    """
    if not is_installed():
        sys.meta_path.insert(0, _FINDER)
        for name, own in MODULES.items():
            if sys.modules.get(name) is not sys.modules.get(own):
                _forget(name)


def uninstall() -> None:
    """Takes the names away again; modules that hold them keep them."""
    if is_installed():
        sys.meta_path.remove(_FINDER)
        for name in MODULES:
            _forget(name)
        for name, ours in FALLBACKS.items():
            if sys.modules.get(name) is not None and sys.modules.get(name) is sys.modules.get(ours):
                _forget(name)


def is_installed() -> bool:
    """Whether the names are given."""
    return _FINDER in sys.meta_path


def _forget(name: str) -> None:
    """Has the next import of ``name`` ask the finders again, also as an attribute of its package."""
    sys.modules.pop(name, None)
    parent, _, own = name.rpartition(".")
    if parent in sys.modules:
        vars(sys.modules[parent]).pop(own, None)
