"""What an agent's modules register, and what is wrong with it: the load-time checks, each with file, line and remedy."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import sys
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenterhook.mantle import hooks, payloads
from tenterhook.mantle.marks import HookDefinitionError, Mark, marks_of
from tenterhook.mantle.signals import HookControlFlow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

#: The private package of an agent, as it stands before the names that its author knows.
_PRIVATE = re.compile(r"_tenterhook_[0-9a-f]{8}\.")

__all__ = ["Found", "FoundHandler", "Problem", "import_problem", "register"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that the author of a file can mend."""

    rule: str
    message: str
    hint: str | None
    file: Path
    line: int | None
    severity: str = "error"
    #: The hook module whose import it ended, where it did.
    module: Path | None = None

    def __post_init__(self) -> None:
        # A lone surrogate, as a user's exception may hold, cannot leave for the engine.
        for field in ("message", "hint"):
            text = getattr(self, field)
            if text is not None:
                object.__setattr__(self, field, _printable(text))


@dataclass(frozen=True, slots=True)
class FoundHandler:
    """A handler that is well formed, at one point."""

    point: str
    lane: str
    module: str
    function: str
    file: Path
    line: int
    timeout_ms: int | None
    call: Any


@dataclass(frozen=True, slots=True)
class Found:
    """What a load gave."""

    handlers: list[FoundHandler]
    problems: list[Problem]


def register(
    root: Path,
    modules: Sequence[tuple[Path, ModuleType]],
    decorated: Sequence[tuple[Any, Mark]],
    problems: Sequence[Problem] = (),
) -> Found:
    """Finds the decorated functions of ``modules`` (file relative to ``root``, module) and checks them.

    ``decorated`` is all that was decorated during the import: what no module holds is told, never passed over.
    """
    found, wrong = [], list(problems)
    seen: dict[int, Any] = {}
    for file, module in modules:
        for handler in list(getattr(module, "__dict__", {}).values()):
            marks = marks_of(handler)
            if not marks or id(handler) in seen or isinstance(handler, type):
                continue
            seen[id(handler)] = handler
            name, function = _module_name(file), _function_name(handler)
            for mark in marks:
                path, line = _place(handler, mark)
                complaint = _complaint(handler, mark)
                if complaint is not None:
                    rule, message, hint = complaint
                    wrong.append(Problem(rule, f"`{function}` {message}", hint, path, line))
                    continue
                found.append(FoundHandler(mark.point, mark.lane, name, function, path, line, mark.timeout_ms, handler))
    failed = {str(problem.module) for problem in problems if problem.module is not None}
    wrong.extend(_unregistered(root, [file for file, _ in modules], failed, decorated, seen))
    wrong.extend(_duplicates(found))
    return Found(found, wrong)


def import_problem(error: BaseException, root: Path, module: Path) -> Problem:
    """An exception that ended the import of the hook module ``module``, as a problem in the agent's own file where it arose."""
    rule, message, hint = _import_complaint(error)
    path, line = _raised_at(error, root, module)
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_relative_to(root):
        path, line = Path(error.filename), error.lineno
    return Problem(rule, message, hint, path, line, module=module)


def _import_complaint(error: BaseException) -> tuple[str, str, str | None]:
    if isinstance(error, SyntaxError):
        return "syntax-error", error.msg, None
    if isinstance(error, HookDefinitionError):
        return error.rule, error.message, error.hint
    unknown = _unknown_name(error)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, hooks.__all__, n=1)
        hint = f"did you mean `{near[0]}`?" if near else "`tenterhook points` lists the decorators"
        if "audio" in unknown or "asr" in unknown:
            hint = "there are no hooks for audio; hooks for incoming and outgoing text see text only"
        rule = "unknown-point" if unknown.startswith(("on_", "modify_")) else "unknown-name"
        return rule, f"`rasa.mantle.hooks` has no `{unknown}`", hint
    message, text = f"The import failed: {type(error).__name__}", _PRIVATE.sub("", _text_of(error))
    return "import-failed", f"{message}: {text}" if text else message, _import_hint(error)


# --- checks of one handler


def _complaint(handler: Any, mark: Mark) -> tuple[str, str, str | None] | None:
    """Rule, message and remedy of the first thing that is wrong with ``handler`` under ``mark``."""
    if not callable(handler):
        return "sync-handler", "cannot be called", "decorate an `async def` function"
    body = _body_of(handler)
    if inspect.isasyncgenfunction(body):
        return "generator-handler", "is an async generator", "take the `yield` out: a hook returns its answer"
    if not inspect.iscoroutinefunction(body):
        return "sync-handler", "is not async", f"write `async def` below `@{mark.decorator}()`"
    expected = mark.payload.__name__
    try:
        signature = inspect.signature(handler)
    except (TypeError, ValueError):
        return "extra-parameter", "has no signature that can be read", "decorate an `async def` function"
    parameters = list(signature.parameters.values())
    if not parameters:
        return "extra-parameter", "takes no parameter", f"take the payload: `payload: {expected}`"
    first, *rest = parameters
    if first.kind is first.VAR_POSITIONAL or first.kind is first.VAR_KEYWORD:
        return "extra-parameter", f"takes `{_starred(first)}`", f"take one parameter: `payload: {expected}`"
    if first.kind is first.KEYWORD_ONLY:
        return "extra-parameter", f"takes `{first.name}` by keyword only", "the payload is passed by position"
    if rest:
        return (
            "extra-parameter",
            f"takes a second parameter, `{rest[0].name}`",
            "a hook takes the payload and nothing else",
        )
    try:
        hints = _annotations(body)
    except Exception as error:  # whatever a user's annotation raises
        return (
            "unresolved-annotation",
            f"has an annotation that cannot be resolved: {type(error).__name__}: {_text_of(error)}",
            "import the name at module level, also at run time",
        )
    if first.name not in hints:
        return "missing-annotation", f"does not annotate `{first.name}`", f"write `{first.name}: {expected}`"
    if not _takes(hints[first.name], mark.payload):
        return (
            "wrong-payload",
            f"takes `{_show(hints[first.name])}` at {mark.point.replace('_', ' ')}",
            f"annotate `{first.name}: {expected}`",
        )
    result = "None" if mark.lane == "observe" else expected
    if "return" not in hints:
        return "missing-annotation", "does not annotate what it returns", f"write `-> {result}`"
    given = hints["return"]
    if inspect.isclass(given) and issubclass(given, HookControlFlow):
        return "wrong-return", f"returns `{_show(given)}`", "control signals are raised, not returned"
    if mark.lane == "observe" and given is not type(None):
        return "wrong-return", f"is an observer and returns `{_show(given)}`", "an observer returns `None`"
    if mark.lane == "modify" and given is not mark.payload:
        return "wrong-return", f"returns `{_show(given)}`", f"write `-> {expected}`"
    return None


def _starred(parameter: inspect.Parameter) -> str:
    return f"{'*' if parameter.kind is parameter.VAR_POSITIONAL else '**'}{parameter.name}"


def _body_of(handler: Any) -> Any:
    """The function behind a partial object, a callable object or a bound method."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if inspect.isroutine(handler):
        return handler
    return type(handler).__call__


def _annotations(body: Any) -> dict[str, Any]:
    target = inspect.unwrap(body)
    hints = typing.get_type_hints(target)
    own = getattr(target, "__annotations__", {})
    return {name: hint for name, hint in hints.items() if name in own}


def _takes(annotation: Any, payload: type) -> bool:
    """Whether a parameter annotated like this takes ``payload``: the class, its base, or a union of payload classes."""
    if annotation is payload or annotation is payloads.HookPayload:
        return True
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return False
    members = typing.get_args(annotation)
    every = all(inspect.isclass(member) and issubclass(member, payloads.HookPayload) for member in members)
    return every and payload in members


# --- checks across handlers


def _duplicates(found: list[FoundHandler]) -> Iterator[Problem]:
    first: dict[str, FoundHandler] = {}
    for handler in found:
        if handler.lane != "modify":
            continue
        before = first.setdefault(handler.point, handler)
        if before is not handler:
            yield Problem(
                "duplicate-modify",
                f"`{handler.function}` is a second modify hook at {handler.point.replace('_', ' ')};"
                f" the first is `{before.function}` at {before.file}:{before.line}",
                "keep one, and call the other from it",
                handler.file,
                handler.line,
            )


def _unregistered(
    root: Path,
    files: list[Path],
    failed: set[str],
    decorated: Sequence[tuple[Any, Mark]],
    seen: dict[int, Any],
) -> Iterator[Problem]:
    """What carries marks and stands in no hook module's namespace; of a module whose import failed that says nothing."""
    wrapped = {id(inner) for handler in seen.values() for inner in _unwrapped(handler)}
    hook_files = {str(root / file) for file in files}
    for handler, mark in decorated:
        if id(handler) in seen or id(handler) in wrapped or mark.file in failed:
            continue
        name = _function_name(handler)
        path, line = _place(handler, mark)
        if mark.file == str(root / "hooks" / "__init__.py"):
            yield Problem(
                "unused-hook-module",
                f"`{name}` is not registered: `hooks/__init__.py` is no hook module",
                "move it to a module of its own in `hooks/`",
                path,
                line,
                "warning",
            )
        elif mark.file not in hook_files:
            yield Problem(
                "unregistered-decorator",
                f"`{name}` is not registered: its module is no hook module, and no hook module holds it",
                f"import `{name}` in `hooks.py` or in a module of `hooks/`",
                path,
                line,
                "warning",
            )
        elif "<locals>" in name:
            yield Problem(
                "unregistered-decorator",
                f"`{name}` is not registered: it is nested in a function and no module-level name holds it",
                "move it to module level",
                path,
                line,
            )
        elif "." in name:
            yield Problem(
                "method-handler",
                f"`{name}` is not registered: a method cannot be a hook",
                "make it a function at module level",
                path,
                line,
            )
        else:
            yield Problem(
                "unregistered-decorator",
                f"`{name}` is not registered: no module-level name holds what was decorated",
                f"put `@{mark.decorator}()` above all other decorators, and do not rebind or delete the name",
                path,
                line,
            )


def _unwrapped(handler: Any) -> Iterator[Any]:
    for _ in range(100):
        handler = getattr(handler, "__wrapped__", None)
        if handler is None:
            return
        yield handler


# --- places and words


def _module_name(file: Path) -> str:
    return _printable(".".join(file.with_suffix("").parts))


def _function_name(handler: Any) -> str:
    body = handler
    while isinstance(body, functools.partial):
        body = body.func
    name = getattr(body, "__qualname__", None)
    return _printable(name if isinstance(name, str) else type(body).__qualname__)


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _place(handler: Any, mark: Mark) -> tuple[Path, int]:
    code = getattr(inspect.unwrap(handler) if inspect.isroutine(handler) else handler, "__code__", None)
    if code is not None:
        return Path(code.co_filename), _def_line(code, mark)
    return Path(mark.file), mark.line


def _def_line(code: types.CodeType, mark: Mark) -> int:
    """The line of the ``def``; a code object's first line is that of its first decorator."""
    try:
        with open(code.co_filename, "rb") as source:  # noqa: PTH123 - bytes: the line is looked for, not decoded
            lines = source.read().splitlines()
    except OSError:
        return mark.line
    for number in range(code.co_firstlineno, min(code.co_firstlineno + 50, len(lines)) + 1):
        if re.match(rb"\s*(async\s+def|def)\b", lines[number - 1]):
            return number
    return code.co_firstlineno


def _raised_at(error: BaseException, root: Path, file: Path) -> tuple[Path, int | None]:
    place: tuple[Path, int | None] = (file, None)
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        # An environment may lie in the agent's folder: what is installed there is not the agent's.
        if Path(name).is_relative_to(root) and "site-packages" not in Path(name).parts:
            place = (Path(name), trace.tb_lineno)
        trace = trace.tb_next
    return place


def _unknown_name(error: BaseException) -> str | None:
    """The name that was looked for in ``rasa.mantle.hooks`` in vain."""
    if isinstance(error, ImportError):
        match = re.match(
            r"cannot import name '(\w+)' from '(?:rasa|tenterhook)\.(?:mantle|calm_v2)\.hooks'", str(error)
        )
        return match.group(1) if match else None
    if isinstance(error, AttributeError) and error.obj is hooks:
        return error.name
    return None


def _import_hint(error: BaseException) -> str | None:
    if isinstance(error, ModuleNotFoundError) and error.name:
        if _PRIVATE.match(error.name):
            return "the agent has no such file"
        return f"install it for {sys.executable}, or put it into `lib/` of the agent"
    if isinstance(error, SystemExit):
        return "a module must not end the process while it is imported"
    return None


def _text_of(error: BaseException) -> str:
    try:
        return str(error)[:500]
    except BaseException:  # a user's `__str__`
        return "<its __str__ failed>"


def _show(annotation: Any) -> str:
    return (
        annotation.__name__
        if inspect.isclass(annotation)
        else str(annotation).replace("tenterhook.mantle.payloads.", "")
    )
