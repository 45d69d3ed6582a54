//! Generated code that means harm: each a clear error, and nothing else is touched.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use serde_json::json;
use tenterhook::{CodeErrorKind, CodeLimits, CodeOutcome, RunnerError};

use crate::sandbox::{Host, code, run, runner, session};

const SMALL: usize = 32 << 20;

/// What comes of a source where a second and 32 MiB are the limits.
async fn within_limits(source: &str) -> CodeOutcome {
    let limits = CodeLimits { time: Duration::from_secs(1), memory: SMALL, ..CodeLimits::default() };
    session(limits).await.run(code(source), &Host::default()).await
}

/// The kind of end, its name and its text.
fn end(outcome: &CodeOutcome) -> (CodeErrorKind, &str, &str) {
    let error = outcome.error.as_ref().expect("it has failed");
    (error.kind, &error.name, &error.message)
}

#[tokio::test]
async fn what_computes_for_ever_meets_the_limit_on_time_and_loses_its_session() {
    for source in [
        "while True: pass",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "async def f():\n    while True: pass\nimport asyncio\nawait asyncio.gather(f(), f())",
        "def f(): f2()\ndef f2():\n    while True: pass\ntry:\n    f()\nfinally:\n    f()",
        "x = 3 ** 200000\nwhile True: x % 7",
        "import re\nre.match('(a+)+$', 'a' * 60 + 'b')\nwhile True: pass",
        "def f():\n    while True: pass\nsorted([1, 2], key=lambda x: f())",
    ] {
        let outcome = within_limits(source).await;
        let expected = (CodeErrorKind::Limit, "time", "The code has computed for more than 1 s");
        assert_eq!((end(&outcome), outcome.session_ended), (expected, true), "{source}");
        assert!(outcome.elapsed < Duration::from_secs(10), "{source}: {:?}", outcome.elapsed);
    }
}

#[tokio::test]
async fn what_takes_all_memory_meets_the_limit_on_memory() {
    for source in [
        "x = []\nwhile True: x.append('a' * 1000)",
        "x = 'a' * 10 ** 9",
        "x = b'a' * 10 ** 9",
        "x = [0] * 10 ** 9",
        "x = 2 ** 10 ** 9",
        "x = 1 << 10 ** 10",
        "x = []\nwhile True: x = [x, [0] * 100]",
        "x = {}\ni = 0\nwhile True:\n    x[i] = str(i)\n    i += 1",
        "x = 'ab'\nwhile True: x += x",
        "x = set()\ni = 0\nwhile True:\n    x.add(i)\n    i += 1",
        "x = []\ntry:\n    while True: x.append('a' * 1000)\nexcept BaseException: x = None",
        "x = 'a'.join(['b' * 1000000] * 1000)",
        "x = '{:>999999999}'.format(1)",
        "x = list(range(10 ** 9))",
        "x = 'a'.replace('a', 'b' * 10 ** 8)",
    ] {
        let outcome = within_limits(source).await;
        let expected = (CodeErrorKind::Limit, "memory", "The values of the code took more than 32 MiB");
        assert_eq!(end(&outcome), expected, "{source}");
    }
}

#[tokio::test]
async fn what_is_deep_meets_the_limit_on_recursion() {
    for source in [
        "def f(n):\n    return f(n + 1)\nf(0)",
        "f = lambda: f()\nf()",
        "class A:\n    def f(self): return self.f()\nA().f()",
    ] {
        let outcome = within_limits(source).await;
        let expected = (CodeErrorKind::Limit, "recursion", "Calls went deeper than 1,000 levels");
        assert_eq!((end(&outcome), outcome.session_ended), (expected, false), "{source}");
        assert!(outcome.error.unwrap().frames.len() <= 20);
    }
}

#[tokio::test]
async fn calls_beyond_their_number_end_the_code() {
    let limits = CodeLimits { calls: 500, ..CodeLimits::default() };
    for (source, ended) in [
        ("for i in range(100_000): echo(i)", false),
        ("for i in range(100_000): await echo(i)", false),
        ("import asyncio\nawait asyncio.gather(*[echo(i) for i in range(100_000)])", false),
        ("for i in range(100_000):\n    try:\n        echo(i)\n    except BaseException:\n        pass", true),
    ] {
        let host = Host::default();
        let mut session = session(limits).await;
        let outcome = session.run(code(source), &host).await;
        let expected = (CodeErrorKind::Limit, "calls", "The code has called functions more than 500 times");
        assert_eq!((end(&outcome), outcome.session_ended), (expected, ended), "{source}");
        assert_eq!(host.calls.into_inner().unwrap().len(), 500, "{source}");
    }
}

#[tokio::test]
async fn what_asks_for_names_and_files_for_ever_is_ended() {
    let limits = CodeLimits { calls: 100, ..CodeLimits::default() };
    for source in [
        "while True:\n    try:\n        nothing\n    except NameError:\n        pass",
        "while True:\n    try:\n        open('x')\n    except OSError:\n        pass",
        "import time\nwhile True: time.sleep(0)",
    ] {
        let outcome = session(limits).await.run(code(source), &Host::default()).await;
        let expected = (CodeErrorKind::Limit, "calls", "The code has left the sandbox too often");
        assert_eq!(end(&outcome), expected, "{source}");
    }
}

#[tokio::test]
async fn output_beyond_its_size_ends_the_code_and_is_cut() {
    for source in [
        "while True: print('x' * 99)",
        "print('x' * 20_000_000)",
        "for i in range(10_000):\n    try:\n        print('x' * 99)\n    except BaseException:\n        pass",
    ] {
        let outcome = within_limits(source).await;
        let expected = (CodeErrorKind::Limit, "output", "The code has printed more than 65,536 bytes");
        assert_eq!((end(&outcome), outcome.printed.len()), (expected, 64 << 10), "{source}");
    }
}

#[tokio::test]
async fn a_source_beyond_its_size_does_not_run() {
    let outcome = within_limits(&"x = 1\n".repeat(2_000_000)).await;
    let expected = (CodeErrorKind::Limit, "source", "The code has 12,000,000 bytes; at most 65,536 are taken");
    assert_eq!((end(&outcome), outcome.session_ended), (expected, false));
}

#[tokio::test]
async fn nothing_of_the_machine_is_within_reach() {
    for (source, name) in [
        ("import subprocess", "ModuleNotFoundError"),
        ("import ctypes", "ModuleNotFoundError"),
        ("import socket", "ModuleNotFoundError"),
        ("import importlib", "ModuleNotFoundError"),
        ("__import__('os')", "NameError"),
        ("import os\nos.system('true')", "AttributeError"),
        ("import os\nos.environ", "PermissionError"),
        ("import os\nos.getenv('HOME')", "PermissionError"),
        ("import os\nos.listdir('/')", "PermissionError"),
        ("import os\nos.kill(1, 9)", "AttributeError"),
        ("import os\nos.fork()", "AttributeError"),
        ("import os\nos.path.exists('/etc')", "PermissionError"),
        ("open('/etc/passwd').read()", "PermissionError"),
        ("open('x', 'w').write('y')", "PermissionError"),
        ("from pathlib import Path\nPath('/etc/passwd').read_text()", "PermissionError"),
        ("from pathlib import Path\nlist(Path('/').iterdir())", "PermissionError"),
        ("from pathlib import Path\nPath.home()", "AttributeError"),
        ("import sys\nsys._getframe()", "AttributeError"),
        ("import sys\nsys.modules", "AttributeError"),
        ("input()", "NameError"),
        ("globals()", "NameError"),
        ("().__class__.__bases__", "AttributeError"),
        ("().__class__.__subclasses__()", "AttributeError"),
        ("(lambda: 1).__globals__", "AttributeError"),
        ("(lambda: 1).__code__", "AttributeError"),
        ("echo.__globals__", "AttributeError"),
        ("'{0.__class__.__mro__}'.format(1)", "AttributeError"),
        ("try:\n    1 / 0\nexcept Exception as e:\n    e.__traceback__.tb_frame", "AttributeError"),
        ("import json\njson.__loader__", "AttributeError"),
        ("getattr(echo, '__' + 'self__')", "AttributeError"),
        ("from time import sleep\nsleep(1000)", "ValueError"),
    ] {
        let outcome = run(source).await;
        let error = outcome.error.unwrap_or_else(|| panic!("{source} gave {}", outcome.value));
        assert_eq!((error.kind, error.name.as_str()), (CodeErrorKind::Raised, name), "{source}: {}", error.message);
    }
}

#[tokio::test]
async fn what_the_sandbox_says_of_its_machine_is_made_up() {
    let source = "import sys, os, time\n[__file__, os.getcwd(), sys.argv, sys.executable, sys.prefix, time.tzname, sys.platform]";
    let outcome = run(source).await;
    let told = json!(["/main.py", "/", ["main.py"], "", "", ["UTC", "UTC"], "monty"]);
    assert_eq!((outcome.error, outcome.value), (None, told));
}

#[tokio::test]
async fn sources_that_are_hard_to_read_harm_nobody() {
    for source in [
        "(".repeat(10_000),
        format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
        format!("{}1", "-".repeat(60_000)),
        format!("{}1", "not ".repeat(15_000)),
        format!("{}1", "lambda: ".repeat(7_000)),
        format!("x = 1{}", "+1".repeat(30_000)),
        format!("x{}", ".a".repeat(30_000)),
        format!("f\"{}", "{".repeat(30_000)),
        "\0".to_owned(),
        "\u{feff}x = 1".to_owned(),
    ] {
        let mut session = session(CodeLimits::default()).await;
        let outcome = session.run(code(&source), &Host::default()).await;
        let head: String = source.chars().take(20).collect();
        assert!(outcome.elapsed < Duration::from_secs(10), "{head}: {:?}", outcome.elapsed);
        if !outcome.session_ended {
            assert_eq!(session.run(code("1 + 1"), &Host::default()).await.value, json!(2), "{head}");
        }
    }
}

#[tokio::test]
async fn values_that_are_huge_do_not_cross() {
    for (source, said) in [
        ("x = []\nfor i in range(64): x = [x, x]\necho(x)", "echo(): argument 1 holds more than 1,000,000 values"),
        ("x = []\nfor i in range(300): x = [x]\necho(x)", "echo(): argument 1 is nested deeper than 120 levels"),
        ("x = 'a' * 1_000_000\necho([x] * 100)", "echo(): argument 1 is longer than 16 MiB"),
        (
            "x = []\nx.append(x)\necho(x, 2 ** 70)",
            "echo(): argument 2 holds a whole number beyond 64 bits, which is no value of JSON",
        ),
    ] {
        let outcome = run(source).await;
        assert_eq!(end(&outcome), (CodeErrorKind::Raised, "TypeError", said), "{source}");
    }
}

/// The workers of this process.
fn workers() -> Vec<String> {
    let own = std::process::id().to_string();
    let is_worker = |pid: &String| {
        let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
        let command = fs::read_to_string(Path::new("/proc").join(pid).join("cmdline")).unwrap_or_default();
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().nth(1) == Some(&own) && command.contains("monty")
    };
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    processes.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).filter(is_worker).collect()
}

#[tokio::test]
async fn a_worker_that_is_killed_is_a_crash_and_the_next_session_is_fine() {
    let mut killed = session(CodeLimits::default()).await;
    let host = Host::default();
    let kill = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        for worker in workers() {
            assert!(Command::new("kill").args(["-KILL", &worker]).status().unwrap().success());
        }
    };
    let (outcome, ()) = tokio::join!(killed.run(code("print('begun')\nwhile True: pass"), &host), kill);
    let said = "The sandbox has ended: monty worker crashed while waiting for a reply (signal: 9 (SIGKILL))";
    assert_eq!(end(&outcome), (CodeErrorKind::Crashed, "SandboxCrashed", said));
    assert_eq!((outcome.printed.as_str(), outcome.session_ended), ("begun\n", true));
    assert_eq!(run("1 + 1").await.value, json!(2));
}

#[tokio::test]
async fn other_sessions_feel_nothing_of_hostile_ones() {
    let hostile = [
        "while True: pass",
        "x = []\nwhile True: x.append('a' * 1000)",
        "def f(n):\n    return f(n + 1)\nf(0)",
        "while True: print('x' * 99)",
        "while True:\n    try:\n        stop()\n    except BaseException: pass",
        "x = []\nfor i in range(64): x = [x, x]\necho(x)",
    ];
    let good = "x = []\nfor i in range(50):\n    x.append(await echo(i))\nsum(x)";
    let hostile = join_all(hostile.map(within_limits));
    let good = join_all((0..8).map(|_| async { run(good).await }));
    let (hostile, good) = tokio::join!(hostile, good);
    assert!(hostile.iter().all(|outcome| outcome.error.is_some()));
    for outcome in good {
        assert_eq!((outcome.error, outcome.value), (None, json!(1225)));
        assert!(outcome.elapsed < Duration::from_secs(10), "{:?}", outcome.elapsed);
    }
}

#[tokio::test]
async fn to_drop_an_endless_run_frees_its_worker() {
    let mut dropped = session(CodeLimits::default()).await;
    let before = workers();
    let host = Host::default();
    assert!(
        tokio::time::timeout(Duration::from_millis(100), dropped.run(code("while True: pass"), &host)).await.is_err()
    );
    let started = Instant::now();
    while workers().iter().any(|worker| before.contains(worker)) {
        assert!(started.elapsed() < Duration::from_secs(5), "the worker lives on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn sessions_that_nobody_waits_for_leave_no_worker_behind() {
    // More than there may be workers.
    for _ in 0..300 {
        assert!(runner().open(CodeLimits::default()).now_or_never().is_none());
    }
    for _ in 0..300 {
        drop(session(CodeLimits::default()).await);
    }
    assert_eq!(run("1 + 1").await.value, json!(2));
    assert!(workers().len() < 100, "{}", workers().len());
}

#[tokio::test]
async fn limits_without_a_bound_are_taken() {
    let limits = CodeLimits {
        time: Duration::MAX,
        memory: usize::MAX,
        recursion: usize::MAX,
        output: usize::MAX,
        source: usize::MAX,
        calls: usize::MAX,
    };
    let outcome = session(limits).await.run(code("await echo(1)"), &Host::default()).await;
    assert_eq!((outcome.error, outcome.value), (None, json!(1)));
}

#[tokio::test]
async fn without_the_package_there_is_no_sandbox() {
    if std::env::var_os("TENTERHOOK_TEST_MASKED").is_some() {
        let refusal = runner().open(CodeLimits::default()).await.err();
        let why = "install it: pip install 'tenterhook[execute]' (masked)".to_owned();
        assert_eq!(refusal, Some(RunnerError::Missing(why)));
        return;
    }
    // One process has one interpreter, and that of the other tests is to have the package.
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("pydantic_monty.py"), "raise ImportError('masked')").unwrap();
    let masked = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile_code::without_the_package_there_is_no_sandbox"])
        .env("TENTERHOOK_TEST_MASKED", "1")
        .env("PYTHONPATH", folder.path())
        .output()
        .unwrap();
    assert!(masked.status.success(), "{}", String::from_utf8_lossy(&masked.stdout));
}
