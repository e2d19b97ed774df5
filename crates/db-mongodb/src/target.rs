//! MongoDB and what speaks its protocol, by dyno's own codec or by the official driver.

use crate::admin::MongoAdmin;
use crate::command_error::CommandError;
use crate::official::{NO_BATCHES, OfficialDeployment, OfficialTarget};
use crate::probe::{ask_first, describe_missing, probe_seeds};
use crate::protocol::{Deployment, MongoDriver, MongoFacts, MongoOptions, ReadPreference};
use crate::{copies, dns, monitors};
use dyno_db::collections::{CollectionStats, Collections, FiguresByCollection};
use dyno_db::probe::Stop;
use dyno_db::target::{Database, LoginForm, OpenTarget, Scheme, Target, TargetInfo, WATCHED, tls_words};
use dyno_db::target_error::TargetError;
use dyno_engine::net::{TlsConfig, tls_config};
use dyno_engine::{Control, Finished, Job, RunError, Second, run_wire};
use dyno_monitor::Source;
use dyno_types::address::Address;
use dyno_types::bson::{self, kind};
use dyno_types::units::Thousands;
use dyno_types::{Content, Endpoint, RefusalCode, Refused, Verb};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The database.
pub struct MongoDb;

impl Database for MongoDb {
    fn name(&self) -> &'static str {
        "mongodb"
    }

    fn schemes(&self) -> &[Scheme] {
        &[
            Scheme {
                name: "mongodb",
                form: "mongodb://[user:password@]host:port/[database][?options]",
                login: LoginForm::User,
            },
            Scheme {
                name: "mongodb+srv",
                form: "mongodb+srv://[user:password@]name/[database][?options]",
                login: LoginForm::User,
            },
        ]
    }

    fn parse(&self, uri: &str) -> Result<Box<dyn Target>, Refused> {
        Ok(open_options(MongoOptions::from_uri(uri)?))
    }

    fn describe_missing(&self, facts: &BTreeMap<String, String>) -> Option<String> {
        describe_missing(facts)
    }

    fn parse_official(&self, uri: &str) -> Option<Result<Box<dyn Target>, Refused>> {
        Some(OfficialTarget::parse(uri).map(|target| Box::new(target) as Box<dyn Target>))
    }
}

/// Asks the first seed that answers what it is.
pub fn ask_facts(options: &Arc<MongoOptions>, stop: Stop<'_>) -> Result<(Endpoint, MongoFacts), TargetError> {
    let tls = options.tls.as_ref().map(tls_config).transpose()?.map(Arc::new);
    ask_first(options, tls.as_ref(), stop)
}

/// A target with these options.
pub fn open_options(options: MongoOptions) -> Box<dyn Target> {
    Box::new(MongoTarget(options))
}

/// A target of the official driver: the database of the records if not the URI's own, and whether inserts replace a record
/// that is there.
///
/// # Errors
/// The driver cannot use the URI, or the build is without it.
pub fn official_target(uri: &str, database: Option<&str>, upsert: bool) -> Result<Box<dyn Target>, Refused> {
    let mut target = OfficialTarget::parse(uri)?;
    if let Some(database) = database {
        target.set_database(database);
    }
    target.set_upsert(upsert);
    Ok(Box::new(target))
}

#[derive(Debug)]
struct MongoTarget(MongoOptions);

impl Target for MongoTarget {
    fn redacted(&self) -> String {
        self.0.redacted()
    }

    fn addresses(&self) -> &[Address] {
        // The hosts of `mongodb+srv://` are not known before they are asked for.
        if self.0.srv.is_some() { &[] } else { &self.0.addresses }
    }

    fn set_database(&mut self, database: &str) {
        self.0.database = database.to_owned();
    }

    fn has_collections(&self) -> bool {
        true
    }

    fn is_watched(&self) -> bool {
        true
    }

    fn copies(&self) -> Option<Result<Box<dyn dyno_db::copies::database::ReplicatedStore>, Refused>> {
        Some(
            copies::MongoSet::from_options(self.0.clone())
                .map(|set| Box::new(set) as Box<dyn dyno_db::copies::database::ReplicatedStore>),
        )
    }

    fn open(&self, _content: Arc<dyn Content>, stop: Stop<'_>) -> Result<Box<dyn OpenTarget>, TargetError> {
        let tls = self.0.tls.as_ref().map(tls_config).transpose()?.map(Arc::new);
        let options = Arc::new(dns::seeds(self.0.clone())?);
        let (deployment, facts) = probe_seeds(&options, tls.as_ref(), stop)?;
        Ok(Box::new(OpenMongo { options, tls, deployment, facts }))
    }
}

/// Servers that have answered.
struct OpenMongo {
    options: Arc<MongoOptions>,
    /// TLS made ready.
    tls: Option<Arc<TlsConfig>>,
    /// Nodes and roles.
    deployment: Deployment,
    /// Facts that the primary or the first router reports of itself.
    facts: MongoFacts,
}

impl OpenMongo {
    fn admin(&self) -> MongoAdmin {
        MongoAdmin::new(&self.options, self.tls.as_ref(), &self.deployment)
    }
}

impl MongoAdmin {
    /// Commands to a target beside its load, where it is a MongoDB that has answered.
    pub fn from_target(target: &dyn OpenTarget) -> Option<Self> {
        let target: &dyn Any = target;
        let own = target.downcast_ref::<OpenMongo>().map(OpenMongo::admin);
        own.or_else(|| Some(MongoAdmin::official(&target.downcast_ref::<OpenOfficial>()?.0)))
    }
}

impl OpenTarget for OpenMongo {
    fn info(&self) -> TargetInfo {
        TargetInfo {
            database: self.facts.product_name(),
            driver: Some("wire".into()),
            wire: true,
            on_disk: true,
            virtual_time: false,
            batches: true,
        }
    }

    fn redacted(&self) -> String {
        self.options.redacted()
    }

    fn write_concern(&self) -> Option<String> {
        let w = self.options.write_concern.w.as_ref().map(ToString::to_string);
        w.or_else(|| self.facts.default_write_concern().write_concern_w().map(str::to_owned))
    }

    fn facts(&self) -> BTreeMap<String, String> {
        let mut out: BTreeMap<String, String> = self.facts.all.clone().into_iter().collect();
        let concern = &self.options.write_concern;
        let w = match &concern.w {
            Some(w) => format!("write concern w: {w}"),
            None => self.facts.default_write_concern().to_string(),
        };
        let journal = concern.journal.map_or(String::new(), |j| format!(", journal {j}"));
        out.insert("client".into(), "wire".into());
        out.insert("durability".into(), format!("{w}{journal}"));
        if let Some(refused) = self.facts.refused_questions() {
            out.insert("refused".into(), refused);
        }
        out.insert("nodes".into(), self.deployment.watched_endpoints().count().to_string());
        if let Some(tls) = &self.options.tls {
            out.insert("tls".into(), tls_words(tls).into());
        }
        out
    }

    fn check(&self, content: &Arc<dyn Content>, verbs: &[Verb]) -> Result<(), Refused> {
        // A load phase writes too, and may be left out: what it meets is told there.
        let writes = verbs.iter().any(|verb| verb.changes_data());
        if let (Some(role), true) = (self.deployment.member_without_writes(), writes) {
            let (host, set) = (&self.deployment.endpoints[0], self.facts.get("replica_set").unwrap_or("?"));
            return Err(Refused::new(
                RefusalCode::Unsupported,
                "replicaSet",
                format!(
                    "{host} is {role} of replica set {set:?} and takes no writes; replicaSet={set} in the URI finds the primary \
                 (directConnection=true, or one host without replicaSet, speaks to this member alone)"
                ),
            ));
        }
        let transaction = content.shapes().iter().find(|shape| shape.action.ends_transaction());
        if let (Some(_), None, false) = (transaction, self.facts.get("replica_set"), self.facts.is_router()) {
            let why =
                "transactions of several documents need a replica set or a router; this is a single server";
            return Err(Refused::new(RefusalCode::Unsupported, "target", why));
        }
        MongoDriver::new(self.options.clone(), content.clone(), self.deployment.clone()).map(drop)
    }

    fn apply(
        &self,
        job: Job,
        control: Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Finished, RunError> {
        let content = job.workload.content();
        let make = || MongoDriver::new(self.options.clone(), content.clone(), self.deployment.clone());
        run_wire(job, control, self.tls.clone(), make, on_second)
    }

    fn has_sockets(&self) -> bool {
        true
    }

    fn nodes(&self) -> Vec<&Endpoint> {
        self.deployment.watched_endpoints().take(WATCHED).collect()
    }

    fn sources(&self, name: &dyn Fn(Option<&Endpoint>) -> String) -> Vec<Box<dyn Source>> {
        let sources = self.nodes().into_iter().map(|endpoint| {
            monitors::source(&name(Some(endpoint)), &self.options, self.tls.clone(), endpoint)
        });
        sources.collect()
    }

    fn process(&self) -> Option<(u32, String, &Endpoint)> {
        let [endpoint] = self.deployment.endpoints.as_slice() else { return None };
        let status = self.admin().run_on("admin", &|out| bson::put_int32(out, "serverStatus", 1)).ok()?;
        let pid = bson::find_element(&status, "pid")?.as_i64()?;
        let process = bson::find_element(&status, "process")?.as_str()?;
        Some((u32::try_from(pid).ok()?, process.rsplit('/').next()?.to_owned(), endpoint))
    }

    fn missing(&self) -> Option<String> {
        describe_missing(&self.facts.all)
    }

    fn recorded_protocol(&self) -> Option<(&'static str, u32)> {
        Some(("mongodb", 0))
    }

    fn check_replay(&self, numbered: u64) -> Result<Vec<String>, Refused> {
        if self.facts.is_router() && self.deployment.readable_servers().len() > 1 {
            let why = "a replay goes to one router, where its cursors are: name one of them in the URI";
            return Err(Refused::new(RefusalCode::Unsupported, "target", why));
        }
        let mut notes = Vec::new();
        let options = &self.options;
        let unused = [
            ("w, journal or wTimeoutMS", !options.write_concern.is_default()),
            ("readConcernLevel", options.read_concern.is_some()),
            ("readPreference", options.read_preference != ReadPreference::Primary),
            ("retryReads", options.retry_reads),
            ("retryWrites", options.retry_writes),
        ];
        let unused: Vec<&str> = unused.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
        if !unused.is_empty() {
            notes.push(format!(
                "not used of the URI: {}: commands are sent once, as they were recorded",
                unused.join(", ")
            ));
        }
        if self.deployment.is_set() {
            notes.push("all commands go to the primary, whatever they were read from then".into());
        }
        let is_single = self.facts.get("replica_set").is_none() && !self.facts.is_router();
        if is_single && numbered > 0 {
            notes.push(format!(
                "{} commands carry the number of a retryable write or a transaction: a single mongod refuses them",
                Thousands(numbered)
            ));
        }
        Ok(notes)
    }

    fn collections(&self) -> Option<Box<dyn Collections + '_>> {
        Some(Box::new(self.admin()))
    }

    fn collection_stats(&self) -> Option<Box<dyn CollectionStats>> {
        Some(Box::new(self.admin()))
    }
}

impl Target for OfficialTarget {
    fn redacted(&self) -> String {
        OfficialTarget::redacted(self)
    }

    fn set_database(&mut self, database: &str) {
        OfficialTarget::set_database(self, database);
    }

    fn has_collections(&self) -> bool {
        true
    }

    fn is_local(&self) -> bool {
        OfficialTarget::is_local(self)
    }

    fn open(&self, _content: Arc<dyn Content>, _stop: Stop<'_>) -> Result<Box<dyn OpenTarget>, TargetError> {
        Ok(Box::new(OpenOfficial(self.deployment()?)))
    }
}

/// A deployment that has answered the official driver.
struct OpenOfficial(Arc<OfficialDeployment>);

impl OpenTarget for OpenOfficial {
    fn info(&self) -> TargetInfo {
        TargetInfo {
            database: self.0.product(),
            driver: Some(self.0.driver().into()),
            on_disk: true,
            ..TargetInfo::default()
        }
    }

    fn write_concern(&self) -> Option<String> {
        self.0.write_concern()
    }

    fn facts(&self) -> BTreeMap<String, String> {
        let mut out = self.0.facts();
        out.insert("client".into(), self.0.driver().into());
        out
    }

    fn check(&self, content: &Arc<dyn Content>, _verbs: &[Verb]) -> Result<(), Refused> {
        self.0.check(content.as_ref())
    }

    fn apply(
        &self,
        job: Job,
        control: Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Finished, RunError> {
        self.0.run(job, control, on_second)
    }

    fn sources(&self, name: &dyn Fn(Option<&Endpoint>) -> String) -> Vec<Box<dyn Source>> {
        vec![monitors::official_source(&name(None), MongoAdmin::official(&self.0))]
    }

    fn why_no_batches(&self) -> Option<&'static str> {
        Some(NO_BATCHES)
    }

    fn collections(&self) -> Option<Box<dyn Collections + '_>> {
        Some(Box::new(MongoAdmin::official(&self.0)))
    }

    fn collection_stats(&self) -> Option<Box<dyn CollectionStats>> {
        Some(Box::new(MongoAdmin::official(&self.0)))
    }
}

impl CollectionStats for MongoAdmin {
    fn read_stats(&self) -> FiguresByCollection {
        MongoAdmin::collection_stats(self)
    }
}

impl Collections for MongoAdmin {
    fn remove(&self, name: &str) -> Result<(), RunError> {
        Ok(self.drop_collection(name)?)
    }

    fn remove_of(&self, database: &str, name: &str) -> Result<(), RunError> {
        Ok(self.drop_collection_of(database, name)?)
    }

    fn index(&self, name: &str, index: &str, fields: &[(String, i32)]) -> Result<(), RunError> {
        Ok(self.create_compound_index(name, index, fields)?)
    }

    fn list_collections(&self, database: &str) -> Result<Option<Vec<String>>, RunError> {
        Ok(Some(MongoAdmin::list_collections(self, database)?))
    }

    fn count(&self, name: &str) -> Result<u64, RunError> {
        Ok(MongoAdmin::count(self, name)?)
    }

    fn count_of(&self, database: &str, name: &str) -> Result<Option<u64>, RunError> {
        Ok(Some(MongoAdmin::count_of(self, database, name)?))
    }

    fn sample(&self, name: &str, count: u32) -> Result<Vec<Vec<u8>>, RunError> {
        Ok(MongoAdmin::sample(self, name, count)?)
    }

    fn highest(&self, name: &str, between: Option<&[u8]>) -> Result<Option<Vec<u8>>, RunError> {
        Ok(highest(self, name, between)?)
    }
}

fn highest(admin: &MongoAdmin, name: &str, between: Option<&[u8]>) -> Result<Option<Vec<u8>>, CommandError> {
    admin.find_one(name, &|out| {
        if let Some(range) = between {
            bson::put_head(out, kind::DOCUMENT, "filter");
            let filter = bson::open(out);
            bson::put_head(out, kind::DOCUMENT, "_id");
            out.extend_from_slice(range);
            bson::close(out, filter);
        }
        bson::put_head(out, kind::DOCUMENT, "sort");
        let sort = bson::open(out);
        bson::put_int32(out, "_id", -1);
        bson::close(out, sort);
    })
}
