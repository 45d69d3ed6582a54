"""What is wrong with an argument template, as far as it can be told without a conversation."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from tenterhook.templates.expressions import (
    CONTEXTS,
    EXPRESSION_SIZE,
    BadExpressionError,
    Expressions,
    Record,
    cut,
    extent,
    nearest,
)
from tenterhook.templates.source import OPERATORS, PLACEHOLDER, TemplateError, is_template, parts, read

__all__ = ["check"]

_RESERVED = re.compile(r"\$[a-zA-Z_][a-zA-Z0-9_]*$")
_PLAIN = re.compile(r"\$?[a-zA-Z_][a-zA-Z0-9_]*\Z")
_BINDING = re.compile(r"(?:each|by)\((.*)\)\Z", re.DOTALL)


def check(arguments_json: str, event: str) -> str:
    """The problems of a template at load, as a JSON list of objects with ``path``, ``message`` and ``hint``."""
    context = CONTEXTS.get(event)
    if context is None:
        raise TemplateError("event is neither 'on_request_start' nor 'on_completion'")
    try:
        template = read(arguments_json)
    except TemplateError as error:
        return json.dumps([asdict(_Problem("arguments", str(error)))])
    if not isinstance(template, dict):
        return json.dumps([asdict(_Problem("arguments", "arguments must be an object"))])
    checker = _Checker(context, _bound_names(template))
    checker.check_object(template, "arguments")
    return json.dumps([asdict(problem) for problem in checker.problems])


@dataclass(frozen=True, slots=True)
class _Problem:
    path: str
    message: str
    hint: str | None = None


def _bound_names(template: Any) -> frozenset[str] | None:
    """The names that ``$let``, ``each(..)`` and ``by(..)`` bind anywhere; ``None``: some are known at run time only."""
    names: set[str] = set()
    for part in parts(template):
        if not isinstance(part, dict):
            continue
        for key in part:
            if binding := _BINDING.match(key):
                names.update(name.strip() for name in binding.group(1).split(","))
        if "$let" in part:
            if not isinstance(part["$let"], dict) or is_template(part["$let"]):
                return None
            names.update(part["$let"])
    return frozenset(names)


class _Checker:
    def __init__(self, context: Record, bound: frozenset[str] | None) -> None:
        #: In the order of their finding, each once.
        self.problems: dict[_Problem, None] = {}
        self._path = ""
        self._expressions = Expressions(context, bound, self._complain)

    def _complain(self, message: str, hint: str | None = None) -> None:
        self.problems[_Problem(self._path, message, hint)] = None

    def check_value(self, value: Any, path: str) -> None:
        if isinstance(value, dict):
            self.check_object(value, path)
        elif isinstance(value, list):
            for index, element in enumerate(value):
                self.check_value(element, f"{path}[{index}]")
        elif isinstance(value, str):
            self._check_text(value, path)

    def check_object(self, found: dict[str, Any], path: str) -> None:
        is_operator = not OPERATORS.isdisjoint(found)
        for key, value in found.items():
            at = _below(path, key)
            if is_operator:
                self._check_operand(found, key, at)
                continue
            if _RESERVED.match(key):
                self._path = at
                message = f"key '{cut(key)}' is reserved for operators; use '${cut(key)}' for the key itself"
                self._complain(message, nearest(key, OPERATORS))
            elif not key.startswith("$$"):
                self._check_text(key, at)
            self.check_value(value, at)

    def _check_operand(self, found: dict[str, Any], key: str, path: str) -> None:
        value = found[key]
        if key in ("$eval", "$if"):
            self._path = path
            if isinstance(value, str):
                self._check_expression(value, f"'{cut(value)}'")
            else:
                self._complain(f"'{key}' must be given a string expression, not {_kind(value)}")
        elif key in ("$match", "$switch") and isinstance(value, dict):
            for condition, then in value.items():
                self.check_value(then, _below(path, condition))
        # What is left out here is no template: an expression that counts at run time, a value taken as it is.
        elif not (
            key.startswith("by(")
            or (key.startswith("each(") and "$find" in found)
            or (key == "initial" and "$reduce" in found)
        ):
            self.check_value(value, path)

    def _check_text(self, text: str, path: str) -> None:
        self._path = path
        start = 0
        while found := PLACEHOLDER.search(text, start):
            start = found.end()
            if found.group() == "$${":
                continue
            window = text[start : start + EXPRESSION_SIZE + 1]
            try:
                source = window[: extent(window, is_placeholder=True)[0]]
            except BadExpressionError as error:  # where the text goes on is unknown
                self._complain(f"'${{{cut(window)}' is no expression: {error}")
                return
            self._check_expression(source, f"'${{{cut(source)}}}'")
            start += len(source) + 1

    def _check_expression(self, source: str, shown: str) -> None:
        try:
            self._expressions.check(source)
        except BadExpressionError as error:
            self._complain(f"{shown} is no expression: {error}")


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if _PLAIN.match(key) else f"{path}[{json.dumps(key, ensure_ascii=False)}]"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
