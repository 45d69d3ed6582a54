"""Writes `src/condition/python.json`: conditions, and whether CPython finds them true.

Usage: python3 vectors.py [count] [seed] > python.json

Python's own `eval` says what is true wherever it raises nothing. Where it raises, values without an order were compared; there a
walk over Python's own syntax tree says what is true, with a clash as neither true nor false. The walk is held against `eval`.
"""

import ast
import itertools
import json
import operator
import random
import sys
import warnings
from typing import Any

warnings.simplefilter("error")

MEMORY: dict[str, dict[str, Any]] = {
    "project": {
        "yes": True,
        "no": False,
        "zero": 0,
        "one": 1,
        "ten": 10,
        "minus": -3,
        "half": 0.5,
        "whole": 1.0,
        "nil": 0.0,
        "big": 9007199254740993,
        "near": 9007199254740992.0,
        "huge": 18446744073709551615,
        "far": 1e300,
    },
    "order": {
        "empty": "",
        "gold": "gold",
        "digits": "10",
        "accent": "é",
        "list": [],
        "items": [1, "a", None],
        "same": [1.0, "a", None],
        "flags": [True],
        "ones": [1],
        "map": {},
        "tree": {"a": [True]},
        "wood": {"a": [1]},
    },
}
LITERALS = [
    "None",
    "True",
    "False",
    "0",
    "1",
    "-3",
    "10",
    "0.5",
    "1.0",
    "-0.0",
    "1e300",
    "9007199254740993",
    "9007199254740992.0",
    "''",
    "'gold'",
    '"10"',
    "'\\u00e9'",
    "'g\\x6fld'",
    "'it\\'s'",
]
NAMES = [f"session.{space}.{entry}" for space, entries in MEMORY.items() for entry in entries] + [
    "session.order.unset"
] * 3
SIGNS = ["==", "!=", "<", "<=", ">", ">="]
CLASH = object()


class Space:
    """A namespace whose entries are attributes; what is not there is None."""

    def __init__(self, entries: dict[str, Any]) -> None:
        self.entries = entries

    def __getattr__(self, name: str) -> Any:
        return self.entries.get(name)


class Session:
    project = Space(MEMORY["project"])
    order = Space(MEMORY["order"])


def operand(choice: random.Random) -> str:
    return choice.choice(NAMES) if choice.random() < 0.65 else choice.choice(LITERALS)


def comparison(choice: random.Random) -> str:
    text = operand(choice)
    for _ in range(choice.choice([0, 1, 1, 1, 1, 2, 3])):
        if choice.random() < 0.12:
            text += f" {choice.choice(['is', 'is not'])} {choice.choice(['None', 'True', 'False'])}"
        else:
            text += f" {choice.choice(SIGNS)} {operand(choice)}"
    return text


def condition(choice: random.Random, depth: int) -> str:
    if depth == 0 or choice.random() < 0.25:
        text = comparison(choice)
    elif choice.random() < 0.25:
        return f"not {condition(choice, depth - 1)}"
    else:
        word = choice.choice([" and ", " or "])
        text = word.join(condition(choice, depth - 1) for _ in range(choice.choice([2, 2, 3])))
        return f"({text})" if choice.random() < 0.5 else text
    return text


def holds(node: ast.expr) -> Any:
    """True, False or CLASH for a condition."""
    if isinstance(node, ast.BoolOp):
        decisive = isinstance(node.op, ast.Or)
        truths = [holds(value) for value in node.values]
        return decisive if decisive in truths else CLASH if CLASH in truths else not decisive
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        truth = holds(node.operand)
        return CLASH if truth is CLASH else not truth
    if isinstance(node, ast.Compare):
        values = [value(one) for one in (node.left, *node.comparators)]
        links = [link(op, *pair) for op, pair in zip(node.ops, itertools.pairwise(values), strict=True)]
        return False if False in links else CLASH if CLASH in links else True
    return bool(value(node))


def value(node: ast.expr) -> Any:
    return eval(compile(ast.Expression(node), "", "eval"), {"session": Session})


def link(op: ast.cmpop, left: Any, right: Any) -> Any:
    ordered = isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
    if ordered and isinstance(left, list):
        return CLASH  # Not Python's: lists have an order there.
    functions: dict[type[ast.cmpop], Any] = {
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
        ast.Is: operator.is_,
        ast.IsNot: operator.is_not,
    }
    try:
        return functions[type(op)](left, right)
    except TypeError:
        return CLASH


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    choice = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 7)
    vectors: dict[str, bool] = {}
    raised = 0
    while len(vectors) < count:
        text = condition(choice, choice.choice([0, 1, 1, 2, 3]))
        if len(text) > 160:
            continue
        truth = holds(ast.parse(text, mode="eval").body)
        try:
            with warnings.catch_warnings(action="ignore"):
                real = bool(eval(text, {"session": Session}))
        except TypeError:
            raised += 1
        else:
            # The order of lists is Python's alone.
            lists = any(f"session.order.{entry}" in text for entry in ("list", "items", "same", "flags", "ones"))
            assert (truth is True) == real or lists, text
        vectors[text] = truth is True
    print(f"{raised} of {count} raise", file=sys.stderr)
    lines = ",\n".join(json.dumps([text, truth], ensure_ascii=False) for text, truth in vectors.items())
    print(f'{{"memory": {json.dumps(MEMORY, ensure_ascii=False)},\n"vectors": [\n{lines}\n]}}')


main()
