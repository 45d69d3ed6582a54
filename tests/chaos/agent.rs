//! The agent of the chaos: good hooks, and one that does what its payload names.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tenterhook::{HookEngine, Isolation, StaticCheck};

/// The time that the bad hook has.
pub(crate) const BAD_TIMEOUT: Duration = Duration::from_millis(100);

/// What the bad hook can do; `bad.py` has a function for each.
pub(crate) const KINDS: [&str; 20] = [
    "sleep",
    "sleep_long",
    "spin",
    "spin_later",
    "spin_in_a_task",
    "swallow_once",
    "swallow_the_cancellation",
    "await_too_long",
    "exit",
    "interrupt",
    "cancel_itself",
    "stop_the_loop",
    "exit_in_a_callback",
    "exit_in_a_thread",
    "raise",
    "raise_hostile",
    "give_nothing",
    "give_a_cycle",
    "hold_the_lock_in_c",
    "block_an_executor",
];

const HOOKS: &str = "
import asyncio
import logging
import sys
from rasa.mantle.hooks import *
from lib.bad import KINDS, NOTHING

# A thread that spins gives the interpreter's lock back after so long.
sys.setswitchinterval(0.0005)
# What ends the loop is told there, each time.
logging.getLogger('asyncio').disabled = True

@modify_tool_call(timeout_ms=100)
async def bad(call: ToolCallPayload) -> ToolCallPayload:
    given = await KINDS[call.tool_name](call)
    return None if given is NOTHING else given or call

@modify_outgoing_text(timeout_ms=1000)
async def good(payload: OutgoingTextPayload) -> OutgoingTextPayload:
    return payload.model_copy(update={'text': f'good {payload.text}'})

@modify_incoming_message(timeout_ms=400)
async def waits(message: IncomingMessagePayload) -> IncomingMessagePayload:
    await asyncio.sleep(0.005)
    return message.model_copy(update={'text': f'waited {message.text}'})
";

/// Writes the agent.
pub(crate) fn write() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("lib")).unwrap();
    fs::write(folder.path().join("lib/bad.py"), include_str!("bad.py")).unwrap();
    fs::write(folder.path().join("hooks.py"), HOOKS).unwrap();
    folder
}

/// Loads it.
pub(crate) fn load(folder: &TempDir, isolation: Isolation) -> HookEngine {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let python = root.join(std::env::var_os("VIRTUAL_ENV").unwrap_or_else(|| ".venv".into()));
    let builder = HookEngine::builder(folder.path()).python(python).static_check(StaticCheck::Off);
    let builder = builder.isolation(isolation).worker_command(env!("CARGO_BIN_EXE_tenterhook"), [""; 0]);
    builder.load().unwrap()
}
