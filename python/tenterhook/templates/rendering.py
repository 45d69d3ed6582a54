"""Rendering of argument templates by json-e.

It is driven through an instance of its module ``jsone.render`` that is ours alone: in there, the interpreter and what else
lets values grow or takes them for templates is replaced, while everyone else's json-e stays as it is.
"""

from __future__ import annotations

import importlib.util
import json
import re
from functools import lru_cache
from typing import Any

from jsone import shared

from tenterhook.templates.bounds import (
    BUILTINS,
    METER,
    RESULT_SIZE,
    BoundedInterpreter,
    BoundedTokenizer,
    Meter,
    Refusal,
    refuse_function,
)
from tenterhook.templates.source import OPERATORS, TemplateError, has_constructs, parts, read, read_json

__all__ = ["render"]

_NO_OBJECT = "arguments must render to an object"

#: Characters of a template that is kept as it was read: hooks render the same few again and again.
_KEPT = 4 * 1024

#: How many are kept, all together at most some 30 MB.
_MOST_KEPT = 1024


def render(arguments_json: str, context_json: str) -> str:
    """The rendered arguments as JSON; ``arguments_json`` itself where there is nothing to render."""
    template, has_any = (_kept if len(arguments_json) <= _KEPT else _read)(arguments_json)
    if not has_any:
        if not isinstance(template, dict):
            raise TemplateError(_NO_OBJECT)
        return arguments_json
    try:
        return _rendered(template, context_json)
    except TemplateError as error:
        message = str(error)
    except shared.JSONTemplateError as error:
        message = f"at template{_location(error, template)}: {_reason(error)}"
    except Exception as error:  # whatever json-e lets through
        message = f"at template: {_reason(error)}"
    # Raised out here, so that no traceback leads to the original, whose text may hold values.
    raise TemplateError(message)


def _read(arguments_json: str) -> tuple[Any, bool]:
    """The template, in which rendering changes nothing, and whether there is anything in it to be rendered."""
    template = read(arguments_json)
    return template, has_constructs(template)


_kept = lru_cache(_MOST_KEPT)(_read)


def _rendered(template: Any, context_json: str) -> str:
    try:
        context = read_json(context_json)
    except ValueError:
        context = None
    if not isinstance(context, dict):
        raise TemplateError("the context is not a JSON object")
    known = {"now": shared.fromNow("0 seconds", None), **BUILTINS, **context}
    token = METER.set(Meter(len(context_json)))
    try:
        result = _jsone.renderValue(template, known)
        if not isinstance(result, dict):
            raise TemplateError(_NO_OBJECT)
        if METER.get().size(result) <= RESULT_SIZE:
            # Short enough to be written in one step.
            text = json.dumps(
                result, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=refuse_function
            )
            if len(text.encode()) <= RESULT_SIZE:
                return text
    finally:
        METER.reset(token)
    raise TemplateError(f"rendered arguments have more than {RESULT_SIZE // 1024} KiB")


# --- json-e's module


def _own_instance() -> Any:
    """Another instance of json-e's module; the one that ``import`` gives is left alone."""
    spec = importlib.util.find_spec("jsone.render")
    if spec is None or spec.loader is None:
        raise ImportError("json-e has no module `jsone.render`")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_jsone = _own_instance()
_render_value, _interpolate, _parse_until = _jsone.renderValue, _jsone.interpolate, _jsone.parse_until_terminator
_contains_functions = _jsone.containsFunctions

_EACH = re.compile(r"each\(([a-zA-Z_][a-zA-Z0-9_]*)(?:,\s*([a-zA-Z_][a-zA-Z0-9_]*))?\)\Z")


def _bounded_render_value(template: Any, context: Any) -> Any:
    try:
        value = _render_value(template, context)
    except shared.JSONTemplateError:
        raise
    except Exception as error:  # Python's own, which would pass json-e without a location
        raise Refusal(_reason(error)) from None
    METER.get().size(value)
    return value


def _bounded_interpolate(string: str, context: Any) -> Any:
    METER.get().begin_text()
    return _interpolate(string, context)


def _bounded_parse_until(source: str, context: Any, terminator: str) -> Any:
    value, offset = _parse_until(source, context, terminator)
    if callable(value):
        refuse_function(value)
    if isinstance(value, (str, int, float)):
        METER.get().add_text(len(shared.to_str(value)))
    return value, offset


def _bounded_contains_functions(value: Any) -> Any:
    """Asked by ``$json`` before it writes: what is too long for the result need not be written."""
    if METER.get().size(value) > RESULT_SIZE:
        raise Refusal("a text is too long")
    return _contains_functions(value)


def _find(template: dict[str, Any], context: dict[str, Any]) -> Any:
    """``$find``, but what is found is a value: json-e's renders it, so that a message of the user's would be a template."""
    each = [found for key in template if (found := _EACH.match(key))]
    if len(template) != 2 or len(each) != 1:
        raise Refusal("$find takes one 'each(..)' and nothing else")
    condition = template[each[0].string]
    if not isinstance(condition, str):
        raise Refusal("the 'each(..)' of $find must be a string expression")
    elements = _jsone.renderValue(template["$find"], context)
    if not isinstance(elements, list):
        raise Refusal("$find looks in a list only")
    name, number = each[0].groups()
    for index, element in enumerate(elements):
        names = {name: element} if number is None else {name: element, number: index}
        if _jsone.parse(condition, {**context, **names}):
            return element
    return shared.DeleteMarker


_jsone.Interpreter = BoundedInterpreter
_jsone.tokenizer = BoundedTokenizer()
_jsone.renderValue = _bounded_render_value
_jsone.interpolate = _bounded_interpolate
_jsone.parse_until_terminator = _bounded_parse_until
_jsone.containsFunctions = _bounded_contains_functions
_jsone.operators["$find"] = _find


# --- messages

#: json-e's messages whose variable parts come from the template, and what we say for them. Others are not passed on.
_REASONS = tuple(
    (re.compile(pattern, re.DOTALL), text)
    for pattern, text in (
        (r'object has no property "(\w+)"', r"there is no field '\1'"),
        (r"unknown context value (\w+)", r"there is no name '\1'"),
        (r"index out of bounds", "index out of bounds"),
        (r"division by zero", "division by zero"),
        (r"infix: \. expects .*", "a field is read of what is not an object"),
        (r'infix: "\[\.\.\]" .*', "an element is taken of what is not a list, an object or a text"),
        (r"(?:infix: |unary )(\S+) expects .*", r"the operands of '\1' do not fit"),
        (r"(?:should only use integers|cannot perform interval).*", "an index is not an integer"),
        (r"object keys must be strings", "the key of a field is not a text"),
        (r"invalid arguments to builtin: (\w+).*", r"the arguments of '\1' do not fit"),
        (r"interpolation of .*", "an array or object cannot be put into a text"),
        (r"offset string: .*", "the offset of a time cannot be read"),
        (r"(?:Found: |Unexpected |unterminated ).*", "the expression has a syntax error"),
        (r"\$<identifier> is reserved.*", "a key that begins with '$' is not an operator"),
        (r"only one operator allowed", "an object has more than one operator"),
        (r"(\$\w+) has undefined properties: (.{0,80}).*", r"\1 has undefined properties: \2"),
        (r"top level keys of \$let .*", "a name that $let binds is not an identifier"),
        (rf"({'|'.join(re.escape(name) for name in sorted(OPERATORS))})(?:ed)? .*", r"the operands of \1 do not fit"),
    )
)

_PYTHON_REASONS: dict[type[Exception], str] = {
    ZeroDivisionError: "division by zero",
    OverflowError: "a number is too large",
    RecursionError: "it is nested too deeply",
    MemoryError: "there is not enough memory",
    UnicodeEncodeError: "a text is not valid Unicode",
    TypeError: "a value is of the wrong kind",
    ValueError: "a value is of the wrong kind",
    # So json-e fails on an expression that ends too early; `check` finds those.
    AttributeError: "the expression has a syntax error",
    StopIteration: "the expression has a syntax error",
}


def _reason(error: Exception) -> str:
    """What went wrong, without the values that an exception's own text may hold."""
    if isinstance(error, Refusal):
        return str(error.args[0])
    if isinstance(error, shared.JSONTemplateError):
        for pattern, text in _REASONS:
            if found := pattern.fullmatch(str(error.args[0])):
                return str(found.expand(text))
        return "it cannot be evaluated"
    return _PYTHON_REASONS.get(type(error), f"it cannot be evaluated ({type(error).__name__})")


def _location(error: Any, template: Any) -> str:
    """Where in the template; keys that were rendered are values and stay out."""
    keys = {key.removeprefix("$") if key.startswith("$$") else key for part in parts(template) for key in _keys(part)}
    written = {f".{key}" for key in keys} | {f"[{json.dumps(key)}]" for key in keys}
    return "".join(step if step in written or re.fullmatch(r"\[\d+\]", step) else "[?]" for step in error.location)


def _keys(part: Any) -> list[str]:
    return list(part) if isinstance(part, dict) else []
