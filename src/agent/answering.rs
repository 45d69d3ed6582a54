//! Who answers: the model that `integrations.yml` names.

use std::path::Path;
use std::sync::Arc;

use super::config::{self, AgentConfig, ModelConfig};
use super::error::Error;
use super::turning::refuse;
use crate::providers::{OpenAiModel, OpenAiSettings, RecordedConversation, ScriptedModel};
use crate::step::Model;

/// A model, and the tools that answer with it where they are not the agent's own.
pub(super) struct Answering {
    pub(super) model: Arc<dyn Model>,
    /// Those of a recording.
    pub(super) toolbox: Option<RecordedConversation>,
}

/// The first model of the configured group.
pub(super) fn answering(config: &AgentConfig, root: &Path) -> Result<Answering, Error> {
    let models = config.llm.as_ref().map(|llm| llm.models.as_slice()).unwrap_or_default();
    match models.first() {
        Some(ModelConfig::Recorded(file)) => {
            let recorded = config::recording(file)?;
            Ok(Answering { model: Arc::new(recorded.clone()), toolbox: Some(recorded) })
        }
        Some(model) => Ok(Answering { model: model_of(model)?, toolbox: None }),
        None => Err(Error::NoModel(root.to_owned())),
    }
}

/// The model of an entry such as a manifest has under `model`, the text of a JSON object; files that it names are sought in `folder`.
pub(crate) fn model_of_entry(entry: &str, folder: &Path) -> Result<Arc<dyn Model>, Error> {
    let (model, mut found) = config::model_entry(entry, folder, &|name| std::env::var(name).ok());
    refuse(Path::new("model"), &mut found)?;
    model_of(&model.ok_or_else(|| Error::NoModel(folder.to_owned()))?)
}

/// A model, whatever tools there are.
pub(super) fn model_of(model: &ModelConfig) -> Result<Arc<dyn Model>, Error> {
    Ok(match model {
        ModelConfig::Scripted(file) => Arc::new(ScriptedModel::new(config::script(file)?)),
        ModelConfig::Recorded(file) => Arc::new(config::recording(file)?),
        ModelConfig::Served(served) => {
            let mut settings = OpenAiSettings::new(&served.model, &served.model, &served.api_base);
            settings.provider.clone_from(&served.provider);
            settings.api_key = served.api_key.as_ref().map(|key| key.reveal().to_owned());
            settings.extra.clone_from(&served.passed_on);
            settings.headers.clone_from(&served.client.headers);
            settings.retries = served.client.retries.unwrap_or(settings.retries);
            if let Some(timeout) = served.client.timeout {
                (settings.first_byte_timeout, settings.total_timeout) = (timeout, timeout);
            }
            Arc::new(OpenAiModel::new(settings)?)
        }
    })
}
