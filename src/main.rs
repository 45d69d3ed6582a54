//! The binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(tenterhook::cli::run(std::env::args_os()).code())
}
