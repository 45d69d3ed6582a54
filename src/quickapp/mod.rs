//! Quick Apps: hooks that a manifest declares.

mod app;
mod call_id;
mod context;
mod fallback;
mod names;
mod pair;
#[cfg(test)]
mod pair_tests;
mod placing;
#[cfg(test)]
mod placing_tests;
#[cfg(test)]
mod testing;
mod ttl;
