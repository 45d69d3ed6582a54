//! Finding and importing modules (cases L10 to L12, L14, L16, L17), two engines beside each other, and what is no agent.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use tenterhook::{Error, HookEngine, OutgoingTextPayload, Point};

use crate::agents::{Agent, agent, agent_of, builder, environment, folder, proceeded, refusal};

/// A hook that answers with the value of an expression, seen from its module.
fn tell(imports: &str, expression: &str) -> String {
    format!(
        "{imports}
from rasa.mantle.hooks import OutgoingTextPayload, modify_outgoing_text

@modify_outgoing_text()
async def tell(p: OutgoingTextPayload) -> OutgoingTextPayload:
    return p.model_copy(update={{'text': str({expression})}})
"
    )
}

async fn told(engine: &HookEngine) -> String {
    proceeded(engine.modify(OutgoingTextPayload::new("s", "")).await).0.text
}

#[test]
fn l10_a_handler_that_a_second_module_imports_is_registered_once() {
    let agent = agent_of(&[
        (
            "hooks/a.py",
            "from rasa.mantle.hooks import *\n@on_turn_started()\nasync def f(p: TurnStartedPayload) -> None: ...\n",
        ),
        ("hooks/b.py", "from hooks.a import f\nfrom .a import f as g\n"),
    ]);
    let registered = agent.engine.registered(Point::TurnStarted);
    assert_eq!(registered.iter().map(ToString::to_string).collect::<Vec<_>>(), ["hooks.a:f"]);
}

#[tokio::test]
async fn l11_relative_and_absolute_imports_work() {
    let agent = agent_of(&[
        (
            "hooks/a.py",
            &tell(
                "from . import words
from .words import WORD
from .deep.er import DEEP
import hooks.words as again
from hooks.words import WORD as SAME
import lib.x
from lib import x, y as why
from tools.look import TOOL
import beside",
                "[words is again, WORD is SAME, DEEP, lib.x.X, x is lib.x, why.Y, TOOL, beside.B]",
            ),
        ),
        ("hooks/words.py", "WORD = ['w']\n"),
        ("hooks/deep/er.py", "from ..words import WORD\nDEEP = WORD[0] + 'd'\n"),
        ("lib/x.py", "from lib.y import Y\nX = Y + 1\n"),
        ("lib/y.py", "Y = 1\n"),
        ("tools/__init__.py", ""),
        ("tools/look.py", "from lib import x\nTOOL = x.X + 1\n"),
        ("beside.py", "B = 'b'\n"),
    ]);
    assert_eq!(told(&agent.engine).await, "[True, True, 'wd', 2, True, 1, 3, 'b']");
}

#[tokio::test]
async fn modules_are_importable_inside_handlers_long_after_the_load() {
    let agent = agent_of(&[
        ("hooks.py", "
import importlib
from rasa.mantle.hooks import *

@modify_outgoing_text()
async def tell(p: OutgoingTextPayload) -> OutgoingTextPayload:
    from lib import late
    import lib.later as later
    same = importlib.import_module('lib.late')
    other = importlib.import_module('lib').late
    dunder = __import__('lib.late').late
    exec('from lib.late import N as n', globals())
    std = importlib.import_module('json'), importlib.util.find_spec('json').name
    return p.model_copy(update={'text': f'{late.N} {later.M} {same is late} {other is late} {dunder is late} {n} {std[0].__name__} {std[1]}'})
"),
        ("lib/late.py", "N = 1\n"),
        ("lib/later.py", "import importlib as i\nM = i.import_module('lib.late').N + 1\n"),
    ]);
    assert_eq!(told(&agent.engine).await, "1 2 True True True 1 json json");
}

#[test]
fn l12_files_of_every_name_and_encoding_are_loaded_each_once() {
    let hook = |point: &str, payload: &str, extra: &str| {
        format!("{extra}from rasa.mantle.hooks import *\n@on_{point}()\nasync def f(p: {payload}) -> None: ...\n")
    };
    let folder = folder(&[
        ("hooks/x/y/z.py", &hook("turn_started", "TurnStartedPayload", "")),
        ("hooks/my-hook.py", &hook("turn_finished", "TurnFinishedPayload", "")),
        ("hooks/_private.py", &hook("tool_call", "ToolCallPayload", "")),
        ("hooks/café.py", &hook("tool_result", "ToolResultPayload", "")),
        ("hooks/bom.py", &hook("model_request", "ModelRequestPayload", "\u{feff}")),
    ]);
    let latin = [
        b"# -*- coding: latin-1 -*-\nword = '\xe9'\nassert word == chr(233)\n".as_slice(),
        hook("model_response", "ModelResponsePayload", "").as_bytes(),
    ]
    .concat();
    fs::write(folder.path().join("hooks/latin.py"), latin).unwrap();
    std::os::unix::fs::symlink("bom.py", folder.path().join("hooks/again.py")).unwrap();
    std::os::unix::fs::symlink("x", folder.path().join("hooks/linked")).unwrap();
    let engine = builder(&folder).load().unwrap();
    let registered: Vec<_> =
        engine.statistics().iter().map(|hook| format!("{} {}", hook.handler.point, hook.handler.module)).collect();
    assert_eq!(
        registered,
        [
            "turn_started hooks.x.y.z",
            "model_request hooks.bom",
            "model_response hooks.latin",
            "tool_call hooks._private",
            "tool_result hooks.café",
            "turn_finished hooks.my-hook",
        ]
    );
}

#[tokio::test]
async fn l14_names_may_repeat_and_nothing_of_the_standard_library_is_shadowed() {
    let agent = agent_of(&[
        ("hooks/json.py", &tell("import json as j\nfrom . import json as own", "[j.dumps([1]), own is not j]")),
        (
            "hooks/a/same.py",
            "from rasa.mantle.hooks import *\n@on_turn_started()\nasync def f(p: TurnStartedPayload) -> None: ...\n",
        ),
        (
            "hooks/b/same.py",
            "from rasa.mantle.hooks import *\n@on_turn_started()\nasync def f(p: TurnStartedPayload) -> None: ...\n",
        ),
        ("json.py", "raise ImportError('shadows the standard library')\n"),
    ]);
    assert_eq!(agent.engine.registered(Point::TurnStarted).len(), 2);
    assert_eq!(told(&agent.engine).await, "['[1]', True]");
}

#[tokio::test]
async fn hooks_py_and_the_folder_coexist() {
    let agent = agent_of(&[
        ("hooks.py", &tell("FIRST = 1\nfrom hooks.a import A", "[A, __import__('hooks').FIRST]")),
        (
            "hooks/a.py",
            "A = 'a'\nimport rasa.mantle.hooks as h\n@h.on_turn_started()\nasync def f(p: h.TurnStartedPayload) -> None: ...\n",
        ),
    ]);
    assert_eq!(told(&agent.engine).await, "['a', 1]");
    let names: Vec<_> = agent.engine.statistics().iter().map(|hook| hook.handler.to_string()).collect();
    assert_eq!(names, ["hooks.a:f", "hooks:tell"]);
    let agent = agent_of(&[
        ("hooks.py", &tell("FIRST = 1", "[__import__('hooks').INIT]")),
        ("hooks/__init__.py", "INIT = 'init'\n"),
        ("hooks/a.py", ""),
    ]);
    assert_eq!(told(&agent.engine).await, "['init']");
}

#[test]
fn files_that_no_import_statement_can_name_are_loaded_too() {
    let hook = |name: &str| {
        format!(
            "from rasa.mantle.hooks import *\n@on_turn_started()\nasync def {name}(p: TurnStartedPayload) -> None: ...\n"
        )
    };
    let agent = agent_of(&[
        ("hooks/pii.v2.py", &hook("dotted")),
        ("hooks/a.b/c.py", &hook("in_dotted_folder")),
        ("hooks/x.py", &hook("beside_a_package")),
        ("hooks/x/__init__.py", "INSIDE = 1\n"),
        ("hooks/x/y.py", &format!("from . import INSIDE\nfrom hooks.x import INSIDE\n{}", hook("in_the_package"))),
    ]);
    let mut names: Vec<_> = agent.engine.registered(Point::TurnStarted).iter().map(ToString::to_string).collect();
    names.sort();
    assert_eq!(
        names,
        ["hooks.a.b.c:in_dotted_folder", "hooks.pii.v2:dotted", "hooks.x.y:in_the_package", "hooks.x:beside_a_package"]
    );
}

#[tokio::test]
async fn a_folder_of_data_does_not_hide_an_installed_package() {
    let agent = agent_of(&[
        ("structlog/readme.txt", "data"),
        ("rules/readme.txt", "data"),
        ("rules/strict.py", "LIMIT = 3\n"),
        (
            "hooks.py",
            &tell("import structlog\nfrom rules.strict import LIMIT", "[structlog.get_logger() is not None, LIMIT]"),
        ),
    ]);
    assert_eq!(told(&agent.engine).await, "[True, 3]");
}

#[tokio::test]
async fn l16_an_edit_within_the_same_second_runs_and_a_stale_pyc_does_not() {
    let folder = folder(&[("hooks.py", &tell("from lib import x", "x.X")), ("lib/x.py", "X = 1\n")]);
    let engine = builder(&folder).load().unwrap();
    assert_eq!(told(&engine).await, "1");
    fs::write(folder.path().join("lib/x.py"), "X = 2\n").unwrap();
    assert_eq!(told(&builder(&folder).load().unwrap()).await, "2");
    assert_eq!(told(&engine).await, "1");
    let compile = "import py_compile, os, sys; f = sys.argv[1]; py_compile.compile(f); s = os.stat(f); open(f, 'w').write('X = 3\\n'); os.utime(f, ns=(s.st_atime_ns, s.st_mtime_ns))";
    let done = Command::new(environment().join("bin/python"))
        .args(["-c", compile])
        .arg(folder.path().join("lib/x.py"))
        .status();
    assert!(done.unwrap().success());
    assert!(folder.path().join("lib/__pycache__").is_dir());
    assert_eq!(told(&builder(&folder).load().unwrap()).await, "3");
}

#[tokio::test]
async fn l17_modules_are_imported_on_the_thread_and_loop_of_the_handlers() {
    let agent = agent(
        "
import asyncio, threading
lock = asyncio.Lock()
loop = asyncio.get_event_loop()
thread = threading.get_ident()
queue = asyncio.Queue()

@modify_incoming_message()
async def hold(p: IncomingMessagePayload) -> IncomingMessagePayload:
    async with lock:
        await asyncio.sleep(0.01)
    return p

@modify_outgoing_text()
async def tell(p: OutgoingTextPayload) -> OutgoingTextPayload:
    async with lock:
        await queue.put(1)
    same = asyncio.get_running_loop() is loop and threading.get_ident() == thread
    return p.model_copy(update={'text': f'{same} {await queue.get()}'})
",
    );
    let engine = Arc::new(agent.engine);
    let holders: Vec<_> = (0..5)
        .map(|_| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move { engine.modify(tenterhook::IncomingMessagePayload::new("s", "a")).await })
        })
        .collect();
    assert_eq!(told(&engine).await, "True 1");
    for holder in holders {
        proceeded(holder.await.unwrap());
    }
}

#[tokio::test]
async fn two_engines_share_no_module_even_when_their_calls_interleave() {
    let agent = |name: &str| -> Agent {
        agent_of(&[
            (
                "hooks.py",
                "
import asyncio
from lib import state
from rasa.mantle.hooks import *

@modify_outgoing_text()
async def tell(p: OutgoingTextPayload) -> OutgoingTextPayload:
    state.calls.append(p.text)
    await asyncio.sleep(0.001)
    import lib.state as again
    from lib.late import NAME
    return p.model_copy(update={'text': f'{NAME} {len(again.calls)} {again is state}'})
",
            ),
            ("lib/state.py", "calls = []\n"),
            ("lib/late.py", &format!("NAME = '{name}'\n")),
        ])
    };
    let (first, second) = (agent("first"), agent("second"));
    for count in 1..=20 {
        let (one, two) = tokio::join!(told(&first.engine), told(&second.engine));
        assert_eq!((one, two), (format!("first {count} True"), format!("second {count} True")));
    }
}

#[test]
fn what_is_no_agent_is_refused_in_one_message_with_the_place() {
    let said = |result: Result<HookEngine, Error>| result.unwrap_err().to_string();
    let empty = folder(&[("README.md", "")]);
    assert_eq!(
        said(HookEngine::load(empty.path())),
        format!(
            "Agent folder `{}` has no hook modules\n  hint: put `hooks.py`, or a folder `hooks/` with `.py` files in it, at its root",
            empty.path().display()
        )
    );
    assert!(said(HookEngine::load(empty.path().join("no"))).ends_with("/no` does not exist"));
    assert!(
        said(HookEngine::load(empty.path().join("README.md")))
            .contains("README.md` is a file\n  hint: give the agent's folder")
    );
    assert_eq!(
        refusal(&[("hooks.py", "x = 1\n")]),
        "The hook modules in `AGENT` register no hook\n  hint: decorate an `async def` function, for example with `@modify_model_request()` from `rasa.mantle.hooks`"
    );
}

#[test]
fn an_import_that_does_not_end_is_given_up() {
    let folder = folder(&[("hooks.py", "import time\ntime.sleep(3)\n")]);
    let error = builder(&folder).load_timeout(std::time::Duration::from_millis(300)).load().unwrap_err();
    let expected = "were not imported within 300ms\n  hint: look for a loop, a sleep or a network call at module level";
    assert!(error.to_string().ends_with(expected), "{error}");
}

#[test]
fn an_interpreter_that_does_not_fit_is_refused_in_one_sentence() {
    let agent = folder(&[("hooks.py", &tell("", "1"))]);
    let other = agent.path().join("python-of-another-version");
    fs::write(&other, "#!/bin/sh\necho 2.7\necho /usr\n").unwrap();
    let mut allowed = fs::metadata(&other).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut allowed, 0o755);
    fs::set_permissions(&other, allowed).unwrap();
    let said = HookEngine::builder(agent.path()).python(&other).load().unwrap_err().to_string();
    assert!(said.contains("is Python 2.7, but this engine is linked to Python 3."), "{said}");
    let said = HookEngine::builder(agent.path()).python(agent.path().join("none")).load().unwrap_err().to_string();
    assert!(said.ends_with("/none` cannot be run: there is no such interpreter"), "{said}");
}

#[tokio::test]
async fn folders_that_a_module_puts_on_the_path_are_the_agents_own() {
    let imports = "import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'lib'))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))
from settings_x import NAME
import settings_x, lib.settings_x
from b import helper";
    let agent = |name: &str| {
        agent_of(&[
            ("hooks/a.py", &tell(imports, "[NAME, settings_x is lib.settings_x, helper()]")),
            (
                "hooks/b.py",
                "from rasa.mantle.hooks import *\ndef helper(): return 1\n@on_turn_finished()\nasync def g(p: TurnFinishedPayload) -> None: ...\n",
            ),
            ("lib/settings_x.py", &format!("NAME = '{name}'\n")),
        ])
    };
    let (first, second) = (agent("first"), agent("second"));
    assert_eq!(told(&first.engine).await, "['first', True, 1]");
    assert_eq!(told(&second.engine).await, "['second', True, 1]");
    assert_eq!(second.engine.registered(Point::TurnFinished).len(), 1);
}

#[tokio::test]
async fn resources_reload_and_specs_work_by_the_agents_own_names() {
    let agent = agent_of(&[
        (
            "hooks.py",
            &tell(
                "import importlib, importlib.util, pkgutil\nfrom importlib import resources\nimport lib.x",
                "lib.x.read(importlib, resources, pkgutil)",
            ),
        ),
        (
            "lib/x.py",
            "
from importlib.resources import files
def read(importlib, resources, pkgutil):
    import lib.x as before
    own = resources.files('lib').joinpath('d.json').read_text()
    same = files(__package__).joinpath('d.json').read_text()
    spec = importlib.util.find_spec('lib.x').origin.endswith('lib/x.py')
    return [own, same, spec, importlib.reload(before) is before]
",
        ),
        ("lib/d.json", "{}"),
    ]);
    assert_eq!(told(&agent.engine).await, "['{}', '{}', True, True]");
}
