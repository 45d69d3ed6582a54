//! Tools that are made of what a manifest says alone: requests over HTTP, and models that are asked.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::config::{DeploymentConfig, RestConfig};
use super::error::Error;
use super::serving::sent;
use crate::conversation::Object;
use crate::providers::{OpenAiSettings, QUERY, RestServer, deployment_tool, rest_tools};
use crate::tools::{Tool, ToolSpec};

/// Who serves deployments, for errors and spans.
const DIAL: &str = "dial";

/// The tools of these sets, by the sets' names. Nothing is sent yet.
pub(super) fn made(
    rest: Vec<RestConfig>,
    deployments: Vec<DeploymentConfig>,
) -> Result<HashMap<String, Vec<Arc<dyn Tool>>>, Error> {
    let mut made: HashMap<String, Vec<Arc<dyn Tool>>> = HashMap::new();
    for RestConfig { name, authorization, tool_timeout, hidden, tools } in rest {
        let server = RestServer {
            name: name.clone(),
            authorization: authorization.as_ref().map(sent),
            tool_timeout,
            secrets: hidden.iter().map(|secret| secret.reveal().to_owned()).collect(),
        };
        made.entry(name).or_default().extend(rest_tools(server, tools)?);
    }
    for DeploymentConfig { set, name, description, api_base, key, model, system_prompt, settings, timeout } in
        deployments
    {
        let mut asked = OpenAiSettings::new(&name, model, api_base);
        DIAL.clone_into(&mut asked.provider);
        asked.headers = vec![("Api-Key".to_owned(), key.reveal().trim().to_owned())];
        asked.extra = settings;
        (asked.first_byte_timeout, asked.total_timeout) = (timeout, timeout);
        let spec = ToolSpec { name, description, parameters: question() };
        made.entry(set).or_default().push(deployment_tool(spec, asked, system_prompt)?);
    }
    Ok(made)
}

/// The schema of a text that is asked.
fn question() -> Object {
    let schema = json!({
        "type": "object",
        "properties": {QUERY[0]: {"type": "string", "description": "What it is asked, in full: it knows nothing of the conversation."}},
        "required": [QUERY[0]],
    });
    if let Value::Object(schema) = schema { schema } else { unreachable!("it is written as an object") }
}
