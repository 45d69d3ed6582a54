"""The wheel's command."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from tests.python.conftest import WriteAgent

EXAMPLES = Path(__file__).parents[2] / "hooks-examples"


@pytest.mark.parametrize(
    "start", [[str(Path(sys.executable).with_name("tenterhook"))], [sys.executable, "-m", "tenterhook"]]
)
def test_it_plays_an_example(start: list[str]) -> None:
    example = EXAMPLES / "mask-private-data"
    arguments = ["run", str(example), "--input", str(example / "conversations.jsonl"), "--output-format", "json"]
    done = subprocess.run([*start, *arguments], check=False, capture_output=True)
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, b"")
    assert report["conversations"] == {"played": 5, "skipped": []}
    assert [hook["calls"] for hook in report["hooks"]] == [
        hook["changed"] + hook["unchanged"] for hook in report["hooks"]
    ]


def test_what_hooks_print_goes_to_stderr(write_agent: WriteAgent) -> None:
    agent = write_agent(
        "print('at import')\n@on_turn_started()\nasync def f(p: TurnStartedPayload) -> None: print('later')\n"
    )
    lines = agent / "in.jsonl"
    lines.write_text('{"messages": [{"role": "user", "content": "a"}]}', encoding="utf-8")
    command = [sys.executable, "-m", "tenterhook", "run", str(agent), "--input", str(lines), "--output-format", "json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stderr == "at import\nlater\n"
    assert json.loads(done.stdout)["turns"] == {"completed": 1, "rejected": 0, "failed": 0}


def test_a_wrong_use_exits_with_2() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tenterhook", "run", "none", "--input", "x"], check=False, capture_output=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: Input `x` cannot be read: No such file")


def test_another_interpreter_than_its_own_is_refused(write_agent: WriteAgent) -> None:
    agent = write_agent("")
    lines = agent / "in.jsonl"
    lines.touch()
    command = [
        sys.executable,
        "-m",
        "tenterhook",
        "run",
        str(agent),
        "--input",
        str(lines),
        "--python",
        "/other/python",
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "The Python interpreter of this process runs already with" in done.stderr


def test_stubs_are_written(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "tenterhook", "stubs", tmp_path / "typings"], check=True, capture_output=True)
    written = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*.pyi")}
    modules = ["exceptions", "mantle.hooks", "mantle.validation", "mantle.tools.decorator", "mantle.tools.result"]
    modules.append("mantle.orchestration.turn_context")
    packages = ["", "mantle/", "mantle/tools/", "mantle/orchestration/"]
    ours = {name: f"from tenterhook.mantle.{name.removeprefix('mantle.')} import *\n" for name in modules}
    assert written == {
        **{f"typings/rasa/{package}__init__.pyi": "" for package in packages},
        **{f"typings/rasa/{name.replace('.', '/')}.pyi": text for name, text in ours.items()},
    }


def test_what_a_check_prints_fits_its_schema(write_agent: WriteAgent) -> None:
    agent = write_agent(
        "@modify_tool_call()\nasync def f(p: ToolCallPayload) -> ToolCallPayload: return p\n"
        "@modify_tool_call()\nasync def g(p: ToolCallPayload) -> ToolCallPayload: print(p)\n"
    )
    command = [sys.executable, "-m", "tenterhook"]
    schema = json.loads(subprocess.run([*command, "schema", "check"], check=True, capture_output=True).stdout)
    check = [*command, "check", "--output-format", "json", str(agent)]
    report = json.loads(subprocess.run(check, check=False, capture_output=True).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(report, schema, cls=jsonschema.Draft202012Validator)
    assert [problem["rule"] for problem in report["diagnostics"]] == ["duplicate-modify", "missing-return"]
    report["diagnostics"][0]["severity"] = "bad"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, schema, cls=jsonschema.Draft202012Validator)
