//! Commands that prepare a workload or look after it: indexes, counts, drops, figures of collections.

use crate::command_error::CommandError;
use crate::connection::MongoConnection;
use crate::official::OfficialDeployment;
use crate::protocol::{Deployment, MongoOptions};
use dyno_db::collections::FiguresByCollection;
use dyno_engine::net::TlsConfig;
use dyno_types::Endpoint;
use dyno_types::bson::{self, kind};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Time that a command may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Commands without an answer after which collections are not asked for their figures any longer.
const SILENT: u32 = 3;

/// Most collections that are asked for their figures.
const COLLECTIONS: usize = 64;
/// Most indexes of a collection whose sizes are kept.
const INDEXES: usize = 64;
/// Figures that are kept of `collStats`, beside the size of each index.
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

/// Codes of the server that decide how things go on.
mod code {
    pub const ILLEGAL_OPERATION: i64 = 20;
    pub const ALREADY_INITIALIZED: i64 = 23;
    pub const NAMESPACE_NOT_FOUND: i64 = 26;
}

/// A command's reply, or its result.
type Done<T> = Result<T, CommandError>;

/// Result of an action, taken as done if the server says by one of these codes that it was so before.
fn unless(codes: &[i64], made: Done<Vec<u8>>) -> Done<()> {
    match made {
        Err(error) if error.server_code().is_none_or(|code| !codes.contains(&code)) => Err(error),
        _ => Ok(()),
    }
}

/// Names in the first batch of a list of collections.
fn names_of_collections(listed: &[u8]) -> impl Iterator<Item = &str> {
    let batch = bson::element_at_path(listed, "cursor.firstBatch").and_then(|e| e.as_document());
    let documents = bson::read_elements(batch.unwrap_or_default()).into_iter().flatten().flatten();
    let names = documents.filter_map(|one| bson::find_element(one.as_document()?, "name")?.as_str());
    names.filter(|name| !name.starts_with("system."))
}

/// Commands that prepare a workload or look after it: indexes, counts, drops.
pub struct MongoAdmin(CommandRoute);

/// Route by which they are sent.
enum CommandRoute {
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
        let at = usize::from(deployment.first_writable());
        MongoAdmin(CommandRoute::Wire(Box::new(Direct {
            options: options.clone(),
            tls: tls.cloned(),
            endpoint: deployment.endpoints[at].clone(),
            deployment: Deployment::single_server(deployment.endpoints[at].clone()),
        })))
    }

    /// By the official driver.
    pub(crate) fn official(deployment: &Arc<OfficialDeployment>) -> Self {
        MongoAdmin(CommandRoute::Official(deployment.clone()))
    }

    fn database(&self) -> &str {
        match &self.0 {
            CommandRoute::Wire(direct) => &direct.options.database,
            CommandRoute::Official(official) => official.database(),
        }
    }

    /// Runs one command on the run's database; `fields` appends its elements. Returns the reply, or the server's words.
    pub fn run(&self, fields: &dyn Fn(&mut Vec<u8>)) -> Done<Vec<u8>> {
        self.run_on(self.database(), fields)
    }

    /// The same on another database, such as `admin`.
    pub fn run_on(&self, database: &str, fields: &dyn Fn(&mut Vec<u8>)) -> Done<Vec<u8>> {
        match &self.0 {
            CommandRoute::Wire(direct) => direct.run_on(database, fields),
            CommandRoute::Official(official) => {
                let mut command = Vec::new();
                let at = bson::open(&mut command);
                fields(&mut command);
                bson::close(&mut command, at);
                official.command(database, &command)
            }
        }
    }

    /// The same, which the server may say (code 23) to have been done before.
    pub(crate) fn initialize(&self, fields: &dyn Fn(&mut Vec<u8>)) -> Done<()> {
        unless(&[code::ALREADY_INITIALIZED], self.run_on("admin", fields))
    }

    /// Creates an ascending index on one field where it is not there yet.
    pub fn create_index(&self, collection: &str, name: &str, field: &str) -> Done<()> {
        self.create_compound_index(collection, name, &[(field.to_owned(), 1)])
    }

    /// Creates an index on several fields, each ascending (1) or descending (-1), where it is not there yet.
    pub fn create_compound_index(&self, collection: &str, name: &str, fields: &[(String, i32)]) -> Done<()> {
        let made = self.run(&|out| {
            bson::put_string(out, "createIndexes", collection);
            bson::put_head(out, kind::ARRAY, "indexes");
            let list = bson::open(out);
            bson::put_item_head(out, kind::DOCUMENT, 0);
            let index = bson::open(out);
            bson::put_head(out, kind::DOCUMENT, "key");
            let key = bson::open(out);
            fields.iter().for_each(|(field, way)| bson::put_int32(out, field, *way));
            bson::close(out, key);
            bson::put_string(out, "name", name);
            bson::close(out, index);
            bson::close(out, list);
        });
        made.map(drop)
    }

    /// Shards a collection of the run's database by `_id`; one that is sharded so already is no error.
    pub fn shard_collection(&self, collection: &str) -> Done<()> {
        let already = [code::ILLEGAL_OPERATION, code::ALREADY_INITIALIZED];
        let name = format!("{}.{collection}", self.database());
        let enabled = self.run_on("admin", &|out| bson::put_string(out, "enableSharding", self.database()));
        unless(&already, enabled)?;
        let made = self.run_on("admin", &|out| {
            bson::put_string(out, "shardCollection", &name);
            bson::put_head(out, kind::DOCUMENT, "key");
            let key = bson::open(out);
            bson::put_int32(out, "_id", 1);
            bson::close(out, key);
        });
        let Err(error) = made else { return Ok(()) };
        if error.server_code().is_none_or(|code| !already.contains(&code)) {
            return Err(error);
        }
        // It is sharded: by what, the routers know.
        let known = self.known(collection)?;
        let key = known.as_deref().and_then(|known| bson::find_element(known, "key")?.as_document());
        let fields = bson::read_elements(key.unwrap_or_default()).into_iter().flatten().flatten();
        let fields: Vec<_> = fields.map(|field| String::from_utf8_lossy(field.name).into_owned()).collect();
        if fields == ["_id"] {
            return Ok(());
        }
        let by = fields.join(", ");
        let message = format!("{name} is sharded by {by}, not by _id: {error}");
        Err(error.with_explanation(message))
    }

    /// Facts that the routers know of a sharded collection.
    fn known(&self, collection: &str) -> Done<Option<Vec<u8>>> {
        let name = format!("{}.{collection}", self.database());
        self.first_of("config", "collections", &|out| {
            bson::put_head(out, kind::DOCUMENT, "filter");
            let filter = bson::open(out);
            bson::put_string(out, "_id", &name);
            bson::close(out, filter);
        })
    }

    /// The chunk that holds an `_id`, as the routers know it.
    fn chunk(&self, collection: &str, id: &dyn Fn(&mut Vec<u8>)) -> Done<Option<Vec<u8>>> {
        let known = self.known(collection)?;
        // Servers from 5.0 on name the collection of a chunk by its UUID.
        let uuid = known.as_deref().and_then(|known| bson::find_element(known, "uuid"));
        let name = format!("{}.{collection}", self.database());
        self.first_of("config", "chunks", &|out| {
            bson::put_head(out, kind::DOCUMENT, "filter");
            let filter = bson::open(out);
            bson::put_head(out, kind::ARRAY, "$or");
            let either = bson::open(out);
            bson::put_item_head(out, kind::DOCUMENT, 0);
            let by_name = bson::open(out);
            bson::put_string(out, "ns", &name);
            bson::close(out, by_name);
            if let Some(uuid) = &uuid {
                bson::put_item_head(out, kind::DOCUMENT, 1);
                let by_uuid = bson::open(out);
                bson::put_head(out, uuid.kind, "uuid");
                out.extend_from_slice(uuid.value);
                bson::close(out, by_uuid);
            }
            bson::close(out, either);
            bson::put_head(out, kind::DOCUMENT, "min");
            let range = bson::open(out);
            bson::put_head(out, kind::DOCUMENT, "$lte");
            let least = bson::open(out);
            id(out);
            bson::close(out, least);
            bson::close(out, range);
            bson::close(out, filter);
            bson::put_head(out, kind::DOCUMENT, "sort");
            let sort = bson::open(out);
            bson::put_int32(out, "min", -1);
            bson::close(out, sort);
        })
    }

    /// Names of the shards behind a router.
    pub fn list_shards(&self) -> Done<Vec<String>> {
        let reply = self.run_on("admin", &|out| bson::put_int32(out, "listShards", 1))?;
        let list = bson::find_element(&reply, "shards").and_then(|e| e.as_document().map(<[u8]>::to_vec));
        let list = list.ok_or(CommandError::Incomplete("the router's list of shards is no list"))?;
        let shards = bson::read_elements(&list)?.flatten();
        let name = |shard: bson::Element<'_>| {
            let name = bson::find_element(shard.as_document()?, "_id")?;
            name.as_str().map(str::to_owned)
        };
        shards.map(|shard| name(shard).ok_or(CommandError::Incomplete("a shard has no name"))).collect()
    }

    /// Splits a sharded collection's chunk at an `_id`, which `id` appends; a boundary that is there is no error.
    pub fn split_chunk(&self, collection: &str, id: &dyn Fn(&mut Vec<u8>)) -> Done<()> {
        let split = self.run_on("admin", &|out| {
            bson::put_string(out, "split", &format!("{}.{collection}", self.database()));
            bson::put_head(out, kind::DOCUMENT, "middle");
            let middle = bson::open(out);
            id(out);
            bson::close(out, middle);
        });
        let Err(error) = split else { return Ok(()) };
        let chunk = self.chunk(collection, id)?;
        let begins = chunk.as_deref().and_then(|chunk| bson::find_element(chunk, "min")?.as_document());
        let mut wanted = Vec::new();
        let at = bson::open(&mut wanted);
        id(&mut wanted);
        bson::close(&mut wanted, at);
        if begins == Some(wanted.as_slice()) { Ok(()) } else { Err(error) }
    }

    /// Moves the chunk that holds an `_id` to a shard, waits for a majority there and for the documents' removal where they
    /// were; a chunk that is there already is no error.
    pub fn move_chunk(&self, collection: &str, id: &dyn Fn(&mut Vec<u8>), shard: &str) -> Done<()> {
        let moved = self.run_on("admin", &|out| {
            bson::put_string(out, "moveChunk", &format!("{}.{collection}", self.database()));
            bson::put_head(out, kind::DOCUMENT, "find");
            let find = bson::open(out);
            id(out);
            bson::close(out, find);
            bson::put_string(out, "to", shard);
            bson::put_boolean(out, "_secondaryThrottle", true);
            bson::put_head(out, kind::DOCUMENT, "writeConcern");
            let concern = bson::open(out);
            bson::put_string(out, "w", "majority");
            bson::close(out, concern);
            bson::put_boolean(out, "_waitForDelete", true);
        });
        let Err(error) = moved else { return Ok(()) };
        let chunk = self.chunk(collection, id)?;
        let place = chunk.as_deref().and_then(|chunk| bson::find_element(chunk, "shard")?.as_str());
        if place == Some(shard) { Ok(()) } else { Err(error) }
    }

    /// Returns whether the balancer is on.
    pub fn is_balancing(&self) -> Done<bool> {
        let reply = self.run_on("admin", &|out| bson::put_int32(out, "balancerStatus", 1))?;
        let mode = bson::find_element(&reply, "mode").and_then(|mode| mode.as_str().map(str::to_owned));
        mode.map(|mode| mode != "off").ok_or(CommandError::Incomplete("the balancer's status has no mode"))
    }

    /// Turns the balancer on or off.
    pub fn set_balancer(&self, on: bool) -> Done<()> {
        let command = if on { "balancerStart" } else { "balancerStop" };
        self.run_on("admin", &|out| bson::put_int32(out, command, 1)).map(drop)
    }

    /// Drops a collection; one that is not there is no error.
    pub fn drop_collection(&self, collection: &str) -> Done<()> {
        self.drop_collection_of(self.database(), collection)
    }

    /// The same of another database.
    pub fn drop_collection_of(&self, database: &str, collection: &str) -> Done<()> {
        let dropped = self.run_on(database, &|out| bson::put_string(out, "drop", collection));
        let Err(error) = unless(&[code::NAMESPACE_NOT_FOUND], dropped) else { return Ok(()) };
        // Some servers refuse without a code.
        if self.exists(database, collection)? { Err(error) } else { Ok(()) }
    }

    fn exists(&self, database: &str, collection: &str) -> Done<bool> {
        let listed = self.run_on(database, &|out| {
            bson::put_int32(out, "listCollections", 1);
            bson::put_head(out, kind::DOCUMENT, "filter");
            let filter = bson::open(out);
            bson::put_string(out, "name", collection);
            bson::close(out, filter);
        })?;
        let batch = bson::element_at_path(&listed, "cursor.firstBatch")
            .and_then(|e| e.as_document())
            .unwrap_or_default();
        let all = bson::read_elements(batch).into_iter().flatten().flatten().filter_map(|e| e.as_document());
        let mut names = all.filter_map(|one| bson::find_element(one, "name").and_then(|e| e.as_str()));
        Ok(names.any(|name| name == collection))
    }

    /// Number of documents in a collection, by its metadata.
    pub fn count(&self, collection: &str) -> Done<u64> {
        self.count_of(self.database(), collection)
    }

    /// Number of documents that a collection of a database holds; 0 where there is none.
    pub fn count_of(&self, database: &str, collection: &str) -> Done<u64> {
        let reply = self.run_on(database, &|out| bson::put_string(out, "count", collection))?;
        let n = bson::find_element(&reply, "n").and_then(|e| e.as_i64());
        n.and_then(|n| u64::try_from(n).ok())
            .ok_or(CommandError::Incomplete("the server's count is no number"))
    }

    /// Names of the collections of a database, but for those of the server's own: of many, those that come first.
    pub fn list_collections(&self, database: &str) -> Done<Vec<String>> {
        let listed = self.run_on(database, &|out| {
            bson::put_int32(out, "listCollections", 1);
            bson::put_boolean(out, "nameOnly", true);
        })?;
        Ok(names_of_collections(&listed).map(str::to_owned).collect())
    }

    /// Figures that the server reports of each collection (`collStats`): name, figure, value. Figures that it does not report are
    /// left out.
    pub fn collection_stats(&self) -> FiguresByCollection {
        let listed = self.run(&|out| {
            bson::put_int32(out, "listCollections", 1);
            bson::put_boolean(out, "nameOnly", true);
        });
        let Ok(listed) = listed else { return BTreeMap::new() };
        let names = names_of_collections(&listed).take(COLLECTIONS);
        let mut silent = 0;
        let mut figures = |name: &str| {
            if silent >= SILENT {
                return None;
            }
            let stats = self.run(&|out| bson::put_string(out, "collStats", name));
            silent += u32::from(stats.as_ref().is_err_and(|error| error.server_code().is_none()));
            let stats = stats.ok()?;
            let figure =
                |figure: &str| Some((figure.to_owned(), bson::find_element(&stats, figure)?.as_f64()?));
            let mut found: BTreeMap<_, _> = COLLECTION_STATS.iter().filter_map(|name| figure(name)).collect();
            let sizes =
                bson::find_element(&stats, "indexSizes").and_then(|e| e.as_document()).unwrap_or_default();
            for index in bson::read_elements(sizes).into_iter().flatten().flatten().take(INDEXES) {
                let name = format!("indexSizes.{}", String::from_utf8_lossy(index.name));
                found.extend(index.as_f64().map(|size| (name, size)));
            }
            Some(found)
        };
        names.filter_map(|name| Some((name.to_owned(), figures(name)?))).collect()
    }

    /// The first document of a find whose elements beside `find` are appended by `fields`.
    pub fn find_one(&self, collection: &str, fields: &dyn Fn(&mut Vec<u8>)) -> Done<Option<Vec<u8>>> {
        self.first_of(self.database(), collection, fields)
    }

    /// The first `count` documents of a collection, or as many as it has.
    pub(crate) fn sample(&self, collection: &str, count: u32) -> Done<Vec<Vec<u8>>> {
        let reply = self.found(self.database(), collection, count, &|_| {})?;
        let batch = bson::element_at_path(&reply, "cursor.firstBatch")
            .and_then(|e| e.as_document())
            .unwrap_or_default();
        let documents = bson::read_elements(batch).into_iter().flatten().flatten();
        Ok(documents.filter_map(|one| one.as_document().map(<[u8]>::to_vec)).collect())
    }

    /// The reply to a find of at most `count` documents.
    fn found(
        &self,
        database: &str,
        collection: &str,
        count: u32,
        fields: &dyn Fn(&mut Vec<u8>),
    ) -> Done<Vec<u8>> {
        self.run_on(database, &|out| {
            bson::put_string(out, "find", collection);
            fields(out);
            bson::put_int32(out, "limit", count as i32);
            bson::put_boolean(out, "singleBatch", true);
        })
    }

    fn first_of(
        &self,
        database: &str,
        collection: &str,
        fields: &dyn Fn(&mut Vec<u8>),
    ) -> Done<Option<Vec<u8>>> {
        let reply = self.found(database, collection, 1, fields)?;
        let first = bson::element_at_path(&reply, "cursor.firstBatch.0");
        Ok(first.and_then(|e| e.as_document()).map(<[u8]>::to_vec))
    }
}

impl Direct {
    fn run_on(&self, database: &str, fields: &dyn Fn(&mut Vec<u8>)) -> Done<Vec<u8>> {
        let line = MongoConnection::open(&self.options, self.tls.as_ref(), &self.endpoint, &self.deployment);
        line?.send_command(database, PATIENCE, fields)
    }
}
