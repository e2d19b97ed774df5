//! Stand-in for `official` in a build without the official driver: no target can be made, so nothing can be asked of
//! one.

use crate::command_error::CommandError;
use dyno_db::target_error::TargetError;
use dyno_engine::{Control, Finished, Job, RunError, Second};
use dyno_types::{Content, RefusalCode, Refused};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why inserts of records go out one by one.
pub const NO_BATCHES: &str = "the official driver does not say of each document of a batch how it ended";

/// There is none.
#[derive(Clone, Debug)]
pub enum OfficialTarget {}

impl OfficialTarget {
    /// Refuses every URI.
    pub fn parse(_uri: &str) -> Result<Self, Refused> {
        Err(Refused::new(
            RefusalCode::NotBuilt,
            "client.driver",
            "this build has no official driver: build with --features official",
        ))
    }

    /// Cannot be asked.
    pub fn redacted(&self) -> String {
        match *self {}
    }

    /// Cannot be asked.
    pub fn set_database(&mut self, _database: &str) {
        match *self {}
    }

    /// Cannot be asked.
    pub fn set_upsert(&mut self, _upsert: bool) {
        match *self {}
    }

    /// Cannot be asked.
    pub fn is_local(&self) -> bool {
        match *self {}
    }

    pub(crate) fn deployment(&self) -> Result<Arc<OfficialDeployment>, TargetError> {
        match *self {}
    }
}

/// There is none.
pub enum OfficialDeployment {}

impl OfficialDeployment {
    pub(crate) fn product(&self) -> String {
        match *self {}
    }

    pub(crate) fn driver(&self) -> &'static str {
        match *self {}
    }

    pub(crate) fn facts(&self) -> BTreeMap<String, String> {
        match *self {}
    }

    pub(crate) fn write_concern(&self) -> Option<String> {
        match *self {}
    }

    pub(crate) fn database(&self) -> &str {
        match *self {}
    }

    pub(crate) fn check(&self, _content: &dyn Content) -> Result<(), Refused> {
        match *self {}
    }

    pub(crate) fn command(&self, _database: &str, _command: &[u8]) -> Result<Vec<u8>, CommandError> {
        match *self {}
    }

    pub(crate) fn run(
        &self,
        _job: Job,
        _control: Arc<Control>,
        _on_second: &mut dyn FnMut(Second),
    ) -> Result<Finished, RunError> {
        match *self {}
    }
}
