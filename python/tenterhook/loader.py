"""Imports an agent's modules under private names, so that two agents in one process share none.

Each load has a package of its own, ``_tenterhook_<hash>``. The modules in it see a private ``__import__``: names that are
found at the agent's root (``lib``, ``tools``, ``hooks``, a module beside them) lead into the package, all others are
imported as usual. The standard library is never shadowed. Source is compiled from the file's bytes, no ``.pyc`` is read
or written.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib
import importlib.resources
import importlib.util
import itertools
import os
import sys
from dataclasses import dataclass
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec, NamespaceLoader
from importlib.readers import FileReader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tenterhook import names
from tenterhook.mantle.marks import decorated_during
from tenterhook.registration import Found, Problem, import_problem, register

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenterhook.execution.places import FoundHook
    from tenterhook.tooling import FoundTool

__all__ = ["Loaded", "load"]

#: Never the agent's own, whatever lies at its root.
NEVER_OWN = frozenset({*sys.stdlib_module_names, "rasa", "tenterhook"})

#: The folders that an agent is made of.
ALWAYS_OWN = frozenset({"hooks", "lib", "tools", "skills"})

#: In the place of a tool module: templates are to be there as well.
TEMPLATES = "<templates>"

_loads = itertools.count()


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load gave."""

    found: Found
    tools: list[FoundTool]
    #: Those of an execution, where it was asked for them.
    execution_hooks: list[FoundHook]
    #: Takes the modules out of the import system again.
    unload: Callable[[], None]


def load(root: Path, files: Sequence[Path], tool_files: Sequence[Path] = (), *, execution: bool = False) -> Loaded:
    """Imports the hook modules ``files`` and the tool modules (relative to ``root``) in their order and registers both.

    With ``execution`` the hooks of an execution are sought as well, and the tools are such as generated code calls.
    """
    names.install()
    agent = _Agent(Path(root))
    try:
        problems: list[Problem] = []

        def imported(files: Sequence[Path]) -> list[tuple[Path, ModuleType]]:
            modules = []
            for file in files:
                try:
                    modules.append((file, agent.import_file(Path(file))))
                except BaseException as error:  # also SystemExit: it must not end the process
                    problems.append(import_problem(error, agent.root, agent.root / file))
            return modules

        with decorated_during() as decorated:
            modules = imported(files)
            agent.import_init(problems)
            tool_modules = imported([file for file in tool_files if str(file) != TEMPLATES])
        tools: list[FoundTool] = []
        if len(tool_modules) < len(tool_files) and TEMPLATES in map(str, tool_files):
            from tenterhook.templates.calling import template_tool

            tools.append(template_tool())
        if tool_modules:
            from tenterhook.tooling import find_tools

            if execution:
                from tenterhook.execution.project import execution_tool

                found, wrong = find_tools(agent.root, tool_modules, execution_tool)
            else:
                found, wrong = find_tools(agent.root, tool_modules)
            tools.extend(found)
            problems.extend(wrong)
        execution_hooks: list[FoundHook] = []
        if execution:
            from tenterhook.execution.project import find_hooks

            execution_hooks, wrong = find_hooks(agent.root, modules)
            problems.extend(wrong)
        return Loaded(register(agent.root, modules, decorated, problems), tools, execution_hooks, agent.unload)
    except BaseException:
        agent.unload()
        raise


class _Agent(MetaPathFinder):
    """One load of one agent: its package, the finder below it, and the builtins of its modules."""

    def __init__(self, root: Path) -> None:
        self.root = root
        digest = hashlib.sha256(os.fsencode(f"{os.path.realpath(root)}\0{next(_loads)}\0{os.getpid()}")).hexdigest()
        self.package = f"_tenterhook_{digest[:8]}"
        #: Modules by the real path of their file: a file behind two names is one module.
        self.by_file: dict[str, ModuleType] = {}
        #: Whether a top-level name is the agent's own.
        self.owned: dict[str, bool] = {}
        #: `sys.path` when it was last looked at, and the folders of the agent on it, relative to the root.
        self.seen_path: tuple[str, ...] = ()
        self.own_entries: list[Path] = []
        #: `sys.path` before the agent's modules changed it.
        self.path_before = list(sys.path)
        self.builtins = {**vars(builtins), "__import__": self.import_}
        self.importlib = _importlib_for(self)
        top = ModuleType(self.package)
        top.__path__ = [str(root)]
        sys.modules[self.package] = top
        sys.meta_path.insert(0, self)

    def unload(self) -> None:
        """Forgets the modules: who holds one keeps it."""
        sys.meta_path.remove(self)
        for entry in self._own_path_entries():
            name = str(self.root / entry)
            if name in sys.path and name not in self.path_before:
                sys.path.remove(name)
        # A copy at once: other threads import meanwhile.
        for name in list(sys.modules):
            if name == self.package or name.startswith(f"{self.package}."):
                sys.modules.pop(name, None)

    def import_file(self, file: Path) -> ModuleType:
        """Imports a hook module by its file, relative to the root."""
        target = self.root / file
        found = self.by_file.get(os.path.realpath(target))
        if found is not None:
            return found
        name = ".".join((self.package, *file.with_suffix("").parts))
        if all("." not in part for part in (*file.parent.parts, file.stem)):
            spec = self._find(name)
            if spec is not None and spec.origin == str(target):
                return importlib.import_module(name)
        # No import statement leads to the file: its name has a dot, or a package of that name stands beside it.
        return self._import_apart(file, target)

    def import_init(self, problems: list[Problem]) -> None:
        """Imports ``hooks/__init__.py`` where nothing has yet: hooks in it are told of, though it is no hook module."""
        init = Path("hooks", "__init__.py")
        if (self.root / init).is_file() and os.path.realpath(self.root / init) not in self.by_file:
            try:
                importlib.import_module(f"{self.package}.hooks")
            except BaseException as error:
                problems.append(import_problem(error, self.root, self.root / init))

    def _find(self, name: str) -> ModuleSpec | None:
        """What an import of ``name`` would find, its parents imported."""
        parent = name.rpartition(".")[0]
        if parent != self.package and self._find(parent) is None:
            return None
        return self.find_spec(name, importlib.import_module(parent).__path__)

    def _import_apart(self, file: Path, target: Path) -> ModuleType:
        """Imports a file under a name that no import statement can write; its package is the folder's where that has one."""
        folder = [part for part in file.parent.parts if "." not in part]
        parent = ".".join((self.package, *folder)) if len(folder) == len(file.parent.parts) else self.package
        with contextlib.suppress(ImportError):
            importlib.import_module(parent)
        name = f"{parent}.file:{file.with_suffix('').as_posix().replace('.', ':')}"
        spec = _spec(self, name, target)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            _loader_of(spec).exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        return module

    def import_(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """``__import__`` as the agent's modules see it."""
        if level == 0:
            top = name.partition(".")[0]
            home = self.home_of(top)
            if home is not None:
                own = f"{home}.{name}"
                if fromlist:
                    return builtins.__import__(own, globals, locals, fromlist, 0)
                builtins.__import__(own, globals, locals, (), 0)
                return sys.modules[f"{home}.{top}"]
            if top == "importlib":
                module = builtins.__import__(name, globals, locals, fromlist or (), 0)
                if not fromlist or name == "importlib":
                    return self.importlib
                stand_in: ModuleType = vars(self.importlib).get(name.partition(".")[2], module)
                return stand_in
        return builtins.__import__(name, globals, locals, fromlist or (), level)

    def home_of(self, top: str) -> str | None:
        """The private package in which an absolute import of ``top`` finds the agent's own module; ``None``: it is none."""
        if self.owns(top):
            return self.package
        if top in NEVER_OWN:
            return None
        # A folder of the agent's that a module has put on `sys.path`: what is found there is the agent's as well.
        for entry in self._own_path_entries():
            folder = self.root / entry
            if (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file():
                return ".".join((self.package, *entry.parts))
        return None

    def _own_path_entries(self) -> list[Path]:
        path = tuple(sys.path)
        if path != self.seen_path:
            self.seen_path = path
            real = os.path.realpath(self.root)
            below = (Path(os.path.relpath(os.path.realpath(entry), real)) for entry in path if entry)
            plain = (entry for entry in below if all("." not in part for part in entry.parts))
            self.own_entries = [entry for entry in plain if (self.root / entry).is_dir()]
        return self.own_entries

    def owns(self, top: str) -> bool:
        """Whether an absolute import of ``top`` means something at the agent's root."""
        owned = self.owned.get(top)
        if owned is None:
            owned = self.owned[top] = self._looks_own(top)
        return owned

    def _looks_own(self, top: str) -> bool:
        if top in NEVER_OWN:
            return False
        folder = self.root / top
        if (self.root / f"{top}.py").is_file() or (folder / "__init__.py").is_file():
            return True
        if not folder.is_dir():
            return False
        # A folder without `__init__.py` gives way to an installed package, as everywhere in Python.
        return top in ALWAYS_OWN or not _is_installed(top)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{self.package}."):
            return None
        stem = fullname.rpartition(".")[2]
        for folder in map(Path, path or ()):
            inside, file = folder / stem, folder / f"{stem}.py"
            if (inside / "__init__.py").is_file():
                return _spec(self, fullname, inside / "__init__.py", package=inside)
            if file.is_file():
                # `hooks.py` beside a folder `hooks/`: both layouts may coexist, and the folder's modules are below it.
                return _spec(self, fullname, file, package=inside if inside.is_dir() else None)
            if inside.is_dir():
                namespace = NamespaceLoader(fullname, [str(inside)], self.find_spec)
                spec = ModuleSpec(fullname, namespace, is_package=True)
                spec.submodule_search_locations = [str(inside)]
                return spec
        return None


class _SourceLoader(InspectLoader):
    """Executes one file, once, with the agent's builtins."""

    def __init__(self, agent: _Agent, file: Path) -> None:
        self.agent = agent
        self.file = file
        self.path = str(file)
        self.known: ModuleType | None = None
        self.known_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        self.known = self.agent.by_file.get(os.path.realpath(self.file))
        self.known_spec = None if self.known is None else self.known.__spec__
        return self.known

    def exec_module(self, module: ModuleType) -> None:
        if module is self.known:
            module.__spec__ = self.known_spec
            return
        code = compile(self.file.read_bytes(), str(self.file), "exec", dont_inherit=True)
        real = os.path.realpath(self.file)
        self.agent.by_file[real] = module
        vars(module)["__builtins__"] = self.agent.builtins
        try:
            exec(code, vars(module))
        except BaseException:
            self.agent.by_file.pop(real, None)
            raise

    def get_filename(self, fullname: str) -> str:
        return str(self.file)

    def get_data(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def get_resource_reader(self, fullname: str) -> FileReader:
        return FileReader(self)  # type: ignore[arg-type]  # it asks for `path` alone

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self.file.read_bytes())

    def is_package(self, fullname: str) -> bool:
        return self.file.name == "__init__.py"


def _is_installed(top: str) -> bool:
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return top in sys.modules
    return spec is not None and spec.origin is not None


def _spec(agent: _Agent, name: str, file: Path, package: Path | None = None) -> ModuleSpec:
    spec = ModuleSpec(name, _SourceLoader(agent, file), origin=str(file), is_package=package is not None)
    spec.has_location = True
    if package is not None:
        spec.submodule_search_locations = [str(package)]
    return spec


def _loader_of(spec: ModuleSpec) -> _SourceLoader:
    assert isinstance(spec.loader, _SourceLoader)
    return spec.loader


def _importlib_for(agent: _Agent) -> ModuleType:
    """``importlib`` as the agent's modules see it: ``import_module`` finds the agent's own names."""

    def own(name: str) -> str:
        home = None if name.startswith(".") else agent.home_of(name.partition(".")[0])
        return name if home is None else f"{home}.{name}"

    def import_module(name: str, package: str | None = None) -> ModuleType:
        return importlib.import_module(own(name), package)

    def find_spec(name: str, package: str | None = None) -> ModuleSpec | None:
        return importlib.util.find_spec(own(name), package)

    def files(anchor: Any = None) -> Any:
        if anchor is None:
            anchor = sys._getframe(1).f_globals["__package__"]
        return importlib.resources.files(own(anchor) if isinstance(anchor, str) else anchor)

    util = _stand_in(importlib.util, find_spec=find_spec)
    resources = _stand_in(importlib.resources, files=files)
    return _stand_in(importlib, import_module=import_module, util=util, resources=resources)


def _stand_in(module: ModuleType, **own: object) -> ModuleType:
    """A module that differs from ``module`` in some names."""

    class StandIn(ModuleType):
        def __getattr__(self, name: str) -> Any:
            return getattr(module, name)

    made = StandIn(module.__name__, module.__doc__)
    vars(made).update(own)
    return made
