//! What servers hold: counted to see whether loaded data are whole, and written to disk so that they outlive their process.

use crate::mongodb::admin::{CommandError, MongoAdmin};
use crate::probe::NEVER;
use crate::redis::client::{Client, RespError};
use crate::servers::{Node, password, uri};
use crate::target::TargetError;
use dyno_config::server::ServerSpec;
use dyno_localhost::error::LocalError;
use dyno_types::bson;
use dyno_wire::mongodb::MongoOptions;
use dyno_wire::redis::resp::Reply;
use std::sync::Arc;
use std::time::Duration;

/// A server that answers at all says at once how many keys it has.
const COUNTING: Duration = Duration::from_secs(20);
/// Writing all data to disk may take long.
const SAVING: Duration = Duration::from_secs(600);
/// Databases of MongoDB's own.
const OWN: [&str; 3] = ["admin", "local", "config"];

/// Keys or documents of all instances together; copies on replicas do not count.
pub fn count(spec: &ServerSpec, nodes: &[&Node]) -> Result<u64, LocalError> {
    let mut sum = 0;
    match spec.kind.speaks_redis() {
        true => {
            for node in nodes {
                sum += keys(spec, node).map_err(|why| LocalError::failed(&node.name, why))?;
            }
        }
        false => {
            for instance in nodes.chunks((spec.processes_each() as usize).max(1)) {
                sum += documents(spec, instance).map_err(|why| LocalError::failed(&instance[0].name, why))?;
            }
        }
    }
    Ok(sum)
}

/// Why a server cannot say how much it holds.
#[derive(Debug, thiserror::Error)]
enum CountError {
    /// Redis and its kin: there is no answer, or a refusal.
    #[error(transparent)]
    Redis(#[from] RespError),
    /// MongoDB: the same.
    #[error(transparent)]
    MongoDb(#[from] CommandError),
    /// MongoDB cannot be spoken to.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The number of keys is none.
    #[error("DBSIZE: {0:?} is no number")]
    Keys(String),
    /// The number of documents is none.
    #[error("{database}.{collection}: the count is no number")]
    Documents { database: String, collection: String },
}

fn keys(spec: &ServerSpec, node: &Node) -> Result<u64, CountError> {
    let mut client = Client::connect(node.socket(), password(spec).as_deref(), COUNTING)?;
    let role = client.call(&["ROLE"])?;
    match &role {
        Reply::List(words) if words.first().is_some_and(|word| word.text() == "master") => {
            let size = client.call(&["DBSIZE"])?;
            size.text().parse().map_err(|_| CountError::Keys(size.text().to_owned()))
        }
        _ => Ok(0),
    }
}

fn documents(spec: &ServerSpec, nodes: &[&Node]) -> Result<u64, CountError> {
    let options = MongoOptions::from_uri(&uri(spec, nodes)).map_err(TargetError::from)?;
    let options = Arc::new(options);
    let (deployment, _) = crate::mongodb::probe::probe(&options, None, NEVER)?;
    let admin = MongoAdmin::new(&options, None, &deployment);
    let names = |reply: &[u8], path: &str| -> Vec<String> {
        let list = bson::path(reply, path).and_then(|e| e.as_document()).unwrap_or_default();
        let documents = bson::elements(list).into_iter().flatten().flatten().filter_map(|e| e.as_document());
        documents
            .filter_map(|one| bson::find(one, "name").and_then(|e| e.as_str()))
            .map(str::to_owned)
            .collect()
    };
    let listed = admin.run_on("admin", &|out| {
        bson::int32(out, "listDatabases", 1);
        bson::boolean(out, "nameOnly", true);
    })?;
    let mut sum = 0;
    for database in names(&listed, "databases").iter().filter(|name| !OWN.contains(&name.as_str())) {
        let listed = admin.run_on(database, &|out| {
            bson::int32(out, "listCollections", 1);
            bson::boolean(out, "nameOnly", true);
            // Whatever there is, in one answer.
            bson::head(out, bson::kind::DOCUMENT, "cursor");
            let cursor = bson::open(out);
            bson::int32(out, "batchSize", i32::MAX);
            bson::close(out, cursor);
        })?;
        for collection in names(&listed, "cursor.firstBatch") {
            let reply = admin.run_on(database, &|out| bson::string(out, "count", &collection))?;
            let n = bson::find(&reply, "n").and_then(|e| e.as_i64()).and_then(|n| u64::try_from(n).ok());
            let database = database.clone();
            sum += n.ok_or(CountError::Documents { database, collection })?;
        }
    }
    Ok(sum)
}

/// Has servers write everything to disk that they hold in memory alone.
pub fn save(spec: &ServerSpec, nodes: &[&Node]) -> Result<(), LocalError> {
    // mongod and FerretDB have their data on disk, or in a journal there.
    if !spec.kind.speaks_redis() {
        return Ok(());
    }
    for node in nodes {
        let saved = Client::connect(node.socket(), password(spec).as_deref(), SAVING)
            .and_then(|mut client| client.call(&["SAVE"]));
        saved.map_err(|why| LocalError::failed(&node.name, why))?;
    }
    Ok(())
}
