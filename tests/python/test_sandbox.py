"""What the sandbox's Python side reads off generated code, and how values cross; no worker runs here."""

from __future__ import annotations

import asyncio
import datetime
import json
import math
import sys
from types import SimpleNamespace

import pytest
from tenterhook.sandbox import serving, values
from tenterhook.sandbox.rewriting import assigned, without_tasks
from tenterhook.sandbox.sites import Sites, parse


def coroutines(source: str) -> list[str]:
    """The calls of `tool` and `other` that want a coroutine, as they stand in the source."""
    text = source.encode()
    sites = Sites(source, parse(source))
    spans = [span for span in sites.wanted if text[span[0] : span[1]].startswith((b"tool(", b"other("))]
    return [text[start:end].decode() for start, end in sorted(spans) if sites.wants_coroutine(start, end)]


WANTED = {
    "awaited": ("x = await tool(1)", ["tool(1)"]),
    "awaited in brackets": ("x = (await (tool(1)))", ["tool(1)"]),
    "awaited as an argument": ("print(await tool(1))", ["tool(1)"]),
    "awaited behind non-ASCII text": ("'äöü'; await tool('ß')", ["tool('ß')"]),
    "gathered": ("a, b = await asyncio.gather(tool(1), other(2))", ["tool(1)", "other(2)"]),
    "gathered, imported by name": ("await gather(tool(1))", ["tool(1)"]),
    "gathered from a list": ("await asyncio.gather(*[tool(1), other(2)])", ["tool(1)", "other(2)"]),
    "gathered from a comprehension": ("await asyncio.gather(*[tool(i) for i in range(3)])", ["tool(i)"]),
    "gathered from a generator": ("await asyncio.gather(*(tool(i) for i in range(3)))", ["tool(i)"]),
    "gathered by a choice": ("await asyncio.gather(tool(1) if x else other(2))", ["tool(1)", "other(2)"]),
    "a task": ("t = asyncio.create_task(tool(1))\nawait t", ["tool(1)"]),
    "a task that nobody waits for": ("asyncio.create_task(tool(1))", ["tool(1)"]),
    "within a time": ("await asyncio.wait_for(tool(1), timeout=3)", ["tool(1)"]),
    "a name that is awaited later": ("t = tool(1)\nu = other(2)\nawait t", ["tool(1)"]),
    "two names at once": ("t, u = tool(1), other(2)\nawait u", ["other(2)"]),
    "a list that is gathered later": ("l = [tool(i) for i in x]\nawait asyncio.gather(*l)", ["tool(i)"]),
    "appended to a list that is gathered": (
        "l = []\nfor i in x:\n    l.append(tool(i))\nawait gather(*l)",
        ["tool(i)"],
    ),
    "added to a list that is gathered": ("l = []\nl += [tool(1)]\nawait gather(*l)", ["tool(1)"]),
    "a dict that is gathered": (
        "d = {'a': tool(1)}\nd['b'] = other(2)\nawait gather(*d.values())",
        ["tool(1)", "other(2)"],
    ),
    "gone through and awaited": ("l = [tool(1)]\nfor t in l:\n    print(await t)", ["tool(1)"]),
    "gone through in a comprehension": ("l = [tool(1)]\nr = [await t for t in l]", ["tool(1)"]),
    "handed on from name to name": ("a = tool(1)\nb = a\nc = [b]\nawait gather(*c)", ["tool(1)"]),
    "returned by a function": ("def f(i):\n    return tool(i)\nawait f(1)", ["tool(i)"]),
    "given by a lambda": ("f = lambda i: tool(i)\nawait gather(*[f(i) for i in x])", ["tool(i)"]),
    "a parameter that is awaited": ("async def f(t):\n    return await t\nawait f(tool(1))", ["tool(1)"]),
    "a walrus": ("if (t := tool(1)):\n    await t", ["tool(1)"]),
    "plain": ("x = tool(1)\nprint(x)", []),
    "plain in a loop": ("for i in x:\n    print(tool(i))", []),
    "plain in a comprehension": ("l = [tool(i) for i in x]\nprint(l)", []),
    "plain, an argument of one that is awaited": ("await tool(other(1))", ["tool(other(1))"]),
    "plain, returned by a coroutine": ("async def f():\n    return tool(1)\nawait f()", []),
    "plain, in a function within one that is awaited": (
        "def f():\n    def g():\n        return other(1)\n    return tool(g())\nawait f()",
        ["tool(g())"],
    ),
    "plain, an attribute of what it gives": ("x = tool(1)['a']\ny = tool(2).b", []),
    "plain, asked in a condition": ("if tool(1) > 2:\n    await other(3)", ["other(3)"]),
}


@pytest.mark.parametrize(("source", "expected"), WANTED.values(), ids=WANTED.keys())
def test_a_call_gives_a_coroutine_where_it_is_awaited_or_gathered_and_else_its_value(
    source: str, expected: list[str]
) -> None:
    assert coroutines(source) == expected


def test_lines_are_told_apart_as_python_does() -> None:
    source = "a\r\nb\rc\nawait tool(1)"
    sites = Sites(source, parse(source))
    assert (sites.line(0), sites.line(source.index("b")), sites.line(source.index("tool"))) == (1, 2, 4)
    assert coroutines(source) == ["tool(1)"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [("await tool(1)", True), ("await (\n tool(1)", True), ("x = tool(1)", False), ("unawait tool(1)", False)],
)
def test_what_this_interpreter_cannot_read_is_judged_by_the_text_before_a_call(source: str, expected: bool) -> None:
    start = source.index("tool")
    assert Sites(source, None).wants_coroutine(start, start + len("tool(1)")) is expected


HOSTILE = {
    "brackets": "(" * 60_000,
    "closed brackets": "[" * 10_000 + "]" * 10_000,
    "signs": "-" * 60_000 + "1",
    "nots": "not " * 15_000 + "1",
    "lambdas": "lambda:" * 8_000 + "1",
    "attributes": "a" + ".b" * 30_000,
    "calls": "f" + "()" * 30_000,
    "choices": "1 if 1 else " * 5_000 + "1",
    "else-ifs": "if 1: pass\n" + "elif 1: pass\n" * 4_600,
    "sums": "1" + "+1" * 30_000,
    "blocks": "".join(" " * depth + "if 1:\n" for depth in range(300)),
    "f-strings": 'f"{' * 20_000,
    "targets": "a=" * 30_000 + "1",
    "a NUL": "a\0b",
    "half a pair": "\ud800",
    "an escape": '"\\d"',
    "digits": "1" * 60_000,
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_source_harms_whoever_reads_it(source: str) -> None:
    tree = parse(source)
    Sites(source, tree).wants_coroutine(0, 1)
    assigned(tree)
    assert isinstance(without_tasks(source, tree), str)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("t = asyncio.create_task(tool(1))", "t = (                   tool(1))"),
        ("t = asyncio.create_task(tool(1), name='x')", "t = (                   tool(1)          )"),
        ("asyncio.create_task(\n  tool(1),\n)", "(                   \n  tool(1) \n)"),
        ("from asyncio import gather, create_task", "from asyncio import gather, sleep      "),
        ("create_task(*x)", "create_task(*x)"),
        ("'create_task(tool())'", "'create_task(tool())'"),
    ],
)
def test_a_task_is_its_call_and_nothing_moves(source: str, expected: str) -> None:
    assert without_tasks(source, parse(source)) == expected


def test_the_names_that_code_sets_are_those_of_its_top_level_and_its_globals() -> None:
    source = """\
a = b, c = 1, 2
d: int = 3
e += 1
for f in x:
    g = 1
with y as h:
    pass
if (i := 1):
    j[0] = k.l = 2
m = [n for o in x if (p := o)]
def q(r):
    global s
    s = t = 1
class U:
    v = 1
try:
    w = 1
except E as gone:
    z = 1
"""
    assert assigned(parse(source)) == ["a", "b", "c", "d", "e", "f", "g", "h", "i", "m", "p", "s", "w", "z"]


CROSSING: dict[str, tuple[object, object]] = {
    "plain values": ([None, True, 1, -1.5, "ä"], [None, True, 1, -1.5, "ä"]),
    "a tuple": ((1, (2,)), [1, [2]]),
    "a set": ({3, 1, 2}, [1, 2, 3]),
    "a frozen set": (frozenset(["a"]), ["a"]),
    "a date": (datetime.date(2026, 1, 2), "2026-01-02"),
    "a moment": (datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC), "2026-01-02T03:00:00+00:00"),
    "a dataclass": (SimpleNamespace(is_dataclass=True, attributes={"x": (1,)}), {"x": [1]}),
    "keys": ({2: "a", None: "b", False: "c", 1.5: "d"}, {"2": "a", "null": "b", "false": "c", "1.5": "d"}),
    "half a pair": ("a\ud800", "a?"),
    "the largest numbers": ([2**64 - 1, -(2**63)], [2**64 - 1, -(2**63)]),
}


@pytest.mark.parametrize(("value", "expected"), CROSSING.values(), ids=CROSSING.keys())
def test_a_value_crosses_as_the_text_of_json(value: object, expected: object) -> None:
    assert json.loads(values.text(value)) == expected


ITSELF: list[object] = []
ITSELF.append(ITSELF)


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


REFUSED: dict[str, tuple[object, str]] = {
    "bytes": (b"x", "it holds a value of type `bytes`, which is no value of JSON"),
    "NaN": ([math.nan], "it holds the number nan, which is no value of JSON"),
    "an infinity": (-math.inf, "it holds the number -inf, which is no value of JSON"),
    "a whole number": (2**64, "it holds a whole number beyond 64 bits, which is no value of JSON"),
    "a class": (int, "it holds a value of type `type`, which is no value of JSON"),
    "a function": ("<function 'f' at 0xc>", "it holds `<function 'f'>`, which is no value of JSON"),
    "a coroutine": (
        "<coroutine object f>",
        "it holds `<coroutine object f>`, which is no value of JSON: await it first",
    ),
    "a key": ({(1, 2): 3}, "it has a key of type `tuple`: use a text"),
    "depth": (nested(200), "it is nested deeper than 120 levels"),
    "a list in itself": (ITSELF, "it is nested deeper than 120 levels"),
    "many values": ([0] * 1_000_001, "it holds more than 1,000,000 values"),
    "a long text": (["a" * (1 << 20)] * 17, "it is longer than 16 MiB"),
}


@pytest.mark.parametrize(("value", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_json_is_refused_with_what_is_wrong(value: object, message: str) -> None:
    with pytest.raises(TypeError) as refusal:
        values.text(value)
    assert str(refusal.value) == message


def test_what_is_nested_twice_in_each_of_many_is_refused_at_once() -> None:
    value: object = []
    for _ in range(100):
        value = [value, value]
    with pytest.raises(TypeError, match="it holds more than 1,000,000 values"):
        values.text(value)
    shared = ["a"]
    assert values.text([shared, (shared, shared)]) == '[["a"], [["a"], ["a"]]]'


def test_what_is_large_is_taken_on_another_thread_with_the_same_result() -> None:
    large = list(range(100_000))
    assert json.loads(asyncio.run(values.crossed(large, "it"))) == large
    assert json.loads(asyncio.run(values.gave(large))) == large
    with pytest.raises(TypeError, match="`x` holds more than 1,000,000 values"):
        asyncio.run(values.crossed([0] * 1_000_001, "`x`"))


def test_without_the_package_nothing_is_served_and_the_way_to_install_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    told: list[str] = []
    serving.serve(SimpleNamespace(missing=told.append, failed=told.append))  # type: ignore[arg-type]
    assert told[0].startswith("install it: pip install 'tenterhook[execute]' (")


def test_what_code_has_given_at_its_end_is_shown_where_it_is_no_json() -> None:
    given = [b"x", math.nan, int, 10**5000, {(1, 2): "<function 'f' at 0xc>"}]
    assert json.loads(values.shown(given)) == [
        "b'x'",
        "nan",
        "<class 'int'>",
        "<a whole number beyond 64 bits>",
        {"(1, 2)": "<function 'f' at 0xc>"},
    ]
    refused = "<a value that cannot be shown: it holds more than 1,000,000 values>"
    assert json.loads(values.shown([0] * 1_000_001)) == refused
