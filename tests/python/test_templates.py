"""Argument templates: what is refused at load, what is rendered, and that nothing takes long or tells values."""

import contextlib
import ctypes
import importlib
import json
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import jsone
import jsone.interpreter
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tenterhook import templates
from tenterhook.templates import TemplateError, bounds, source
from tenterhook.templates import expressions as syntax

THEIRS = importlib.import_module("jsone.render")  # the package has a function of this name
START, COMPLETION = "on_request_start", "on_completion"
MARKER = "s3cr3tMARKER"


def message(role: str, content: str | None, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "tool_calls": [], "tool_call_id": None, **more}


def context(user: str = "first question", answer: str | None = "the answer", **more: Any) -> dict[str, Any]:
    last = None if answer is None else message("assistant", answer)
    call = {"id": "c1", "name": "read", "arguments": {"file_path": "/a.txt"}}
    return {
        "event": COMPLETION,
        "messages": [
            message("user", user),
            message("assistant", None, tool_calls=[call]),
            message("tool", "file body", tool_call_id="c1"),
            *([last] if last else []),
        ],
        "last_user_message": message("user", user),
        "last_assistant_message": last,
        "iteration_count": 2,
        "total_tool_calls": 1,
        **more,
    }


def render(template: Any, given: Any = None) -> Any:
    return json.loads(templates.render(json.dumps(template), json.dumps(context() if given is None else given)))


def failure(template: Any, given: Any = None) -> str:
    with pytest.raises(TemplateError) as raised:
        render(template, given)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    return str(raised.value)


def problems(template: Any, event: str = COMPLETION) -> list[dict[str, Any]]:
    text = template if isinstance(template, str) else json.dumps(template)
    found: list[dict[str, Any]] = json.loads(templates.check(text, event))
    assert all(set(problem) == {"path", "message", "hint"} for problem in found)
    return found


# --- at load: syntax


@pytest.mark.parametrize(
    ("expression", "how"),
    [
        ("", "it is empty"),
        ("   ", "it is empty"),
        ("messages[", "unexpected end"),
        ("a | b", "unexpected '|'"),
        ("1 +", "unexpected end"),
        ("a..b", "unexpected '.'"),
        ("a b", "unexpected 'b'"),
        ("-", "unexpected end"),
        ("len(", "unexpected end"),
        ("len(,1)", "unexpected ','"),
        ("[1,,2]", "unexpected ','"),
        ("(1", "unexpected end"),
        ("1)", "unexpected ')'"),
        ("{1: 2}", "unexpected '1'"),
        ("'open", "unexpected '''"),
        ("#", "unexpected '#'"),
    ],
)
@pytest.mark.parametrize("form", ["placeholder", "$eval", "$if"])
def test_wrong_syntax_is_refused_wherever_an_expression_stands(expression: str, how: str, form: str) -> None:
    template: Any = f"x ${{{expression}}} y" if form == "placeholder" else {form: expression, "then": 1}
    if form == "$eval":
        del template["then"]
    (problem,) = problems({"q": [template]})
    assert problem["path"] == ("arguments.q[0]" if form == "placeholder" else f"arguments.q[0].{form}")
    # A text that does not end takes the placeholder's end with it.
    assert how in problem["message"]
    assert "is no expression" in problem["message"]


def test_a_placeholder_without_its_end_is_refused() -> None:
    (problem,) = problems({"q": "${abc"})
    assert problem["message"] == "'${abc' is no expression: it has no closing '}'"
    (problem,) = problems({"q": "${messages[}"})
    assert "unexpected end" in problem["message"]


@pytest.mark.parametrize(
    "expression",
    [
        "messages[-4:]",
        "messages[:2]",
        "{a: messages[0].role}",
        "{'a': 1, b: [],}",
        "[]",
        "len(messages)",
        "event",
        "now",
        "fromNow('1 day', now)",
        "messages[0].tool_calls[0].name",
        "messages[0]['content']",
        "last_assistant_message.content",
        "messages[0].tool_calls[0].arguments.anything.goes.here",
        "messages[0].tool_calls[0].arguments['any'][3]",
        "messages[len(messages)-1].content",
        "messages[len(messages)-1].anything",
        "messages[-4:][0].content",
        "last_user_message.content[:100]",
        "event[0]",
        "'}' + \"}\"",
        "iteration_count > 1 && !(total_tool_calls == 0)",
        "'content' in last_user_message",
    ],
)
def test_what_is_right_passes_in_each_form(expression: str) -> None:
    assert problems({"a": f"x ${{{expression}}}, ${{{expression}}}", "b": {"$eval": expression}}) == []
    assert problems({"$if": expression, "then": {"a": 1}}) == []


@pytest.mark.parametrize("value", [3, None, True, ["1"], {"$eval": "'1'"}])
@pytest.mark.parametrize("operator", ["$eval", "$if"])
def test_expressions_are_strings(operator: str, value: Any) -> None:
    (problem,) = problems({"q": {operator: value}})
    assert f"'{operator}' must be given a string expression" in problem["message"]


# --- at load: names and fields

KNOWN = "event, messages, last_user_message, last_assistant_message"


@pytest.mark.parametrize(
    ("expression", "text", "hint"),
    [
        ("tool_input", f"unknown field 'tool_input' on CompletionHookContext; known: {KNOWN}, iteration_count", None),
        ("mesages[0].role", "unknown field 'mesages' on CompletionHookContext", "did you mean 'messages'?"),
        ("lenn(messages)", "unknown field 'lenn'", "did you mean 'len'?"),
        ("last_user_message.contnet", "unknown field 'contnet' on HookMessage", "did you mean 'content'?"),
        ("messages[0]['contnet']", "unknown field 'contnet' on HookMessage", "did you mean 'content'?"),
        ("messages[0].tool_calls[0].nam", "unknown field 'nam' on HookToolCall", "did you mean 'name'?"),
        ("messages[-4:].content", "cannot read field 'content' of list", "take one element"),
        ("messages['role']", "cannot read field 'role' of list", "take one element"),
        ("messages[0].tool_calls.name", "cannot read field 'name' of list", "take one element"),
        ("event.name", "cannot read field 'name' of string", None),
        ("iteration_count.x", "cannot read field 'x' of number", None),
        ("iteration_count[0]", "cannot take an element of number", None),
        ("iteration_count[:1]", "cannot take a part of number", None),
        ("last_user_message[0]", "cannot take an element of HookMessage", None),
        ("last_user_message[-1:]", "cannot take a part of HookMessage", None),
        ("messages[nope].content", "unknown field 'nope'", None),
        ("messages[nope:]", "unknown field 'nope'", None),
        ("len([{a: nope}])", "unknown field 'nope'", None),
        ("!nope", "unknown field 'nope'", None),
        ("1 + nope", "unknown field 'nope'", None),
    ],
)
def test_unknown_names_and_fields_are_refused(expression: str, text: str, hint: str | None) -> None:
    for template in ({"a": {"b": ["x", f"${{{expression}}}"]}}, {"a": {"b": ["x", {"$eval": expression}]}}):
        (problem,) = problems(template)
        assert problem["path"].startswith("arguments.a.b[1]")
        assert text in problem["message"]
        assert hint is None or hint in problem["hint"]


@pytest.mark.parametrize("name", ["iteration_count", "total_tool_calls"])
def test_counters_exist_on_completion_only(name: str) -> None:
    assert problems({"q": f"${{{name}}}"}) == []
    (problem,) = problems({"q": f"${{{name}}}"}, START)
    assert problem["message"] == f"unknown field '{name}' on RequestStartHookContext; known: {KNOWN}"
    assert problem["hint"] == f"'{name}' exists on 'on_completion' only"


@pytest.mark.parametrize(
    "template",
    [
        {"a": {"$map": {"$eval": "messages"}, "each(m)": "${m.role} ${m.anything}"}},
        {"a": {"$map": {"$eval": "messages"}, "each(m, i)": {"$eval": "i"}}},
        {"a": {"$reduce": {"$eval": "messages"}, "initial": "${raw}", "each(all,m,i)": {"$eval": "all + m.role"}}},
        {"a": {"$let": {"who": "x"}, "in": {"b": "${who}"}}},
        {"a": {"$let": {"who": "x"}, "in": {}}, "b": "${who}"},  # scopes are not looked at
        {"a": {"$let": {"event": {"x": 1}}, "in": "${event.x}"}},
        {"a": {"$let": {"$eval": "messages[0].tool_calls[0].arguments"}, "in": "${city}"}},
        {"a": {"$let": {"k${event}": 1}, "in": "${kon_completion}"}},
        {"a": {"$sort": {"$eval": "messages"}, "by(m)": "m.role"}},
        {"a": {"$find": {"$eval": "messages"}, "each(m)": "m.role == 'user'"}},
        {"a": {"$match": {"event == nobody": "${event}"}}},
        {"a": {"$switch": {"nobody": 1, "$default": "${event}"}}},
        {"a": {"$if": "true", "$then": 1, "$else": 2}},
        {
            "$$schema": "x",
            "b": [{"$$ref": 1}],
            "c": "$${nope}",
            "d": {"$$eval": "x y"},
            "$$k${nope": 1,
            "$": 2,
            "$1": 3,
        },
        {"a": "$ {nope} $nope {nope}", "b": "$$${nope}"},
        {},
    ],
)
def test_valid_templates_are_not_refused(template: Any) -> None:
    assert problems(template) == []


def test_the_dialog_template_of_the_documentation_passes() -> None:
    template = {
        "dialog": {
            "$map": {"$eval": "messages"},
            "each(m)": {
                "$if": "m.role == 'user' || (m.role == 'assistant' && len(m.tool_calls) == 0)",
                "then": {"role": {"$eval": "m.role"}, "content": {"$eval": "m.content"}},
            },
        }
    }
    assert problems(template, START) == []
    assert render(template) == {
        "dialog": [{"role": "user", "content": "first question"}, {"role": "assistant", "content": "the answer"}]
    }


@pytest.mark.parametrize("key", ["$schema", "$ref", "$notAnOperator", "$_"])
def test_reserved_keys_are_refused_also_in_lists(key: str) -> None:
    (problem,) = problems({"a": [{"b": {key: "x"}}]})
    assert problem["path"] == f"arguments.a[0].b.{key}"
    assert problem["message"] == f"key '{key}' is reserved for operators; use '${key}' for the key itself"
    assert problems({"a": [{"b": {f"${key}": "x"}}]}) == []


def test_a_mistyped_operator_has_a_hint() -> None:
    (problem,) = problems({"a": {"$evl": "event"}})
    assert problem["hint"] == "did you mean '$eval'?"


def test_all_problems_are_given_each_once_with_its_place() -> None:
    template = {
        "q": ["${one} ${two} ${one}", {"$eval": "a b"}],
        "no name": {"$if": 3, "then": "${three}"},
        "k${four}": {"$ref": "${five}"},
        "ü": {"$map": [], "each(m)": {"x": "${six}"}},
    }
    assert [problem["path"] for problem in problems(template)] == [
        "arguments.q[0]",
        "arguments.q[0]",
        "arguments.q[1].$eval",
        'arguments["no name"].$if',
        'arguments["no name"].then',
        'arguments["k${four}"]',
        'arguments["k${four}"].$ref',
        'arguments["k${four}"].$ref',
        'arguments["ü"]["each(m)"].x',
    ]


# --- is there a template


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hello", False),
        ("x ${a} y", True),
        ({"$eval": "x"}, True),
        ([{"a": ["${a}"]}], True),
        ({"k${x}": 1}, True),
        ("$${nope}", False),
        ("$${nope} ${a}", True),
        ("$$${nope}", False),
        ({"$$eval": "x"}, False),
        ({"$$k${x}": "x"}, False),
        ({"$schema": "x"}, False),
        (1, False),
        (1.5, False),
        (True, False),
        (None, False),
    ],
)
def test_whether_arguments_have_a_template(value: Any, expected: bool) -> None:
    assert templates.has_template(json.dumps(value)) is expected
    assert templates.has_template(json.dumps({"a": [value]})) is expected


# --- rendering


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ({"n": {"$eval": "iteration_count"}}, {"n": 2}),
        ({"n": "${iteration_count}"}, {"n": "2"}),
        ({"q": "Q: ${last_user_message.content}! n=${iteration_count}"}, {"q": "Q: first question! n=2"}),
        ({"a": {"b": ["${last_assistant_message.content}", 7]}}, {"a": {"b": ["the answer", 7]}}),
        ({"q": "$${literal} and ${event}"}, {"q": "${literal} and on_completion"}),
        ({"q": "$${literal}"}, {"q": "${literal}"}),
        ({"$$schema": "x"}, {"$schema": "x"}),
        ({"k${iteration_count}": "v"}, {"k2": "v"}),
        ({"q": {"$eval": "uppercase(last_assistant_message.content)"}}, {"q": "THE ANSWER"}),
        ({"q": {"$eval": "len(messages)"}}, {"q": 4}),
        (
            {"q": {"$map": {"$eval": "messages"}, "each(m)": {"$eval": "m.role"}}},
            {"q": ["user", "assistant", "tool", "assistant"]},
        ),
        ({"q": {"$if": "iteration_count > 1", "then": "many", "else": "few"}}, {"q": "many"}),
        ({"q": {"$if": "iteration_count > 5", "then": "many"}}, {}),
        ({"q": {"$eval": "last_assistant_message.tool_call_id"}}, {"q": None}),
        ({"q": "[${last_assistant_message.tool_call_id}]"}, {"q": "[]"}),
        ({"q": {"$eval": "messages[1].tool_calls[0].arguments['nope']"}}, {"q": None}),
        ({"q": "grüße 😀 ${event}", "ключ": 1}, {"q": "grüße 😀 on_completion", "ключ": 1}),
        ({"q": {"$eval": "range(0, 3)"}}, {"q": [0, 1, 2]}),
        ({"q": {"$eval": "2 ** 10"}}, {"q": 1024}),
        ({"q": {"$eval": "!!true"}}, {"q": True}),
        ({"q": {"$eval": "join(split('a b c', ' '), '-')"}}, {"q": "a-b-c"}),
        ({"q": {"$json": {"b": {"$eval": "1"}, "a": "ü"}}}, {"q": '{"a":"ü","b":1}'}),
        ({"q": {"$find": [1, 2, 3], "each(x)": "x > 1"}}, {"q": 2}),
        ({"q": {"$find": [1, 2, 3], "each(x, i)": "i == 2"}}, {"q": 3}),
        ({"q": {"$find": [1], "each(x)": "x > 1"}, "z": 1}, {"z": 1}),
        ({"$merge": [{"a": 1}, {"b": {"$eval": "event"}}]}, {"a": 1, "b": COMPLETION}),
    ],
)
def test_templates_render(template: Any, expected: Any) -> None:
    assert render(template) == expected


def test_parts_of_the_conversation_keep_their_types() -> None:
    (tool, answer) = render({"recent": {"$eval": "messages[-2:]"}})["recent"]
    assert tool == message("tool", "file body", tool_call_id="c1")
    assert answer["content"] == "the answer"


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ({"q": "x ${messages[0]}"}, "at template.q: an array or object cannot be put into a text"),
        ({"q": {"$eval": "messages[1].tool_calls[0].arguments.nope"}}, "at template.q: there is no field 'nope'"),
        ({"q": {"$eval": "messages[99]"}}, "at template.q: index out of bounds"),
        ({"a": [{"b c": "${nope}"}]}, "at template.a[0][\"b c\"]: there is no name 'nope'"),
        ({"$eval": "messages"}, "arguments must render to an object"),
        ({"$if": "false", "then": {}}, "arguments must render to an object"),
        (["${event}"], "arguments must render to an object"),
        (["event"], "arguments must render to an object"),
        ({"q": {"$if": "true", "$then": 1}}, "at template.q: $if has undefined properties: $then"),
        ({"q": "${}"}, "at template.q: the expression has a syntax error"),
        ({"q": {"$eval": ""}}, "at template.q: the expression has a syntax error"),
        ({"q": {"$eval": "a b"}}, "at template.q: the expression has a syntax error"),
        ({"q": {"$eval": 3}}, "at template.q: the operands of $eval do not fit"),
        ({"q": {"$eval": "'a' + 1"}}, "at template.q: the operands of '+' do not fit"),
        ({"q": {"$eval": "-'a'"}}, "at template.q: the operands of '-' do not fit"),
        ({"q": {"$eval": "1 / 0"}}, "at template.q: division by zero"),
        ({"q": {"$eval": "len(1)"}}, "at template.q: the arguments of 'len' do not fit"),
        ({"q": {"$eval": "range(1)"}}, "at template.q: a value is of the wrong kind"),
        ({"q": {"$eval": "messages['a']"}}, "at template.q: an index is not an integer"),
        ({"q": {"$eval": "last_user_message[0]"}}, "at template.q: the key of a field is not a text"),
        ({"q": {"$eval": "iteration_count[0]"}}, "at template.q: an element is taken of what is not a list"),
        ({"q": {"$sort": [1, "a"]}}, "at template.q: the operands of $sort do not fit"),
        ({"q": {"$mergeDeep": 1}}, "at template.q: the operands of $mergeDeep do not fit"),
        ({"q": {"$eval": "1", "$json": 1}}, "at template.q: an object has more than one operator"),
        ({"q": {"$x": "${event}"}}, "at template.q: a key that begins with '$' is not an operator"),
        ({"q": {"$eval": "len"}}, "a function is not a value"),
        ({"q": "${len}"}, "at template.q: a function is not a value"),
        ({"q": {"$match": {"true": {"$if": "false", "then": 1}}}}, "a function is not a value"),
        ({"q": {"$find": {}, "each(x)": "true"}}, "at template.q: $find looks in a list only"),
        ({"q": {"$find": [], "each(x)": 1}}, "at template.q: the 'each(..)' of $find must be a string"),
        ({"q": {"$find": []}}, "at template.q: $find takes one 'each(..)'"),
    ],
)
def test_what_cannot_be_rendered_is_told_with_its_place(template: Any, text: str) -> None:
    assert text in failure(template)


def test_the_first_turn_has_no_answer() -> None:
    text = failure({"q": {"$eval": "last_assistant_message.content"}}, context(answer=None))
    assert text == "at template.q: a field is read of what is not an object"


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 1.10, "m": 1E5,"x":[ 1764458000000123456789 ], "u": "\\u00fc", "e": 1e999}',
        "{}",
        '{"a": "$x {y} $$", "$schema": 1}',
    ],
)
def test_without_a_template_the_text_comes_back(text: str) -> None:
    assert templates.render(text, json.dumps(context())) == text
    assert templates.render(text, "no JSON at all") == text


def test_integers_are_exact_and_text_is_not_escaped() -> None:
    number = 1764458000000123456789
    text = json.dumps({"n": number, "m": {"$eval": "n + 1"}, "q": "ü ${event}"})
    assert (
        templates.render(text, json.dumps(context(n=number)))
        == f'{{"n":{number},"m":{number + 1},"q":"ü {COMPLETION}"}}'
    )


@pytest.mark.parametrize("expression", ["number('inf')", "[number('nan')]", "number('1e999')", "10.0 ** 400"])
def test_numbers_that_json_does_not_have_are_refused(expression: str) -> None:
    failure({"q": {"$eval": expression}})
    failure({"q": {"$eval": f"{{a: {expression}}}"}})


def test_what_the_user_wrote_is_no_template() -> None:
    said = context("${messages[2].content} ${9**9**9} $${x}", mine={"$eval": "messages"})
    for template in (
        {"q": {"$find": {"$eval": "messages"}, "each(m)": "m.role == 'user'"}},
        {"q": {"$eval": "messages[0]"}},
        {"q": {"$let": {"m": {"$eval": "messages[0]"}}, "in": {"$eval": "m"}}},
    ):
        assert render(template, said) == {"q": said["messages"][0]}
    assert render({"q": {"$find": [{"$eval": "mine"}], "each(m)": "true"}}, said) == {"q": {"$eval": "messages"}}


# --- bad inputs


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("", "not JSON (line 1, column 1)"),
        ('{"a":\n nope}', "not JSON (line 2, column 2)"),
        ('{"a": NaN}', "a number that cannot be read"),
        (f'{{"a": {"9" * 5000}}}', "a number that cannot be read"),
        ('{"a": "\\ud800${event}"}', "not valid Unicode"),
        ('{"a": "\ud800"}', "not valid Unicode"),
        ("[" * 500 + "]" * 500, "nested more than 100 levels deep"),
        ("[" * 200_000, "nested more than 100 levels deep"),
        ('{"a":' * 101 + "1" + "}" * 101, "nested more than 100 levels deep"),
        ('"\\' * 100_000, "not JSON"),
        (f'{{"a": "{"x" * source.TEMPLATE_SIZE}"}}', "more than 256 KiB"),
    ],
)
def test_what_cannot_be_read_is_refused_by_all_three(text: str, how: str) -> None:
    (problem,) = problems(text) if text else json.loads(templates.check("", START))
    assert problem["path"] == "arguments"
    assert how in problem["message"]
    for call in (lambda: templates.render(text, "{}"), lambda: templates.has_template(text)):
        with pytest.raises(TemplateError, match="arguments") as raised:
            call()
        assert how in str(raised.value)


def test_arguments_are_an_object_and_brackets_in_texts_do_not_nest() -> None:
    assert [problem["message"] for problem in problems("[1]")] == ["arguments must be an object"]
    assert problems({"a": "[" * 500 + '"' + "{" * 500}) == []
    with pytest.raises(TemplateError, match="event"):
        templates.check("{}", "on_nothing")


@pytest.mark.parametrize("given", ["", "[]", "nope", "NaN", "[" * 100_000])
def test_a_context_that_cannot_be_read_is_refused(given: str) -> None:
    with pytest.raises(TemplateError):
        templates.render('{"a": "${event}"}', given)


# --- limits


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 500 + "1" + ")" * 500,
        "[" * 51 + "]" * 51,
        "!" * 3000 + "true",
        "+".join(["1"] * 3000),
        "2" + "**1" * 2000,
        "[" * 5000,
        "1" + "+1" * 400,
    ],
)
def test_deep_expressions_are_refused_at_load_and_end_cleanly(expression: str) -> None:
    for template in ({"q": {"$eval": expression}}, {"q": f"${{{expression}}}"}):
        (problem,) = problems(template)
        for text in (problem["message"], failure(template)):
            assert "nested" in text or "more than 500 operations" in text


def test_what_the_check_lets_through_is_not_too_deep_to_render() -> None:
    deep = "(" * syntax.BRACKETS + "+".join(["1"] * 90) + ")" * syntax.BRACKETS
    template: Any = {"$eval": deep}
    for level in range(source.NESTING - 2):
        template = ({"x": template}, [template], {"$map": [1], "each(x)": template})[level % 3]
    template = {"q": template}
    assert problems(template) == []
    results: list[Any] = []
    threading.stack_size(1024 * 1024)
    try:
        thread = threading.Thread(target=lambda: results.append(render(template)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(0)
    assert "90" in json.dumps(results)


def test_many_and_long_expressions_are_refused() -> None:
    (problem,) = problems({"q": {"$eval": "1" * (syntax.EXPRESSION_SIZE + 1)}})
    assert "more than 8192 characters" in problem["message"]
    (problem,) = problems({"q": "${'" + "x" * syntax.EXPRESSION_SIZE + "'}"})
    assert "more than 8192 characters" in problem["message"]
    (problem,) = problems({"q": "${a | b}" + "x" * syntax.EXPRESSION_SIZE})
    assert "unexpected '|'" in problem["message"]
    begun = time.thread_time()
    (problem,) = problems({"q": "${event}" * 30_000})
    assert "10000 tokens" in problem["message"]
    assert time.thread_time() - begun < 5


GROWTH: list[Any] = [
    {"$eval": "range(0, 1000000000)"},
    {"$eval": "len(range(0, 100000000))"},
    {"$eval": "len(range(0, 30001, 3))"},
    {"$eval": "len(range(30001, 0, -3))"},
    {"$eval": "9 ** 9 ** 9"},
    {"$eval": "(0 - 9) ** 9999999"},
    {"$eval": "(0 - 8) ** 0.5"},
    {"$eval": "split(huge, '')"},
    {"$eval": "split(huge, 'x')"},
    {"$eval": "join(split(short, ''), short)"},
    {"$eval": "huge + huge + huge"},
    {"$eval": "[messages, huge, huge]"},
    {"$json": [{"$eval": "huge"}]},
    "${huge}" * 1000,
    "${7 ** 4600}" * 18_000,
    {"$map": {"$eval": "range(0, 10000)"}, "each(i)": {"$eval": "huge[i:]"}},
    {"$map": {"$eval": "range(0, 10000)"}, "each(i)": {"$eval": "lowercase(huge)"}},
    {"$map": {"$eval": "range(0, 10000)"}, "each(i)": {"$eval": "range(i, i + 10000)"}},
    *(
        {"$reduce": {"$eval": "range(0, 60)"}, "initial": initial, "each(a, i)": step}
        for initial, step in (
            ("ab", {"$eval": "a + a"}),
            ("ab", "${a}${a}"),
            ("ab", {"$eval": "join([a, a], a)"}),
            (["ab"], {"$eval": "[a, a]"}),
            (["ab"], [{"$eval": "a"}, {"$eval": "a"}]),
            (["ab"], {"$flatten": [{"$eval": "a"}, {"$eval": "a"}, {"$eval": "[i, i, i]"}]}),
            (["ab"], {"$flattenDeep": [{"$eval": "a"}, {"$eval": "a"}]}),
            ("ab", {"$json": [{"$eval": "a"}, {"$eval": "a"}]}),
            ({"a": [1]}, {"$mergeDeep": [{"$eval": "a"}, {"$eval": "a"}]}),
            (3, {"$eval": "a * a"}),
            ([0], {"$if": "a == [a]", "then": [], "else": {"$eval": "[a, a]"}}),
        )
    ),
    {"$reduce": {"$eval": "range(0, 5000)"}, "initial": [], "each(a, i)": [{"$eval": "a"}]},
]


@pytest.mark.parametrize("template", GROWTH, ids=lambda template: json.dumps(template)[:60])
def test_nothing_grows_without_a_bound(template: Any) -> None:
    given = context(huge="xy" * 1_500_000, short="x" * 20_000)
    begun = time.thread_time()
    text = failure({"q": template}, given)
    assert time.thread_time() - begun < 10
    assert any(word in text for word in ("too large", "too long", "more than", "not a finite", "too many")), text


def test_the_result_has_a_size() -> None:
    text = "ü" * (bounds.RESULT_SIZE // 2)
    assert "more than 1024 KiB" in failure({"q": {"$eval": "text"}}, context(text=text))
    assert "more than 1024 KiB" in failure({"q": {"$eval": "messages"}}, context("x" * 5_000_000))
    assert render({"q": {"$eval": "text"}}, context(text=text[:-10])) == {"q": text[:-10]}
    assert render({"q": {"$eval": "len(text)"}}, context(text="x" * 5_000_000)) == {"q": 5_000_000}


def test_long_texts_on_the_way() -> None:
    given = context(huge="x" * 3_000_000)
    length = {"$let": {"text": "${huge}"}, "in": {"$eval": "len(text)"}}
    assert render({"q": {"$map": [1, 2, 3], "each(i)": length}}, given) == {"q": [3_000_000] * 3}
    # As JSON it would be written in one step.
    written = {"$let": {"text": {"$json": {"$eval": "huge"}}}, "in": {"q": {"$eval": "len(text)"}}}
    assert failure(written, given) == "at template.text: a text is too long"


def test_not_twice_for_each_exclamation_mark() -> None:
    assert render({"q": {"$eval": "!" * 60 + "true"}}) == {"q": True}


def test_the_json_e_of_others_is_left_alone() -> None:
    assert THEIRS.Interpreter is jsone.interpreter.Interpreter
    assert THEIRS.renderValue.__module__ == "jsone.render"
    assert len(jsone.render({"$eval": "range(0, 20000)"}, {})) == 20_000
    assert jsone.render({"$find": ["${1}"], "each(x)": "true"}, {}) == "1"


def test_an_interruption_from_outside_goes_through() -> None:
    class StopNow(BaseException):
        pass

    loop = {"$map": {"$eval": "range(0, 10000)"}, "each(i)": {"$if": "len([i]) == 0", "then": 1}}
    template = {"q": {"$map": {"$eval": "range(0, 10000)"}, "each(j)": {"$if": "false", "then": 1, "else": loop}}}
    ended: list[BaseException] = []

    def run() -> None:
        try:
            render(template)
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(StopNow))
    thread.join(5)
    assert [type(error) for error in ended] == [StopNow]
    assert render({"q": "${event}"}) == {"q": COMPLETION}


def test_a_host_that_lifts_pythons_recursion_limit_is_not_brought_down() -> None:
    code = """
import json, sys, threading
from tenterhook.templates import TemplateError, check, has_template, render
sys.setrecursionlimit(10**6)
threading.stack_size(1024 * 1024)
def run():
    for expression in ("len(" * 9000, "[" * 20000, "(" * 20000, "-" * 20000 + "1", "2" + "**1" * 9000, "+".join(["1"] * 10000)):
        for text in (json.dumps({"q": {"$eval": expression}}), "[" * 200000, '{"a":' * 40000):
            for call in (lambda: check(text, "on_completion"), lambda: has_template(text), lambda: render(text, "{}")):
                try:
                    call()
                except TemplateError:
                    pass
    print("done")
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""
    path = str(Path(templates.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r})\n{code}"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


# --- properties

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
plain_text = st.text().filter(lambda text: "${" not in text and not text.startswith("$"))


def trees(leaves: st.SearchStrategy[Any], keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4))


plain = st.dictionaries(plain_text, trees(scalars.filter(lambda value: "${" not in str(value)), plain_text), max_size=4)


@given(plain)
def test_property_without_constructs_a_template_is_its_own_result(template: Any) -> None:
    text = json.dumps(template)
    assert not templates.has_template(text)
    assert templates.render(text, "{}") == text
    assert problems(text) == []
    # The same by way of json-e, which an escape beside it asks for.
    assert render({"$$x": 1, "same": template}) == {"$x": 1, "same": template}


words = [
    *(
        "messages",
        "last_user_message",
        "last_assistant_message",
        ".content",
        ".role",
        "[0]",
        "[-1]",
        "[1:]",
        "['x']",
        ".nope",
    ),
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "+",
        "-",
        "*",
        "**",
        "/",
        "!",
        "==",
        "<",
        "in",
        "&&",
        "||",
        " ",
        "1",
        "0",
        "2.5",
    ),
    *(
        "len",
        "join",
        "split",
        "range",
        "str",
        "number",
        "fromNow",
        "uppercase",
        "typeof",
        "min",
        "sqrt",
        "x",
        "i",
        "'a'",
        "|",
        "$",
    ),
    *("number(last_user_message.content)", "fromNow(last_user_message.content)", "last_user_message.content()"),
    "last_user_message[last_user_message.content]",
]
expressions = st.lists(st.sampled_from(words), max_size=8).map("".join) | st.text(max_size=10)
texts = st.lists(
    expressions.map(lambda text: f"${{{text}}}") | st.sampled_from(["${", "$${", "}", "a"]), max_size=3
).map("".join)
operator_names = sorted(THEIRS.operators)
keys = st.sampled_from(
    [*operator_names, "in", "then", "else", "initial", "from", "each(x)", "each(x,i)", "by(x)", "$$eval", "$x", "a"]
)
hostile = trees(scalars | texts | expressions, keys | texts | st.text(max_size=3))


def operations(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    expression = st.fixed_dictionaries({"$eval": expressions})
    value = inner | expression
    return st.one_of(
        expression,
        *(st.fixed_dictionaries({name: value}) for name in operator_names),
        *(st.fixed_dictionaries({name: value, "each(x,i)": value | expressions}) for name in ("$map", "$find")),
        st.fixed_dictionaries({"$reduce": value, "initial": value, "each(x,i)": value}),
        st.fixed_dictionaries({"$sort": value, "by(x)": expressions}),
        st.fixed_dictionaries({"$let": st.dictionaries(st.sampled_from("xi"), value), "in": value}),
        st.fixed_dictionaries({"$if": expressions, "then": value, "else": value}),
        st.dictionaries(texts, value, max_size=2),
        st.lists(value, max_size=3),
    )


working = st.dictionaries(
    texts | st.sampled_from("qr"), st.recursive(texts | scalars, operations, max_leaves=6), max_size=3
)


@settings(max_examples=400, deadline=None)
@given(st.one_of(hostile, working))
def test_property_only_template_errors_and_no_values_in_them(template: Any) -> None:
    text = json.dumps(template)
    given = context(MARKER, f"$and {MARKER}", mine={MARKER: MARKER})
    for event in (START, COMPLETION):
        json.loads(templates.check(text, event))
    told = ""
    try:
        assert isinstance(json.loads(templates.render(text, json.dumps(given))), dict)
    except TemplateError as error:
        told = "".join(traceback.format_exception(error))
    assert MARKER not in told


@settings(max_examples=300, deadline=None)
@given(working)
def test_property_results_are_those_of_json_e(template: Any) -> None:
    given = context(now="2017-01-19T16:27:20.974Z")
    try:
        result = render(template, given)
    except TemplateError:
        return
    if "$find" not in json.dumps(template):
        assert result == json.loads(json.dumps(jsone.render(template, given)))


@given(st.text() | st.text('{}[]",:\\$e0-1.'), st.text())
def test_property_any_text_is_refused_or_taken(text: str, given: str) -> None:
    json.loads(templates.check(text, COMPLETION))
    for call in (lambda: templates.has_template(text), lambda: templates.render(text, given)):
        with contextlib.suppress(TemplateError):
            call()


@settings(deadline=None)
@given(working)
def test_property_wrong_syntax_is_found_at_load(template: Any) -> None:
    text = json.dumps(template)
    try:
        templates.render(text, json.dumps(context()))
    except TemplateError as error:
        # The expressions of these are looked at when they run.
        if "syntax error" in str(error) and not any(word in text for word in ("$find", "by(", "$match", "$switch")):
            assert problems(template) != []


@pytest.mark.parametrize(
    "template",
    [
        {"q": "${number(last_user_message.content)}"},
        {"q": "${fromNow(last_user_message.content)}"},
        {"q": "${fromNow('1 day', last_user_message.content)}"},
        {"q": "${last_user_message.content()}"},
        {"q": "${last_user_message()}"},
        {"q": "${messages}"},
        {"q": {"$eval": "last_user_message.content + 1"}},
        {"k${last_user_message.content}": {"a": ["${nope}"]}},
        {"q": {"$let": {"k${last_user_message.content} ": 1}, "in": 1}},
        {"q": {"$sort": {"$eval": "[last_user_message.content, 1]"}}},
        {"q": {"$fromNow": {"$eval": "last_user_message.content"}}},
        {"q": {"$merge": {"$eval": "mine"}}},
        {"q": {"$map": {"$eval": "mine"}, "each(x)": {"$eval": "x.val"}}},
        {"q": {"$find": [{"$eval": "last_user_message.content"}], "each(x)": "nope[x]"}},
    ],
)
def test_messages_hold_no_values(template: Any) -> None:
    for said in (MARKER, f"${{{MARKER}}}", f"$map {MARKER}", f'object has no property "{MARKER}"'):
        with pytest.raises(TemplateError) as raised:
            render(template, context(said, mine={MARKER: said}))
        assert MARKER not in "".join(traceback.format_exception(raised.value))
