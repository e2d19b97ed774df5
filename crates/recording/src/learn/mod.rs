//! Learning: a workload that behaves like a recording.
//!
//! ```text
//! recording --shapes--> commands by name, number of words and options, what each argument is like
//!           --spaces--> keys by pattern, how popular they are
//!           --sequences--> commands that belong together (operations and arguments write them)
//!           --arrivals--> rate, and how bursty it is
//!           --reuse--> how soon keys are asked for again, beside what the workload makes of it (model)
//!           --text--> (in the dialect of its protocol) a workload of commands (docs/commands.md), and how well each part fits
//! ```

mod arguments;
mod arrivals;
mod dialect;
mod model;
mod operations;
mod popularity;
mod reuse;
mod sequences;
mod shapes;
mod spaces;
mod text;

pub use text::{LearnedWorkload, learn_file};
