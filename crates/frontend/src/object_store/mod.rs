//! Results of an experiment in an object store that speaks S3's interface, where a pod conducts it without a volume.
//!
//! `rusty-s3` signs requests and reads lists, and dyno's own HTTP client sends them: `object_store` and the SDKs want an
//! asynchronous runtime. Nothing is sent while load is applied: only before a run begins and after one has ended.
//!
//! What is promised: a run whose end the store's journal names is there in whole, because its files go before that line; and the
//! journal that the store has is the pod's own before each run begins. So a pod that is killed loses the run that was under way,
//! and nothing else.

mod answer;
mod client;
mod error;
mod folder_copy;
mod login;

pub use answer::{read_refusal, relative_name};
pub use client::StoreClient;
pub use error::StoreError;
pub use folder_copy::FolderCopy;
