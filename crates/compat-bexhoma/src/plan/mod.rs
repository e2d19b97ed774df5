//! bexhoma's `ycsb` command: its flags, what they expand into, and the experiment file that does the same. Pure.
//!
//! ```text
//! words -- flags::parse --> Typed -- Options::read --> Options -- expand --> configurations, rounds, pods
//!                                                      Options -- lower --> the text of an experiment
//! ```

pub mod about;
pub mod config;
pub mod expand;
pub mod flags;
pub mod literal;
pub mod lower;
pub mod options;

#[cfg(test)]
mod tests;
