//! The JSON schema of tool sets.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::Object;
use crate::quickapp::FallbackConfiguration;

/// Tools that are configured together.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum ToolSet {
    Mcp(Box<McpSet>),
    Internal(InternalSet),
    DialMcp(Box<DialMcpSet>),
    DialApp(Box<DialAppSet>),
    DialDeployment(DeploymentSet),
    RestApi(RestSet),
}

/// The tools of a server that speaks the Model Context Protocol.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct McpSet {
    /// The set's name, which stands before those of its tools.
    name: String,
    /// How the server is reached.
    mcp_server_info: ServerInfo,
    /// How long a call may take, in seconds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    tool_timeout: Option<f64>,
    /// The tools that the set has, by the server's names; by default all.
    allowed_tools: Option<Vec<String>>,
    /// Tools that only hooks call, by the server's names.
    hidden_from_model: Option<Vec<String>>,
    /// What becomes of failed calls.
    fallback_configuration: Option<FallbackConfiguration>,
    /// Without effect so far.
    attachment: Option<Value>,
    /// Without effect so far.
    resources: Option<Value>,
}

/// How a server is reached: by `url`, or started by `command`. In the texts `${NAME}` is a variable of the environment.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ServerInfo {
    /// The server's address.
    url: Option<String>,
    /// What the server wants to see.
    authorization: Option<Authorization>,
    /// What it is spoken to by; by default streamable HTTP. `sse` is the transport of before 2025.
    protocol: Option<Protocol>,
    /// The program that is started, or it and its arguments.
    command: Option<Command>,
    /// Its arguments.
    args: Option<Vec<String>>,
    /// Variables of its environment.
    env: Option<BTreeMap<String, String>>,
    /// The folder that it runs in, below the manifest's.
    cwd: Option<String>,
}

/// What a server wants to see of whoever asks it. In the secrets `${NAME}` is a variable of the environment.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Authorization {
    /// `Authorization: Bearer …`.
    Bearer {
        /// The token.
        token: String,
    },
    /// A header of the server's own.
    ApiKey {
        /// The key.
        key: String,
        /// The header's name, such as `Api-Key`.
        name: String,
        /// Only `header` is supported.
        location: Option<Location>,
    },
    /// `Authorization: Basic …`.
    Basic {
        /// The user's name.
        username: String,
        /// The password.
        password: String,
    },
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Location {
    Header,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Protocol {
    StreamableHttp,
    Sse,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Command {
    One(String),
    Several(Vec<String>),
}

/// Python tools that stand beside the manifest.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InternalSet {
    /// The set's name; its tools do not have it before their own.
    name: String,
    /// The tools' names.
    #[schemars(length(min = 1))]
    tools: Vec<String>,
    /// What becomes of failed calls.
    fallback_configuration: Option<FallbackConfiguration>,
}

/// The tools of a tool set that is registered at DIAL Core.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DialMcpSet {
    /// The set's name, which stands before those of its tools.
    name: String,
    /// Its id at DIAL Core.
    deployment_id: String,
    /// The address of its server; by default `{dial_url}/v1/toolset/{deployment_id}/mcp`.
    mcp_url: Option<String>,
    /// The address of DIAL Core; by default the manifest's.
    dial_url: Option<String>,
    /// The variable of the environment that holds the key of DIAL Core; by default the manifest's.
    dial_api_key_env: Option<String>,
    /// How long a call may take, in seconds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    tool_timeout: Option<f64>,
    /// The tools that the set has, by the server's names; by default all.
    allowed_tools: Option<Vec<String>>,
    /// Tools that only hooks call, by the server's names.
    hidden_from_model: Option<Vec<String>>,
    /// What becomes of failed calls.
    fallback_configuration: Option<FallbackConfiguration>,
    /// Without effect so far.
    attachment: Option<Value>,
    /// Without effect so far.
    resources: Option<Value>,
    /// Without effect: DIAL Core knows it.
    transport: Option<Value>,
}

/// An application of DIAL: the tools of its server, or the app itself as a tool.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DialAppSet {
    /// The set's name, which stands before those of its server's tools.
    name: String,
    /// What the model is told of the app; of `chat` only.
    description: Option<String>,
    /// The app's id at DIAL Core.
    deployment_id: String,
    /// How the app is spoken to; by default `mcp`.
    transport: Option<Transport>,
    /// The address of its server; by default `{dial_url}/v1/deployments/{deployment_id}/mcp`. Of `mcp` only.
    mcp_url: Option<String>,
    /// The version of the interface that is asked for; of `chat` only.
    api_version: Option<String>,
    /// The address of DIAL Core; by default the manifest's.
    dial_url: Option<String>,
    /// The variable of the environment that holds the key of DIAL Core; by default the manifest's.
    dial_api_key_env: Option<String>,
    /// How long a call may take, in seconds; of `chat` by default 60.
    #[schemars(extend("exclusiveMinimum" = 0))]
    tool_timeout: Option<f64>,
    /// The tools that the set has, by the server's names; by default all. Of `mcp` only.
    allowed_tools: Option<Vec<String>>,
    /// Tools that only hooks call, by the server's names. Of `mcp` only.
    hidden_from_model: Option<Vec<String>>,
    /// What becomes of failed calls.
    fallback_configuration: Option<FallbackConfiguration>,
    /// Without effect so far.
    attachment: Option<Value>,
    /// Without effect so far.
    conversation_mode: Option<Value>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Transport {
    /// Its server has tools.
    Mcp,
    /// It is one tool, which is asked a text.
    Chat,
    /// The same as `chat`.
    ChatCompletion,
}

/// Deployments of DIAL, each a tool that is asked a text.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeploymentSet {
    /// The set's name; its tools do not have it before their own.
    name: String,
    /// The deployments.
    #[schemars(length(min = 1, max = 1_000))]
    tools: Vec<Deployment>,
    /// The address of DIAL Core; by default the manifest's.
    dial_url: Option<String>,
    /// The variable of the environment that holds the key of DIAL Core; by default the manifest's.
    dial_api_key_env: Option<String>,
    /// How long a call may take, in seconds; by default 60.
    #[schemars(extend("exclusiveMinimum" = 0))]
    tool_timeout: Option<f64>,
    /// What becomes of failed calls.
    fallback_configuration: Option<FallbackConfiguration>,
}

/// A deployment as a tool, with one argument: `query`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the published interface has the name")]
struct Deployment {
    /// Its id at DIAL Core.
    deployment_id: String,
    /// The tool's name; by default the id, with `_` for what no name may have.
    #[schemars(regex(pattern = "^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$"))]
    name: Option<String>,
    /// What the model is told of it.
    description: Option<String>,
    /// What stands before the question.
    system_prompt: Option<String>,
    /// Further keys of requests, such as `temperature`.
    settings: Option<Object>,
    /// The version of the interface that is asked for.
    api_version: Option<String>,
    /// Without effect so far.
    attachment: Option<Value>,
    /// Without effect so far.
    conversation_mode: Option<Value>,
}

/// Tools that are one request over HTTP each.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RestSet {
    /// The set's name, which stands before those of its tools.
    name: String,
    /// For people.
    description: Option<String>,
    /// What the server wants to see.
    authorization: Option<Authorization>,
    /// The tools.
    #[schemars(length(min = 1, max = 1_000))]
    tools: Vec<RestTool>,
    /// How long a call may take, in seconds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    tool_timeout: Option<f64>,
    /// What becomes of failed calls.
    fallback_configuration: Option<FallbackConfiguration>,
}

/// A request. In the texts of `url`, `query`, `headers` and `body`, `{name}` is an argument, `{{` and `}}` are braces, and `${NAME}` is a
/// variable of the environment. An entry that names an argument which is not given is left out.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RestTool {
    /// The tool's name in its set.
    name: String,
    /// What the model is told of it.
    description: Option<String>,
    /// The JSON schema of its arguments, an object; by default it has none.
    parameters: Option<Object>,
    /// By default `GET`.
    method: Option<Method>,
    /// The address. Its path may have arguments, each within one part.
    url: String,
    /// What is added to the query; of a list each item.
    query: Option<BTreeMap<String, Value>>,
    /// The headers.
    headers: Option<BTreeMap<String, String>>,
    /// The JSON document that is sent. A text that is an argument as a whole is the argument's value, whatever its type.
    body: Option<Object>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    #[serde(alias = "get")]
    Get,
    #[serde(alias = "post")]
    Post,
    #[serde(alias = "put")]
    Put,
    #[serde(alias = "patch")]
    Patch,
    #[serde(alias = "delete")]
    Delete,
}
