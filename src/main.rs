//! The binary.

use std::process::ExitCode;

/// A check makes and drops many small values: half the time of the system's allocator (`make bench`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(tenterhook::cli::run(std::env::args_os()).code())
}
