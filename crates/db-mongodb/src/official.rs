//! MongoDB by the official driver: the target, and the deployment that answers.

use crate::command_error::CommandError;
use crate::official_driver::{DRIVER, Official, OfficialFailure, OfficialOptions, OfficialStore};
use crate::protocol::ServerError;
use dyno_db::target_error::TargetError;
use dyno_engine::{Control, Finished, Job, RunError, Second, run_blocking};
use dyno_types::{Content, Outcome, RefusalCode, Refused};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Why inserts of records go out one by one.
pub const NO_BATCHES: &str = "the official driver does not say of each document of a batch how it ended";

/// A target of the official driver.
#[derive(Clone, Debug)]
pub struct OfficialTarget(OfficialOptions);

impl OfficialTarget {
    /// Reads a URI.
    pub fn parse(uri: &str) -> Result<Self, Refused> {
        OfficialOptions::from_uri(uri).map(OfficialTarget)
    }

    /// The URI without secrets.
    pub fn redacted(&self) -> String {
        self.0.redacted()
    }

    /// Chooses the database of the records.
    pub fn set_database(&mut self, database: &str) {
        self.0.database = database.to_owned();
    }

    /// Sets whether inserts replace a record that is there.
    pub fn set_upsert(&mut self, upsert: bool) {
        self.0.upsert = upsert;
    }

    /// Returns whether all hosts are this one.
    pub fn is_local(&self) -> bool {
        self.0.is_local()
    }

    /// Connects once, and asks the server what it is.
    pub(crate) fn deployment(&self) -> Result<Arc<OfficialDeployment>, TargetError> {
        let opened = Official::open(&self.0);
        let official = opened.map_err(|failure| match failure.outcome {
            Outcome::BadRequest => {
                TargetError::Refused(Refused::new(RefusalCode::BadValue, "target", failure.message))
            }
            _ => TargetError::Unreachable(format!("{}: {}", self.redacted(), failure.message)),
        })?;
        Ok(Arc::new(OfficialDeployment { official: Arc::new(official), database: self.0.database.clone() }))
    }
}

/// A deployment that answers the official driver.
pub struct OfficialDeployment {
    official: Arc<Official>,
    database: String,
}

impl OfficialDeployment {
    /// Product and version.
    pub(crate) fn product(&self) -> String {
        self.official.product_name()
    }

    /// The driver and its version.
    pub(crate) fn driver(&self) -> &'static str {
        DRIVER
    }

    /// Facts for the report.
    pub(crate) fn facts(&self) -> BTreeMap<String, String> {
        self.official.report_facts()
    }

    /// The `w` of writes, as far as it is known.
    pub(crate) fn write_concern(&self) -> Option<String> {
        self.official.write_concern_w()
    }

    /// Database of the records.
    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    /// Refuses contents that the driver has no form for.
    pub(crate) fn check(&self, content: &dyn Content) -> Result<(), Refused> {
        self.official.check(content)
    }

    /// Runs a command, given as BSON; returns the reply, or the server's words.
    pub(crate) fn command(&self, database: &str, command: &[u8]) -> Result<Vec<u8>, CommandError> {
        let done = self.official.run_command(database, command);
        done.map_err(|OfficialFailure { code, code_name, message, .. }| match code {
            Some(code) => ServerError { code, code_name, text: message }.into(),
            None => CommandError::Official(message),
        })
    }

    /// Runs a job: every user is a thread that waits for the driver.
    pub(crate) fn run(
        &self,
        job: Job,
        control: Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Finished, RunError> {
        let timeout = job.timeout_ns.map(Duration::from_nanos);
        let store = OfficialStore::new(self.official.clone(), job.users, timeout, job.workload.content());
        let store = store
            .map_err(|OfficialFailure { outcome, message, .. }| RunError::Unreachable { outcome, message })?;
        run_blocking(Job { batch: 1, ..job }, control, &store, on_second)
    }
}
