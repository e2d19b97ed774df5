//! The command line: flags, the forms in which the original takes them.

pub mod args;
pub mod forms;
pub mod locations;
