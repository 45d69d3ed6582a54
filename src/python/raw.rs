//! The one place where the interpreter is called without pyo3's safe binding, since that has none: starting it, raising an
//! exception in another thread, setting an attribute past a class that validates, and copying a set.
#![expect(
    unsafe_code,
    reason = "PyConfig, PyThreadState_SetAsyncExc, PyObject_GenericSetAttr and PySet_New of a set have no safe binding in pyo3"
)]

#[cfg(not(Py_LIMITED_API))]
use std::ffi::{CStr, CString};
#[cfg(not(Py_LIMITED_API))]
use std::os::unix::ffi::OsStrExt as _;
#[cfg(not(Py_LIMITED_API))]
use std::path::Path;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PySet, PyString, PyType};

/// Sets an attribute as `object.__setattr__` does, whatever the object's class says to it.
pub(super) fn set_plainly(
    object: &Bound<'_, PyAny>,
    name: &Bound<'_, PyString>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    // SAFETY: the GIL is held, as the bound references show; the function borrows all three.
    let done = unsafe { ffi::PyObject_GenericSetAttr(object.as_ptr(), name.as_ptr(), value.as_ptr()) };
    if done == 0 { Ok(()) } else { Err(PyErr::fetch(object.py())) }
}

/// A copy of a set, made at once instead of name by name.
pub(super) fn copied<'py>(set: &Bound<'py, PySet>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the GIL is held, as the bound reference shows; the function gives a new reference, or none and an exception.
    unsafe { Bound::from_owned_ptr_or_err(set.py(), ffi::PySet_New(set.as_ptr())) }
}

/// Raises `exception` in the Python thread `ident` as soon as it runs Python code; `None` takes back what has not landed.
pub(super) fn raise_in_thread(_py: Python<'_>, ident: u64, exception: Option<&Bound<'_, PyType>>) {
    let exception = exception.map_or(std::ptr::null_mut(), Bound::as_ptr);
    // A thread that is gone is none: the call then does nothing.
    if let Ok(ident) = ident.try_into() {
        // SAFETY: the GIL is held, as the token shows, and the function takes its own reference to the class.
        unsafe { ffi::PyThreadState_SetAsyncExc(ident, exception) };
    }
}

/// Whether the process has an interpreter.
#[cfg(not(Py_LIMITED_API))]
pub(super) fn is_initialized() -> bool {
    // SAFETY: may be called at any time, from any thread.
    unsafe { ffi::Py_IsInitialized() != 0 }
}

/// The minor version of the library that is linked, such as `3.11`.
#[cfg(not(Py_LIMITED_API))]
pub(super) fn linked_version() -> String {
    // SAFETY: may be called before the interpreter is initialised; gives a static string.
    let version = unsafe { CStr::from_ptr(ffi::Py_GetVersion()) };
    let version = version.to_string_lossy();
    let number = version.split(' ').next().unwrap_or_default();
    number.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
}

/// Starts the interpreter as that of a virtual environment: UTF-8 whatever the locale, no signal handlers, no `.pyc` files,
/// and `SystemExit` never ends the process. The calling thread becomes Python's main thread and gives the GIL back.
#[cfg(not(Py_LIMITED_API))]
pub(super) fn start(executable: &Path, home: &Path) -> Result<(), String> {
    let executable = c_path(executable)?;
    let home = c_path(home)?;
    // SAFETY: the configuration is initialised before use and cleared after it, the strings outlive the calls that read
    // them, and the interpreter is not initialised yet: the caller holds a lock and has asked.
    unsafe {
        let mut config = std::mem::zeroed::<ffi::PyConfig>();
        ffi::PyConfig_InitPythonConfig(&raw mut config);
        let mut pre = std::mem::zeroed::<ffi::PyPreConfig>();
        ffi::PyPreConfig_InitPythonConfig(&raw mut pre);
        pre.utf8_mode = 1;
        let mut status = ffi::Py_PreInitialize(&raw const pre);
        config.parse_argv = 0;
        config.install_signal_handlers = 0;
        config.inspect = 1;
        config.write_bytecode = 0;
        for (slot, text) in [
            (&raw mut config.executable, &executable),
            (&raw mut config.program_name, &executable),
            (&raw mut config.home, &home),
        ] {
            if ffi::PyStatus_Exception(status) == 0 {
                status = ffi::PyConfig_SetBytesString(&raw mut config, slot, text.as_ptr());
            }
        }
        if ffi::PyStatus_Exception(status) == 0 {
            status = ffi::Py_InitializeFromConfig(&raw const config);
        }
        ffi::PyConfig_Clear(&raw mut config);
        if ffi::PyStatus_Exception(status) != 0 {
            let message = status.err_msg;
            return Err(if message.is_null() {
                "no reason given".to_owned()
            } else {
                CStr::from_ptr(message).to_string_lossy().into_owned()
            });
        }
        ffi::PyEval_SaveThread();
    }
    Ok(())
}

#[cfg(not(Py_LIMITED_API))]
fn c_path(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| format!("`{}` has a NUL byte", path.display()))
}
