"""The check, as Python callers and the interpreter see it."""

import importlib
import json
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

import pytest
import tenterhook

from tests.python.conftest import WriteAgent

#: Files of the standard library's tests that the compiler refuses after parsing: `__future__` imports in a wrong place or of an
#: unknown feature, and an encoding that contradicts a byte order mark. The check parses; it does not compile.
COMPILER_ONLY = ("badsyntax_future", "bad_coding2.py")


def test_problems_have_places(write_agent: WriteAgent) -> None:
    agent = write_agent("""
@modify_outgoing_text()
async def one(p: OutgoingTextPayload) -> OutgoingTextPayload:
    return p

@modify_outgoing_text()
async def two(p: OutgoingTextPayload) -> OutgoingTextPayload:
    return p
""")
    file = str(agent / "hooks.py")
    assert tenterhook.check(agent) == [
        tenterhook.Problem(
            "duplicate-modify",
            "error",
            "`two` is a second modify hook at outgoing text",
            "keep one, and call the other from it",
            file,
            8,
            11,
            8,
            14,
            (tenterhook.Place("the first is `one`", file, 4, 11, 4, 14),),
        )
    ]
    assert tenterhook.check(agent / "hooks.py") == tenterhook.check(agent)
    with pytest.raises(tenterhook.AgentError, match="does not exist"):
        tenterhook.check(agent / "none")


def test_nothing_is_imported(write_agent: WriteAgent) -> None:
    agent = write_agent("raise SystemExit(3)\n\n@on_tool_call()\nasync def f(p: ToolCallPayload) -> None: ...\n")
    assert tenterhook.check(agent) == []


def test_newer_grammar_is_told_with_its_version(write_agent: WriteAgent) -> None:
    agent = write_agent("type X = int\n@on_tool_call()\nasync def f(p: ToolCallPayload) -> None: ...\n")
    [problem] = tenterhook.check(agent, target_version=(3, 11))
    assert (problem.rule, problem.message) == ("syntax-error", "needs Python 3.12 to use `type` alias statement")
    assert tenterhook.check(agent, target_version=(3, 12)) == []


def test_syntax_errors_are_where_the_interpreter_finds_them() -> None:
    files = [file for file in Path(sysconfig.get_path("stdlib")).rglob("*.py") if "site-packages" not in file.parts]
    assert len(files) > 500
    refused = set()
    for file in files:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
            except (SyntaxError, ValueError):
                refused.add(str(file))
    version = f"3.{sys.version_info[1]}"
    options = ["check", "--output-format", "json", "--select", "syntax-error", "--target-version", version]
    found = set()
    for start in range(0, len(files), 300):
        command = [sys.executable, "-m", "tenterhook", *options, *map(str, files[start : start + 300])]
        answer = json.loads(subprocess.run(command, check=False, capture_output=True).stdout)
        found |= {problem["file"] for problem in answer["diagnostics"]}
    assert found - refused == set()
    assert [file for file in sorted(refused - found) if not Path(file).name.startswith(COMPILER_ONLY)] == []


def test_a_project_is_validated_by_the_names_of_the_runtime(tmp_path: Path) -> None:
    error: type[Exception] = importlib.import_module("rasa.exceptions").ValidationError
    validation = importlib.import_module("rasa.mantle.validation")

    skill = tmp_path / "skills" / "card"
    skill.mkdir(parents=True)
    (skill / "skill.md").write_text(
        "---\nname: Card\ndescription: Locks it\nrequires: session.card.number\n---\nLock it.\n"
    )
    with pytest.raises(error, match=r"session\.card\.number"):
        validation.validate_project(tmp_path)
    (skill / "memory.yml").write_text("schema: {public: {number: {type: text}}}\n")
    validation.validate_project(tmp_path)
    assert [finding for finding in validation.collect_project_findings(tmp_path) if finding.severity == "error"] == []
