//! The engine from outside: real modules, the real interpreter. Tests are named after the numbered cases of behaviour.

mod agents;
mod command;
mod converting;
mod driving;
mod examples;
mod isolating;
mod loading;
mod observing;
mod registering;
mod returning;
mod seed_modules;
mod signalling;
mod skills;
mod supervising;
mod turning;
