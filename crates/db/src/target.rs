//! Interface of a database to the rest of dyno: [`Database`], [`Target`], [`OpenTarget`].

use crate::collections::{CollectionStats, Collections};
use crate::command_target::CommandTarget;
use crate::probe::Stop;
use crate::target_error::TargetError;
use dyno_engine::{Clock, Control, Finished, Job, RunError, Second};
use dyno_monitor::Source;
use dyno_types::address::{Address, Tls};
use dyno_types::content::Nothing;
use dyno_types::{Content, Endpoint, RefusalCode, Refused, Verb};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{ToSocketAddrs, UdpSocket};
use std::sync::Arc;

/// Nodes of a cluster that are asked while the load runs; each has a thread and a connection.
pub const WATCHED: usize = 64;

/// A scheme of target URIs.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// The word before the colon.
    pub name: &'static str,
    /// The form of a URI.
    pub form: &'static str,
    /// Login that a client's URI can give.
    pub login: LoginForm,
}

impl Scheme {
    /// A scheme whose URIs name no server.
    pub const fn store_scheme(name: &'static str, form: &'static str) -> Self {
        Scheme { name, form, login: LoginForm::None }
    }
}

/// Login that a URI can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginForm {
    /// Nothing: it names no server.
    None,
    /// A password, with a user or without.
    Password,
    /// A user and a password.
    User,
}

/// Client that speaks to the database, where there is a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum ClientDriver {
    /// dyno's own codec
    #[default]
    Wire,
    /// The official driver, as applications use it; needs a build with --features official
    Official,
}

impl From<dyno_config::experiment::Driver> for ClientDriver {
    fn from(driver: dyno_config::experiment::Driver) -> Self {
        match driver {
            dyno_config::experiment::Driver::Wire => ClientDriver::Wire,
            dyno_config::experiment::Driver::Official => ClientDriver::Official,
        }
    }
}

/// A kind of database.
pub trait Database: Sync {
    /// The database's name: `redis`.
    fn name(&self) -> &'static str;

    /// Schemes of its URIs.
    fn schemes(&self) -> &[Scheme];

    /// Reads a URI of one of its schemes.
    ///
    /// # Errors
    /// Says which part is wrong, and what is accepted.
    fn parse(&self, uri: &str) -> Result<Box<dyn Target>, Refused>;

    /// Reads a URI for the database's official driver; `None` where dyno knows no such driver.
    fn parse_official(&self, _uri: &str) -> Option<Result<Box<dyn Target>, Refused>> {
        None
    }

    /// Parts of a target that did not answer, by the facts that [`OpenTarget::facts`] gave in another process; as
    /// [`OpenTarget::missing`] says it here.
    fn describe_missing(&self, _facts: &BTreeMap<String, String>) -> Option<String> {
        None
    }
}

/// Where the load goes to, before anything was said to it.
pub trait Target: fmt::Debug + Send + Sync {
    /// The URI without secrets.
    fn redacted(&self) -> String;

    /// Connects once (or opens the store) and learns what the target is. The wait for a server ends once `stop` says so.
    ///
    /// # Errors
    /// The target does not answer, speaks another protocol, or refuses what the URI asks for.
    fn open(&self, content: Arc<dyn Content>, stop: Stop<'_>) -> Result<Box<dyn OpenTarget>, TargetError>;

    /// Addresses of its servers, as far as the URI names them.
    fn addresses(&self) -> &[Address] {
        &[]
    }

    /// Returns whether it runs on this host, so that a core must be left to it.
    fn is_local(&self) -> bool {
        let here = |address: &Address| match address {
            Address::Tcp(host, _) => matches!(host.as_str(), "localhost" | "::1") || host.starts_with("127."),
            Address::Unix(_) => true,
        };
        !self.addresses().is_empty() && self.addresses().iter().all(here)
    }

    /// Returns whether the URI holds a password.
    fn has_password(&self) -> bool {
        false
    }

    /// Chooses the database of the records, where a server has several.
    fn set_database(&mut self, _database: &str) {}

    /// Returns whether its server says of its collections how large they are.
    fn has_collections(&self) -> bool {
        false
    }

    /// Returns whether it is a server that can be watched beside the load.
    fn is_watched(&self) -> bool {
        false
    }

    /// The kind of server that must be started first; empty for any.
    fn must_start(&self) -> Option<&str> {
        None
    }

    /// The URI of an embedded store.
    fn embedded(&self) -> Option<&str> {
        None
    }

    /// The copies that `dyno prove ingest` looks for; `None` where the database has none.
    fn copies(&self) -> Option<Result<Box<dyn crate::copies::database::ReplicatedStore>, Refused>> {
        None
    }
}

/// Facts on one line, for the log.
pub fn in_words(facts: &BTreeMap<String, String>) -> String {
    facts.iter().map(|(name, fact)| format!("{name}={fact}")).collect::<Vec<_>>().join("; ")
}

impl dyn Target {
    /// Connects once to look at the target: no operation of a workload can be applied to it. The wait ends once `stop` says so.
    ///
    /// # Errors
    /// As [`Target::open`].
    pub fn open_for_look(&self, stop: Stop<'_>) -> Result<Box<dyn OpenTarget>, TargetError> {
        self.open(Arc::new(Nothing), stop)
    }

    /// Returns whether the servers are known to be on another host: not one of their addresses is this host's.
    pub fn is_elsewhere(&self) -> bool {
        let elsewhere = |address: &Address| match address {
            Address::Unix(_) => false,
            Address::Tcp(host, port) => {
                let found = (host.as_str(), *port).to_socket_addrs();
                // An address that can be bound is this host's own.
                found.is_ok_and(|mut all| all.all(|one| UdpSocket::bind((one.ip(), 0)).is_err()))
            }
        };
        !self.addresses().is_empty() && self.addresses().iter().all(elsewhere)
    }
}

/// Facts that a session must know of a target and of the way to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetInfo {
    /// Product and version.
    pub database: String,
    /// Driver that speaks to the database, where there is a choice.
    pub driver: Option<String>,
    /// True if load threads of the engine apply the load (not users that block inside a store).
    pub wire: bool,
    /// True if its data belong on a disk, not in memory alone.
    pub on_disk: bool,
    /// True if time is virtual.
    pub virtual_time: bool,
    /// True if several inserts can go out as one batch.
    pub batches: bool,
}

/// A target that has answered.
pub trait OpenTarget: Any + Send + Sync {
    /// Facts about the target.
    fn info(&self) -> TargetInfo;

    /// The URI without secrets, or what it is.
    fn redacted(&self) -> String {
        self.info().database
    }

    /// Facts for the report, by name; durability among them.
    fn facts(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// The `w` of MongoDB's write concern that writes have, as far as it is known: a number of members, `majority` or a tag.
    fn write_concern(&self) -> Option<String> {
        None
    }

    /// Refuses a workload that the target cannot hold.
    ///
    /// # Errors
    /// Says which operation or shape it has no form for.
    fn check(&self, _content: &Arc<dyn Content>, _verbs: &[Verb]) -> Result<(), Refused> {
        Ok(())
    }

    /// Returns whether it takes commands of one's own ([`Content::commands`]).
    fn takes_commands(&self) -> bool {
        false
    }

    /// The protocol of recordings that can be replayed on it, where there is one, and the number of the database in which its
    /// connections begin.
    fn recorded_protocol(&self) -> Option<(&'static str, u32)> {
        None
    }

    /// Notes for a replay on it, of a recording with so many commands that carry numbers of retryable writes or transactions.
    ///
    /// # Errors
    /// It can hold no replay.
    fn check_replay(&self, _numbered: u64) -> Result<Vec<String>, Refused> {
        Ok(Vec::new())
    }

    /// Answers questions about commands of one's own and their keys, where it has servers to ask.
    fn command_target(&self) -> Option<Box<dyn CommandTarget + '_>> {
        None
    }

    /// Applies the load of a job; `on_second` gets each second once it is over.
    ///
    /// # Errors
    /// The load could not begin. What fails later is an outcome, and no error.
    fn apply(
        &self,
        job: Job,
        control: Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Finished, RunError>;

    /// Returns whether it is spoken to over sockets of dyno's own.
    fn has_sockets(&self) -> bool {
        false
    }

    /// Returns whether a connection takes several requests at a time.
    fn pipelines(&self) -> bool {
        self.info().wire
    }

    /// Nodes that say something of themselves, at most 64.
    fn nodes(&self) -> Vec<&Endpoint> {
        Vec::new()
    }

    /// Sources that are asked while the load runs; a source for a node is called as `name` says.
    fn sources(&self, _name: &dyn Fn(Option<&Endpoint>) -> String) -> Vec<Box<dyn Source>> {
        Vec::new()
    }

    /// Process number and program of the only server, as it tells, and where it was asked.
    fn process(&self) -> Option<(u32, String, &Endpoint)> {
        None
    }

    /// Parts of the target that did not answer and are left out until they do, in words.
    fn missing(&self) -> Option<String> {
        None
    }

    /// Why inserts of records go out one by one where [`TargetInfo::batches`] would be expected; nothing where they do not.
    fn why_no_batches(&self) -> Option<&'static str> {
        None
    }

    /// The target's collections of documents, where it keeps documents.
    fn collections(&self) -> Option<Box<dyn Collections + '_>> {
        None
    }

    /// Reads what the server says of its collections, where it says something.
    fn collection_stats(&self) -> Option<Box<dyn CollectionStats>> {
        None
    }
}

impl dyn OpenTarget {
    /// Product and version.
    pub fn product_name(&self) -> String {
        self.info().database
    }

    /// Returns whether load threads of the engine apply the load (not users that block inside a store).
    pub fn is_wire(&self) -> bool {
        self.info().wire
    }

    /// Requests on a connection at a time: as many as are wanted, or one.
    pub fn usable_pipeline(&self, wanted: usize) -> usize {
        if self.pipelines() { wanted } else { 1 }
    }

    /// Refuses several requests at a time on a connection where the target takes one.
    ///
    /// # Errors
    /// Says so. Users that block inside a store are never refused: theirs is one.
    pub fn check_pipeline(&self, wanted: usize) -> Result<(), Refused> {
        if wanted > 1 && self.is_wire() && !self.pipelines() {
            let message = "this target takes one request at a time on a connection; use pipeline 1";
            return Err(Refused::new(
                RefusalCode::Unsupported,
                "pipeline",
                format!("pipeline {wanted}: {message}"),
            ));
        }
        Ok(())
    }

    /// Returns whether time is virtual.
    pub fn is_virtual(&self) -> bool {
        self.info().virtual_time
    }

    /// Runs a job.
    ///
    /// # Errors
    /// As [`OpenTarget::apply`]; hardware stamps are refused where there are no sockets.
    pub fn run(
        &self,
        job: Job,
        control: Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Finished, RunError> {
        if job.stamps == Clock::Hardware && !self.has_sockets() {
            let message = "--stamps hardware: this target has no network connections of dyno's own; use --stamps client";
            return Err(Refused::new(RefusalCode::Unsupported, "--stamps", message).into());
        }
        self.check_pipeline(job.pipeline)?;
        self.apply(job, control, on_second)
    }
}

/// Words for how TLS is used, for the report.
pub fn tls_words(tls: &Tls) -> &'static str {
    match (tls.insecure, tls.any_name) {
        (true, _) => "on, certificates NOT verified",
        (_, true) => "on, certificates verified, their names NOT",
        _ => "on, certificates verified",
    }
}
