//! Quick Apps as Python sees them: requests run where turns do, and their events come by the same letters.

use std::path::PathBuf;

use pyo3::prelude::*;
use pythonize::pythonize;

use super::exceptions;
use super::turns::{Told, Turn, begin, given};
use crate::agent::{HookEngine, LoadedApp, folder_of};
use crate::quickapp::{QuickApp as App, RequestInput};

/// An app, loaded.
#[pyclass(frozen, module = "tenterhook._engine")]
#[derive(Debug)]
pub(super) struct QuickApp {
    loaded: LoadedApp,
    /// In a forked child there are none of the engine's threads.
    process: u32,
}

#[pymethods]
impl QuickApp {
    /// Loads the app of a manifest; `key` seals the ids of pairs.
    #[staticmethod]
    #[pyo3(signature = (manifest, *, key=None))]
    #[expect(clippy::needless_pass_by_value, reason = "arguments come from Python")]
    fn load(py: Python<'_>, manifest: PathBuf, key: Option<Vec<u8>>) -> PyResult<Self> {
        super::turns::ready()?;
        let mut loader = App::loader(&manifest).hooks(HookEngine::builder(folder_of(&manifest)).spin(false));
        if let Some(key) = key {
            loader = loader.key(key);
        }
        let app = py.detach(|| loader.load()).map_err(|error| exceptions::load_error(py, &error))?;
        Ok(Self { loaded: app, process: std::process::id() })
    }

    /// Begins a request.
    #[pyo3(signature = (messages, *, client_tools=None, sender_id=None))]
    fn request(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        client_tools: Option<Bound<'_, PyAny>>,
        sender_id: Option<String>,
    ) -> PyResult<Turn> {
        if std::process::id() != self.process {
            return Err(exceptions::closed_error(py, super::engine::FORKED));
        }
        let input = RequestInput {
            sender_id: sender_id.unwrap_or_default(),
            messages: given("messages", messages)?,
            client_tools: client_tools.map(|tools| given("client_tools", &tools)).transpose()?.unwrap_or_default(),
        };
        begin(self.loaded.app.request(input), Told::Request)
    }

    /// What has come of the runs of each hook of the manifest; as dicts.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pythonize(py, &self.loaded.app.statistics())?)
    }

    /// What is unwise in the manifest; as dicts.
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pythonize(py, &self.loaded.warnings)?)
    }

    /// Cancels whatever runs on the app's own thread, without waiting.
    fn close(&self) {
        if let Some(hooks) = self.loaded.hooks.as_ref().filter(|_| std::process::id() == self.process) {
            hooks.close();
        }
    }
}
