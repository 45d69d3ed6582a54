"""The names `rasa.mantle.*`: given by a finder, beside an installed `rasa` and without one."""

import subprocess
import sys
from pathlib import Path


def run(code: str, cwd: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_names_are_given_after_install_and_lead_to_one_module(tmp_path: Path) -> None:
    code = """
import sys, tenterhook
try:
    import rasa
except ImportError:
    print("absent")
tenterhook.install()
tenterhook.install()
import rasa.mantle.hooks, rasa.calm_v2.hooks
import tenterhook.mantle.hooks as ours
print(rasa.mantle.hooks is ours, rasa.calm_v2.hooks is ours, ours.__name__, ours.__spec__.name)
from tenterhook import names
names.uninstall()
print([type(finder).__module__ for finder in sys.meta_path if isinstance(finder, names._Finder)])
"""
    assert run(code, tmp_path) == "absent\nTrue True tenterhook.mantle.hooks tenterhook.mantle.hooks\n[]"


def test_of_an_installed_rasa_exactly_our_modules_are_shadowed(tmp_path: Path) -> None:
    for path, text in {
        "rasa/__init__.py": "REAL = 1",
        "rasa/mantle/__init__.py": "",
        "rasa/mantle/hooks.py": "REAL = 2",
        "rasa/mantle/other.py": "REAL = 3",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    code = """
import rasa.mantle.hooks as before
import tenterhook
tenterhook.install()
import rasa, rasa.mantle.other
from rasa.mantle import hooks
from rasa.mantle.hooks import on_tool_call
import tenterhook.mantle.hooks as ours
print(before.REAL, rasa.REAL, rasa.mantle.other.REAL, hooks is ours, on_tool_call is ours.on_tool_call)
"""
    assert run(code, tmp_path) == "2 1 3 True True"


def test_a_rasa_without_a_mantle_package_gets_one(tmp_path: Path) -> None:
    (tmp_path / "rasa").mkdir()
    (tmp_path / "rasa/__init__.py").write_text("REAL = 1", encoding="utf-8")
    code = "import tenterhook; tenterhook.install(); import rasa; from rasa.mantle.hooks import RetryModel; print(rasa.REAL)"
    assert run(code, tmp_path) == "1"


def test_importing_the_package_imports_neither_engine_nor_pydantic(tmp_path: Path) -> None:
    code = "import sys, tenterhook; print([m for m in ('pydantic', 'tenterhook._engine') if m in sys.modules])"
    assert run(code, tmp_path) == "[]"


def test_a_hook_module_runs_as_plain_python_without_an_engine(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(
        "from rasa.mantle.hooks import *\n"
        "@modify_model_response()\n"
        "async def retry(p: ModelResponsePayload) -> ModelResponsePayload:\n"
        "    raise RetryModel('x')\n",
        encoding="utf-8",
    )
    code = """
import asyncio, tenterhook
tenterhook.install()
import hooks
from rasa.mantle.hooks import ModelResponsePayload, RetryModel
try:
    asyncio.run(hooks.retry(ModelResponsePayload.model_construct(text="t", sender_id="s", tool_calls=[])))
except RetryModel as signal:
    print(signal.feedback)
"""
    assert run(code, tmp_path) == "x"
