//! Models, stores and indexes against the real world: servers that keep to their protocol and servers that do not.

mod collector;
mod exporting;
mod mcp;
mod openai;
mod server;
mod turning;
