//! Rates over time, as a person writes them: `profile` is the rate and its integral, `pieces` and `day` are shapes of it, `file`
//! reads pairs of time and rate, `text` reads what is typed.

pub mod day;
pub mod file;
pub mod pieces;
pub mod profile;
pub mod text;
