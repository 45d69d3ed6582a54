//! Models, stores and indexes against the real world: servers that keep to their protocol and servers that do not.

mod collector;
mod exporting;
mod hanging;
mod mcp;
mod openai;
mod server;
mod sse;
mod tool_sets;
mod turning;
