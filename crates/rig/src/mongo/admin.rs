//! Commands that prepare a workload or look after it: indexes, counts, drops, figures of collections.

use super::line::{MongoLine, Unanswered};
use crate::official::OfficialDeployment;
use dyno_engine::net::TlsConfig;
use dyno_types::Endpoint;
use dyno_types::bson::{self, kind};
use dyno_wire::mongodb::{Deployment, MongoOptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most collections that are asked for their figures.
const COLLECTIONS: usize = 64;
/// Most indexes of a collection whose sizes are kept.
const INDEXES: usize = 64;
/// What is kept of `collStats`, beside the size of each index.
const COLLECTION_STATS: [&str; 8] = [
    "count",
    "size",
    "avgObjSize",
    "storageSize",
    "freeStorageSize",
    "nindexes",
    "totalIndexSize",
    "totalSize",
];

/// Commands that prepare a workload or look after it: indexes, counts, drops.
pub struct MongoAdmin(Way);

/// How they are sent.
enum Way {
    /// Each on a connection of its own, to the primary (or the first router that answers).
    Wire(Box<Direct>),
    /// By the official driver.
    Official(Arc<OfficialDeployment>),
}

struct Direct {
    options: Arc<MongoOptions>,
    tls: Option<Arc<TlsConfig>>,
    endpoint: Endpoint,
    deployment: Deployment,
}

impl MongoAdmin {
    /// For a deployment that has been probed.
    pub(crate) fn new(
        options: &Arc<MongoOptions>,
        tls: Option<&Arc<TlsConfig>>,
        deployment: &Deployment,
    ) -> Self {
        let at = usize::from(deployment.first());
        MongoAdmin(Way::Wire(Box::new(Direct {
            options: options.clone(),
            tls: tls.cloned(),
            endpoint: deployment.endpoints[at].clone(),
            deployment: Deployment::single(deployment.endpoints[at].clone()),
        })))
    }

    /// By the official driver.
    pub(crate) fn official(deployment: &Arc<OfficialDeployment>) -> Self {
        MongoAdmin(Way::Official(deployment.clone()))
    }

    fn database(&self) -> &str {
        match &self.0 {
            Way::Wire(direct) => &direct.options.database,
            Way::Official(official) => official.database(),
        }
    }

    /// Runs one command on the run's database; `fields` appends its elements. Returns the reply, or the server's words.
    pub fn run(&self, fields: &dyn Fn(&mut Vec<u8>)) -> Result<Vec<u8>, String> {
        self.run_on(self.database(), fields)
    }

    /// The same on another database, such as `admin`.
    pub fn run_on(&self, database: &str, fields: &dyn Fn(&mut Vec<u8>)) -> Result<Vec<u8>, String> {
        match &self.0 {
            Way::Wire(direct) => direct.run_on(database, fields),
            Way::Official(official) => {
                let mut command = Vec::new();
                let at = bson::open(&mut command);
                fields(&mut command);
                bson::close(&mut command, at);
                official.command(database, &command)
            }
        }
    }
    /// Creates an ascending index on one field where it is not there yet.
    pub fn create_index(&self, collection: &str, name: &str, field: &str) -> Result<(), String> {
        self.create_compound_index(collection, name, &[(field.to_owned(), 1)])
    }

    /// Creates an index on several fields, each ascending (1) or descending (-1), where it is not there yet.
    pub fn create_compound_index(
        &self,
        collection: &str,
        name: &str,
        fields: &[(String, i32)],
    ) -> Result<(), String> {
        let made = self.run(&|out| {
            bson::string(out, "createIndexes", collection);
            bson::head(out, kind::ARRAY, "indexes");
            let list = bson::open(out);
            bson::item(out, kind::DOCUMENT, 0);
            let index = bson::open(out);
            bson::head(out, kind::DOCUMENT, "key");
            let key = bson::open(out);
            fields.iter().for_each(|(field, way)| bson::int32(out, field, *way));
            bson::close(out, key);
            bson::string(out, "name", name);
            bson::close(out, index);
            bson::close(out, list);
        });
        made.map(drop)
    }

    /// Shards a collection of the run's database by `_id`; one that is sharded so already is no error.
    pub fn shard(&self, collection: &str) -> Result<(), String> {
        let database = self.database();
        let already = |made: Result<Vec<u8>, String>| match made {
            Err(words) if !words.contains("already") => Err(words),
            _ => Ok(()),
        };
        already(self.run_on("admin", &|out| bson::string(out, "enableSharding", database)))?;
        already(self.run_on("admin", &|out| {
            bson::string(out, "shardCollection", &format!("{database}.{collection}"));
            bson::head(out, kind::DOCUMENT, "key");
            let key = bson::open(out);
            bson::int32(out, "_id", 1);
            bson::close(out, key);
        }))
    }

    /// Names of the shards behind a router.
    pub fn shards(&self) -> Result<Vec<String>, String> {
        let reply = self.run_on("admin", &|out| bson::int32(out, "listShards", 1))?;
        let list = bson::find(&reply, "shards").and_then(|e| e.as_document().map(<[u8]>::to_vec));
        let list = list.ok_or_else(|| "the router's list of shards is no list".to_owned())?;
        let shards = bson::elements(&list).map_err(|e| e.to_string())?.flatten();
        let name = |shard: bson::Element<'_>| {
            let name = bson::find(shard.as_document()?, "_id")?;
            name.as_str().map(str::to_owned)
        };
        shards.map(|shard| name(shard).ok_or_else(|| "a shard has no name".to_owned())).collect()
    }

    /// Splits a sharded collection's chunk at an `_id`, which `id` appends; a boundary that is there is no error.
    pub fn split(&self, collection: &str, id: &dyn Fn(&mut Vec<u8>)) -> Result<(), String> {
        let split = self.run_on("admin", &|out| {
            bson::string(out, "split", &format!("{}.{collection}", self.database()));
            bson::head(out, kind::DOCUMENT, "middle");
            let middle = bson::open(out);
            id(out);
            bson::close(out, middle);
        });
        match split {
            Err(words) if !words.contains("boundary key") => Err(words),
            _ => Ok(()),
        }
    }

    /// Moves the chunk that holds an `_id` to a shard, waits for a majority there and for the documents' removal where they
    /// were; a chunk that is there already is no error.
    pub fn move_chunk(&self, collection: &str, id: &dyn Fn(&mut Vec<u8>), shard: &str) -> Result<(), String> {
        let moved = self.run_on("admin", &|out| {
            bson::string(out, "moveChunk", &format!("{}.{collection}", self.database()));
            bson::head(out, kind::DOCUMENT, "find");
            let find = bson::open(out);
            id(out);
            bson::close(out, find);
            bson::string(out, "to", shard);
            bson::boolean(out, "_secondaryThrottle", true);
            bson::head(out, kind::DOCUMENT, "writeConcern");
            let concern = bson::open(out);
            bson::string(out, "w", "majority");
            bson::close(out, concern);
            bson::boolean(out, "_waitForDelete", true);
        });
        match moved {
            Err(words) if !words.contains("already on that shard") => Err(words),
            _ => Ok(()),
        }
    }

    /// Whether the balancer is on.
    pub fn balances(&self) -> Result<bool, String> {
        let reply = self.run_on("admin", &|out| bson::int32(out, "balancerStatus", 1))?;
        let mode = bson::find(&reply, "mode").and_then(|mode| mode.as_str().map(str::to_owned));
        mode.map(|mode| mode != "off").ok_or_else(|| "the balancer's status has no mode".to_owned())
    }

    /// Turns the balancer on or off.
    pub fn balance(&self, on: bool) -> Result<(), String> {
        let command = if on { "balancerStart" } else { "balancerStop" };
        self.run_on("admin", &|out| bson::int32(out, command, 1)).map(drop)
    }

    /// Drops a collection; one that is not there is no error.
    pub fn drop_collection(&self, collection: &str) -> Result<(), String> {
        match self.run(&|out| bson::string(out, "drop", collection)) {
            Err(words) if !words.contains("(26)") && !words.contains("ns not found") => Err(words),
            _ => Ok(()),
        }
    }

    /// How many documents a collection has, by its metadata.
    pub fn count(&self, collection: &str) -> Result<u64, String> {
        let reply = self.run(&|out| bson::string(out, "count", collection))?;
        let n = bson::find(&reply, "n").and_then(|e| e.as_i64());
        n.and_then(|n| u64::try_from(n).ok()).ok_or_else(|| "the server's count is no number".to_owned())
    }

    /// What the server says of each collection (`collStats`): name, figure, value. What it does not say is not there.
    pub fn collections(&self) -> BTreeMap<String, BTreeMap<String, f64>> {
        let listed = self.run(&|out| {
            bson::int32(out, "listCollections", 1);
            bson::boolean(out, "nameOnly", true);
        });
        let Ok(listed) = listed else { return BTreeMap::new() };
        let batch =
            bson::path(&listed, "cursor.firstBatch").and_then(|e| e.as_document()).unwrap_or_default();
        let documents = bson::elements(batch).into_iter().flatten().flatten().filter_map(|e| e.as_document());
        let names = documents.filter_map(|one| bson::find(one, "name").and_then(|e| e.as_str()));
        let names = names.filter(|name| !name.starts_with("system.")).take(COLLECTIONS);
        let figures = |name: &str| {
            let stats = self.run(&|out| bson::string(out, "collStats", name)).ok()?;
            let figure = |figure: &str| Some((figure.to_owned(), bson::find(&stats, figure)?.as_f64()?));
            let mut found: BTreeMap<_, _> = COLLECTION_STATS.iter().filter_map(|name| figure(name)).collect();
            let sizes = bson::find(&stats, "indexSizes").and_then(|e| e.as_document()).unwrap_or_default();
            for index in bson::elements(sizes).into_iter().flatten().flatten().take(INDEXES) {
                let name = format!("indexSizes.{}", String::from_utf8_lossy(index.name));
                found.extend(index.as_f64().map(|size| (name, size)));
            }
            Some(found)
        };
        names.filter_map(|name| Some((name.to_owned(), figures(name)?))).collect()
    }

    /// The first document of a find whose elements beside `find` are appended by `fields`.
    pub fn find_one(
        &self,
        collection: &str,
        fields: &dyn Fn(&mut Vec<u8>),
    ) -> Result<Option<Vec<u8>>, String> {
        let reply = self.run(&|out| {
            bson::string(out, "find", collection);
            fields(out);
            bson::int32(out, "limit", 1);
            bson::boolean(out, "singleBatch", true);
        })?;
        let first = bson::path(&reply, "cursor.firstBatch.0");
        Ok(first.and_then(|e| e.as_document()).map(<[u8]>::to_vec))
    }
}

impl Direct {
    fn run_on(&self, database: &str, fields: &dyn Fn(&mut Vec<u8>)) -> Result<Vec<u8>, String> {
        let mut line = MongoLine::open(&self.options, self.tls.as_ref(), &self.endpoint, &self.deployment)?;
        line.call(database, PATIENCE, fields).map_err(Unanswered::words)
    }
}
