//! Commands of one's own: named operations with weights, whose arguments are drawn.
//!
//! ```text
//! YAML --dyno_config::template--> CommandMix --> MixLoad: the commands of `load`, for each key of a key space
//!                                           '-> MixRun: index -> operation -> arguments from its own stream
//! ```
//!
//! `config` is the workload as described, `content` renders arguments, `run` and `load` bind requests. Which arguments are keys,
//! and which commands only read, a server says ([`dyno_types::command::CommandFacts`]); content is made anew once that is known.

mod config;
mod content;
mod load;
mod names;
mod run;

pub use config::{
    ArgumentText, CommandMix, CommandStep, DataTable, LoadItem, MissRule, MixOperation, NamedKeys,
    NumberedText, OwnLoad, Script, StepCondition, StepMode, TextPart,
};
pub use content::MixContent;
pub use load::MixLoad;
pub use run::MixRun;

#[cfg(test)]
mod tests;
