//! Stdout for the report alone: whatever else writes to it while hooks run, a child process of theirs included, goes to stderr.

use std::fs::File;
use std::io;

/// Takes stdout away from the process and gives it back as a file; descriptor 1 leads to stderr from now on.
pub(super) fn reserve_stdout() -> io::Result<File> {
    let reserved = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(reserved))
}
