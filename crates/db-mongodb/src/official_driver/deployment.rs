//! A deployment that answers, and what it says of itself.

use crate::official_driver::errors::OfficialFailure;
use crate::official_driver::options::OfficialOptions;
use crate::official_driver::shapes;
use crate::protocol::{MongoFacts, QUESTIONS};
use dyno_types::{Content, Outcome, RefusalCode, Refused};
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::error::ErrorKind;
use mongodb::options::{Acknowledgment, ClientOptions, Tls};
use mongodb::{Client, Database};
use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long a server is looked for, where the URI does not say: the driver's own 30 s would hold up the end of a run
/// whose server has gone.
const SELECTION: Duration = Duration::from_secs(5);

/// A deployment, its driver's runtime, and a client for commands beside the load.
pub struct Official {
    runtime: Option<Runtime>,
    options: OfficialOptions,
    client_options: ClientOptions,
    client: Client,
    facts: MongoFacts,
}

impl Official {
    /// Connects once, and asks the server what it is.
    pub fn open(options: &OfficialOptions) -> Result<Self, OfficialFailure> {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("mongodb")
            .enable_all()
            .build()
            .map_err(|e| OfficialFailure::new(Outcome::ServerError, format!("the driver's runtime: {e}")))?;
        let (client_options, client, facts) = runtime.block_on(async {
            let mut client_options = ClientOptions::parse(options.uri()).await?;
            client_options.app_name.get_or_insert_with(|| "dyno".into());
            client_options.server_selection_timeout.get_or_insert(SELECTION);
            let client = Client::with_options(client_options.clone())?;
            let facts = ask(&client, &options.database).await?;
            Ok::<_, OfficialFailure>((client_options, client, facts))
        })?;
        Ok(Official { runtime: Some(runtime), options: options.clone(), client_options, client, facts })
    }

    /// Refuses contents whose operations have no form in the driver's interface, or whose transactions the server cannot have.
    pub fn check(&self, content: &dyn Content) -> Result<(), Refused> {
        let transaction = content.shapes().iter().any(|shape| shape.action.ends_transaction());
        if transaction && self.facts.get("replica_set").is_none() && !self.facts.is_router() {
            let why =
                "transactions of several documents need a replica set or a router; this is a single server";
            return Err(Refused::new(RefusalCode::Unsupported, "target", why));
        }
        shapes::check(content.shapes())
    }

    /// Runs a command, given as BSON, on a database; returns the reply as BSON, or why there is none.
    pub fn run_command(&self, database: &str, command: &[u8]) -> Result<Vec<u8>, OfficialFailure> {
        let command = RawDocumentBuf::from_bytes(command.to_vec());
        let command = command.map_err(|e| OfficialFailure::malformed(e.to_string()))?;
        let database = self.client.database(database);
        let reply = self.block_on(async { database.run_raw_command(command).await });
        let reply = reply.map_err(OfficialFailure::from)?;
        let bytes = RawDocumentBuf::try_from(&reply).map(RawDocumentBuf::into_bytes);
        bytes.map_err(|e| OfficialFailure::new(Outcome::Protocol, e.to_string()))
    }

    /// Product and version.
    pub fn product_name(&self) -> String {
        self.facts.product_name()
    }

    /// The `w` of the write concern, as far as it is known.
    pub fn write_concern_w(&self) -> Option<String> {
        match self.client_options.write_concern.as_ref().and_then(|concern| concern.w.as_ref()) {
            Some(Acknowledgment::Nodes(n)) => Some(n.to_string()),
            Some(Acknowledgment::Majority) => Some("majority".into()),
            Some(Acknowledgment::Custom(tag)) => Some(tag.clone()),
            _ => self.facts.default_write_concern().write_concern_w().map(str::to_owned),
        }
    }

    /// Write concern, in words.
    pub fn describe_durability(&self) -> String {
        let concern = self.client_options.write_concern.as_ref();
        let named = concern.and_then(|concern| concern.w.as_ref()).and(self.write_concern_w());
        let w = named.map_or_else(
            || self.facts.default_write_concern().to_string(),
            |w| format!("write concern w: {w}"),
        );
        let journal = concern.and_then(|c| c.journal).map_or(String::new(), |j| format!(", journal {j}"));
        format!("{w}{journal}")
    }

    /// Facts for the report.
    pub fn report_facts(&self) -> BTreeMap<String, String> {
        let mut out = self.facts.all.clone();
        out.insert("durability".into(), self.describe_durability());
        if let Some(refused) = self.facts.refused_questions() {
            out.insert("refused".into(), refused);
        }
        out.insert("nodes".into(), self.facts.hosts.len().max(1).to_string());
        if let Some(Tls::Enabled(tls)) = &self.client_options.tls {
            let verified =
                if tls.allow_invalid_certificates == Some(true) { "NOT verified" } else { "verified" };
            out.insert("tls".into(), format!("on, certificates {verified}"));
        }
        out
    }

    pub(crate) fn options(&self) -> &OfficialOptions {
        &self.options
    }

    pub(crate) fn client_options(&self) -> ClientOptions {
        self.client_options.clone()
    }

    /// Waits for a future on the driver's runtime.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.as_ref().expect("the runtime lives as long as this").block_on(future)
    }
}

impl Drop for Official {
    fn drop(&mut self) {
        // Monitors of servers that have gone are not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Asks all questions; only the first must be answered.
async fn ask(client: &Client, database: &str) -> Result<MongoFacts, OfficialFailure> {
    let mut facts = MongoFacts::default();
    // Selects a server and logs in. Any server knows the command, and any user may send it.
    client.database(database).run_command(doc! { "ping": 1 }).await?;
    for (number, (command, asked)) in QUESTIONS.iter().enumerate() {
        let asked: Database = client.database(if asked.is_empty() { database } else { asked });
        let reply: Result<Document, _> = asked.run_command(doc! { *command: 1 }).await;
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => match error.kind.as_ref() {
                ErrorKind::Command(no) => {
                    doc! { "ok": 0, "code": no.code, "codeName": &no.code_name, "errmsg": &no.message }
                }
                _ => continue,
            },
        };
        let broken = |message: String| OfficialFailure::new(Outcome::Protocol, message);
        let raw = RawDocumentBuf::try_from(&reply).map_err(|e| broken(e.to_string()))?;
        facts
            .learn_answer(number, raw.as_bytes())
            .map_err(|_| broken(format!("the answer to {command} cannot be read")))?;
    }
    Ok(facts)
}
