//! Document workloads of one's own: the shape of documents, and a weighted mix of operations on them.
//!
//! `value` makes values and documents, `text` makes arguments of commands of the same values, `config` is the workload as
//! described, `content` renders requests, `load` inserts the documents, `run` mixes the operations. Everything is a pure
//! function of the seed and the number of the document or operation; so an operation can ask for a value that a document has
//! without looking at the database.
//!
//! ```text
//! YAML --dyno_config::template--> Template --> TemplateLoad: batches of documents 0 .. count of each collection
//!                                       '-> TemplateRun: index -> operation -> operands from its own stream
//! ```

mod config;
mod content;
mod load;
mod run;
mod text;
mod value;

pub use config::{
    OperationKind, OperationStep, TemplateCollection, TemplateIndex, TemplateOperation, WorkloadTemplate,
};
pub use content::TemplateContent;
pub use load::TemplateLoad;
pub use run::TemplateRun;
pub use text::{TextContext, TextSource, constant_text};
pub use value::{ActiveNumbers, AddressableDocuments, NumberDistribution, ValueContext, ValueTemplate};

#[cfg(test)]
mod tests;
