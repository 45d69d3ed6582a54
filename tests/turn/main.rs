//! The turn engine: one test a sentence of its contract, with scripted models and hooks in Rust. No interpreter is started.

mod answering;
mod asking;
mod calling;
mod ending;
mod ends;
mod hearing;
mod saying;
mod scene;
mod searching;
