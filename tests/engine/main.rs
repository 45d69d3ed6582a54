//! The engine from outside: real modules, the real interpreter. Tests are named after the numbered cases of behaviour.

mod agents;
mod command;
mod converting;
mod driving;
mod examples;
mod executing;
mod hostile_apps;
mod hostile_tools;
mod isolating;
mod lifecycle;
mod loading;
mod observing;
mod quickapps;
mod registering;
mod replaying;
mod returning;
mod scene;
mod seed_modules;
mod serving;
mod sessions;
mod signalling;
mod skills;
mod supervising;
mod turning;
mod unhooked;
