//! What the Python of the sandbox has and lacks: the prompt tells it to the model, and a test tries every word of it.

/// What it knows, in the words that the model reads.
pub(super) const KNOWN: [&str; 5] = [
    "functions, `async` functions, lambdas, closures, comprehensions, f-strings, unpacking, slices, `:=`",
    "`if`, `for`, `while`, `match`, `try`/`except`/`finally`, `raise`, `assert`, simple classes",
    "int, float, str, bytes, bool, None, list, tuple, dict, set, frozenset, and their methods",
    "the common built-in functions and exceptions",
    "`await`, also at the top level, and `asyncio.gather`",
];

/// The modules that generated code may import. What reaches files, the environment or processes is there by name and refused.
pub const SANDBOX_MODULES: &[&str] = &[
    "asyncio",
    "base64",
    "binascii",
    "bisect",
    "collections",
    "copy",
    "csv",
    "dataclasses",
    "datetime",
    "decimal",
    "functools",
    "hashlib",
    "itertools",
    "json",
    "math",
    "random",
    "re",
    "time",
    "tomllib",
    "typing",
    "unicodedata",
];

/// Modules of everyday code that are not there.
pub const SANDBOX_MISSING_MODULES: &[&str] = &[
    "abc",
    "ctypes",
    "enum",
    "fractions",
    "heapq",
    "html",
    "httpx",
    "io",
    "logging",
    "numpy",
    "operator",
    "pandas",
    "pydantic",
    "requests",
    "secrets",
    "socket",
    "statistics",
    "string",
    "subprocess",
    "textwrap",
    "threading",
    "traceback",
    "urllib",
    "uuid",
    "zoneinfo",
];

/// Builtins that are not there.
pub const SANDBOX_MISSING_BUILTINS: &[&str] = &[
    "ascii",
    "breakpoint",
    "bytearray",
    "callable",
    "classmethod",
    "compile",
    "delattr",
    "dir",
    "exit",
    "globals",
    "help",
    "input",
    "issubclass",
    "memoryview",
    "quit",
    "staticmethod",
    "super",
    "vars",
    "ConnectionError",
    "EOFError",
    "ExceptionGroup",
    "IOError",
    "UnicodeError",
    "Warning",
];

/// Something that the sandbox's Python does not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lack {
    /// In the words that the model reads.
    pub what: &'static str,
    /// A source that fails for that alone; `tool` is a function of the host.
    pub example: &'static str,
}

/// What else it lacks.
pub const SANDBOX_LACKS: &[Lack] = &[
    Lack {
        what: "classes that inherit, own exception classes and enums among them",
        example: "class A(Exception): pass",
    },
    Lack { what: "generators (`yield`)", example: "def f():\n    yield 1" },
    Lack { what: "generator expressions that are lazy: each is made at once", example: "any(i for i in iter(int, 1))" },
    Lack { what: "`del`", example: "x = {1: 2}\ndel x[1]" },
    Lack { what: "`async with`", example: "async def f(x):\n    async with x: pass" },
    Lack { what: "`async for`", example: "async def f(x):\n    async for y in x: pass" },
    Lack { what: "`except*`", example: "try: pass\nexcept* ValueError: pass" },
    Lack {
        what: "`@property`, `@classmethod` and `@staticmethod`",
        example: "class A:\n    @property\n    def x(self): return 1",
    },
    Lack { what: "`type` aliases", example: "type X = int" },
    Lack { what: "`from … import *`", example: "from math import *" },
    Lack { what: "`collections.OrderedDict`", example: "from collections import OrderedDict" },
    Lack { what: "`functools.wraps`", example: "from functools import wraps" },
    Lack { what: "`typing.TypedDict`", example: "from typing import TypedDict" },
    Lack { what: "`asyncio.wait_for`", example: "import asyncio\nasyncio.wait_for" },
    Lack { what: "`asyncio.TaskGroup`", example: "import asyncio\nasyncio.TaskGroup" },
    Lack { what: "`asyncio.Semaphore`", example: "import asyncio\nasyncio.Semaphore" },
    Lack { what: "`asyncio.Queue`", example: "import asyncio\nasyncio.Queue" },
    Lack { what: "`asyncio.timeout`", example: "import asyncio\nasyncio.timeout" },
    Lack { what: "`asyncio.as_completed`", example: "import asyncio\nasyncio.as_completed" },
    Lack { what: "`asyncio.wait`", example: "import asyncio\nasyncio.wait" },
    Lack {
        what: "`return_exceptions` of `asyncio.gather`: catch within a coroutine of your own",
        example: "import asyncio\nawait asyncio.gather(tool(1), return_exceptions=True)",
    },
    Lack {
        what: "tools handed to `map`, `filter` or `sorted`: use a loop or a comprehension",
        example: "list(map(tool, [1]))",
    },
    Lack {
        what: "methods of a task from `asyncio.create_task`: only await it, once",
        example: "import asyncio\nt = asyncio.create_task(tool(1))\nt.done()",
    },
    Lack { what: "files", example: "open('/etc/hostname')" },
    Lack { what: "environment variables", example: "import os\nos.getenv('HOME')" },
    Lack { what: "sleeps longer than 10 seconds", example: "import asyncio\nawait asyncio.sleep(11)" },
];
