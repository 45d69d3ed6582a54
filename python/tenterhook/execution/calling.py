"""Hooks as handlers: the payload of a call becomes their arguments, and what they return or raise its answer."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from tenterhook.execution.controlling import controller_of
from tenterhook.execution.delivery import Delivery
from tenterhook.execution.places import FoundHook, place_of
from tenterhook.execution.signals import CriticalError, ThinkSignal, unwrapped
from tenterhook.execution.signatures import taken
from tenterhook.execution.threads import in_thread
from tenterhook.execution.views import ExitInfo, Iteration, ToolInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenterhook.execution.controlling import Controller
    from tenterhook.execution.places import Call
    from tenterhook.mantle.payloads import ToolCallPayload

__all__ = ["answered", "found_hook", "invoked", "plain", "release", "signalled"]

#: The one key that a hook may return, and the type of its value where there is but one.
RETURNED = {"on_before_execution": "code", "on_before_tool": "input", "on_after_tool": "output"}

#: The context of an execution is what its payload has.
OF_PAYLOAD = object()

_NOTHING = object()


def found_hook(hook: str, function: Callable[..., Any], context: object = OF_PAYLOAD) -> FoundHook:
    """The hook as the engine is told of it. ``context`` is what ``on_iteration_start`` is given as such."""
    takes = taken(hook, function)
    call: Call
    if hook == "on_trace":
        call = Delivery(function, takes).deliver
    else:

        async def call(payload: ToolCallPayload) -> ToolCallPayload:
            def value(name: str) -> Any:
                if name == "context" and context is not OF_PAYLOAD:
                    return context
                return _value(name, payload)

            positional, named = takes.arguments(value)
            try:
                returned = await invoked(function, *positional, **named)
                given = _given(hook, returned)
            except BaseException as error:  # also what is no `Exception`: it is the hook's failure
                signal = signalled(error)
                if signal is None:
                    raise
                return answered(payload, **signal)
            return payload if given is _NOTHING else answered(payload, given=given)

    place = place_of(function)
    return FoundHook(hook, takes.all, place.module, place.function, place.file, place.line, call)


def release(found: FoundHook) -> None:
    """The execution of a hook has ended."""
    delivery = getattr(found.call, "__self__", None)
    if isinstance(delivery, Delivery):
        delivery.stop()


async def invoked(function: Callable[..., Any], *positional: Any, **named: Any) -> Any:
    """Calls a function: on the loop where it is a coroutine function, else off it. An awaitable that it returns is awaited here."""
    if is_async(function):
        returned = function(*positional, **named)
    else:
        returned = await in_thread(functools.partial(function, *positional, **named))
    return await returned if inspect.isawaitable(returned) else returned


def is_async(function: Any) -> bool:
    """Whether to call a function does no more than make a coroutine."""
    target = inspect.unwrap(function)
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(
        inspect.getattr_static(target, "__call__", None)
    )


def answered(payload: ToolCallPayload, **answer: Any) -> ToolCallPayload:
    """The payload with an answer in the place of its arguments."""
    return payload.model_copy(update={"arguments": answer})


def signalled(error: BaseException) -> dict[str, Any] | None:
    """The answer that an exception is; ``None``: it is a failure."""
    error = unwrapped(error)
    if isinstance(error, ThinkSignal):
        return {"think": str(error.reason), "context": plain(error.context, "The context of a `ThinkSignal`")}
    if isinstance(error, CriticalError):
        return {"critical": str(error.message)}
    return None


def plain(value: Any, what: str) -> Any:
    """A value as JSON has it: models, dataclasses and the like become dicts."""
    try:
        return to_jsonable_python(value)
    except (PydanticSerializationError, ValueError) as error:
        raise TypeError(f"{what} is a `{type(value).__name__}` that is not JSON: {error}") from None


def _value(name: str, payload: ToolCallPayload) -> Any:
    given: Any = payload.arguments.get(name)
    if name == "controller":
        return controller(payload)
    if name == "iteration":
        return Iteration(given)
    if name == "tool":
        return ToolInfo(**_document(given))
    if name == "exit":
        return ExitInfo(**_document(given))
    return given


def controller(payload: ToolCallPayload) -> Controller:
    """The controller of the execution that calls."""
    return controller_of(int(payload.headers["controller"]))


def _document(text: str) -> dict[str, Any]:
    import json

    document: dict[str, Any] = json.loads(text)
    return document


def _given(hook: str, returned: Any) -> Any:
    """What a hook gives in the place of something; an error where it gives what is not expected of it."""
    if hook not in RETURNED and hook != "on_iteration_start":
        return _NOTHING
    if returned is None:
        return _NOTHING
    key = RETURNED.get(hook)
    expected = f'`{{"{key}": …}}`' if key else "a dict with what changes of the iteration"
    if not isinstance(returned, Mapping):
        raise TypeError(f"`{hook}` returned a `{type(returned).__name__}`; expected `None` or {expected}")
    if key is None:
        return plain(dict(returned), f"What `{hook}` returned")
    for other in returned:
        if other != key:
            raise TypeError(f"`{hook}` returned `{other}`; expected `None` or {expected}")
    if key not in returned:
        return _NOTHING
    value = returned[key]
    if key == "code" and not isinstance(value, str):
        raise TypeError(f"`{hook}` returned `code` that is a `{type(value).__name__}`; expected a text")
    return plain(value, f"`{key}` of `{hook}`")
