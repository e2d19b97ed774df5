//! Preparation before the load: drops, indexes, and where each worker's sequence goes on.

use crate::WorkFrontEnd;
use crate::plan::args::PocArgs;
use crate::shards::{self, Balancer};
use dyno_db::collections::Collections;
use dyno_db::target::OpenTarget;
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_db_mongodb::command_error::CommandError;
use dyno_engine::RunError;
use dyno_session::dataset_check::{DOCUMENTS, same_documents};
use dyno_types::bson::{self, kind};
use dyno_types::{RefusalCode, Refused};
use dyno_workload::pocdriver::{PocConfig, PocWorkload, Template};
use dyno_workload::ycsb::BadProperty;

/// The ways on where a collection holds documents of another shape.
const DROP: &str = "--empty drops them first, another --namespace leaves them alone";

/// Reasons for which a load cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// A flag that the target cannot follow, or data of another shape.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A command to the server.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A question to the target.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Names the property of the workload that cannot be.
pub fn refused(bad: BadProperty) -> Refused {
    Refused::new(
        RefusalCode::BadValue,
        &bad.key,
        format!("{} {}: expected {}", bad.key, bad.value, bad.expected),
    )
}

/// State of the collections when the load begins.
#[derive(Default)]
pub struct ReadyCollections {
    /// The first free sequence number of each worker.
    pub next: Vec<u64>,
    /// Documents that are there already.
    pub before: u64,
    /// Turned on again after the load, if it has been turned off.
    pub balancer: Option<Balancer>,
}

/// Prepares the collections.
///
/// # Errors
/// Flags that the target cannot follow, a command that the server refuses, or a target that does not answer.
pub fn prepare(
    args: &PocArgs,
    config: &PocConfig,
    opened: &dyn OpenTarget,
    caller: WorkFrontEnd,
) -> Result<ReadyCollections, PrepareError> {
    let workload = PocWorkload::new(config, &[]).map_err(refused)?;
    let content = workload.poc_content();
    let Some(collections) = opened.collections() else { return Ok(ReadyCollections::default()) };
    let admin = MongoAdmin::from_target(opened);
    let mut ready = ReadyCollections { next: vec![0; config.workers as usize], before: 0, balancer: None };
    let sharded = opened.facts().get("msg").is_some_and(|m| m == "isdbgrid");
    let router = admin.as_ref().filter(|_| sharded && !args.nosharding && config.collections == 1);
    if args.stop_balancer {
        if router.is_none() {
            let message = "--stop-balancer: the target is no sharded cluster, or --nosharding or --collections leaves it alone";
            return Err(Refused::new(RefusalCode::Unsupported, "--stop-balancer", message).into());
        }
        ready.balancer =
            MongoAdmin::from_target(opened).map(|admin| Balancer::stop(admin, caller)).transpose()?;
    }
    if args.fulltext && admin.is_none() {
        return Err(Refused::new(
            RefusalCode::Unsupported,
            "--fulltext",
            "--fulltext: the target has no text indexes",
        )
        .into());
    }
    for collection in content.collections() {
        if args.empty {
            collections.remove(&collection)?;
        }
        // The balancer stays as it is without --stop-balancer: the original turns it off for good.
        if let Some(router) = router {
            router.shard_collection(&collection)?;
        }
        for leaf in content.template().leaf_names().iter().take(config.indexes as usize) {
            collections.index(&collection, &format!("{leaf}_1"), &[(leaf.to_owned(), 1)])?;
        }
        if let Some(admin) = admin.as_ref().filter(|_| args.fulltext) {
            text_index(admin, &collection).map_err(|error| {
                let message = format!("--fulltext: {error}");
                error.with_explanation(message)
            })?;
        }
        let there = collections.count(&collection)?;
        if there > 0 && config.mixes_with_others() {
            same_shape(collections.as_ref(), &collection, config)?;
        }
        ready.before += there;
        for (user, next) in ready.next.iter_mut().enumerate() {
            let worker = config.first_worker + user as u32;
            *next = (*next).max(first_free(collections.as_ref(), &collection, worker)?);
        }
        if let Some(router) = router {
            shards::distribute(router, &collection, config, &ready.next, caller)?;
        }
    }
    Ok(ready)
}

/// Refuses to query and update documents that do not look like those that this run inserts beside them.
fn same_shape(
    collections: &dyn Collections,
    collection: &str,
    config: &PocConfig,
) -> Result<(), PrepareError> {
    let template = Template::new(config);
    let wanted = |sequence: u64| {
        let mut out = Vec::new();
        template.render_document(config.seed, config.first_worker, sequence, &mut out);
        out
    };
    let wanted: Vec<Vec<u8>> = (0..DOCUMENTS).map(wanted).collect();
    Ok(same_documents(collections, collection, &wanted, &[], DROP)?)
}

/// One more than the worker's highest sequence number.
fn first_free(collections: &dyn Collections, collection: &str, worker: u32) -> Result<u64, PrepareError> {
    let mut range = Vec::new();
    let at = bson::open(&mut range);
    Template::put_id(worker, 0, "$gte", &mut range);
    Template::put_id(worker, i32::MAX as u64, "$lt", &mut range);
    bson::close(&mut range, at);
    let newest = collections.highest(collection, Some(&range))?;
    let sequence = newest
        .as_deref()
        .and_then(|document| bson::element_at_path(document, "_id.i"))
        .and_then(|e| e.as_i64());
    Ok(sequence.and_then(|i| u64::try_from(i + 1).ok()).unwrap_or(0))
}

fn text_index(admin: &MongoAdmin, collection: &str) -> Result<(), CommandError> {
    let made = admin.run(&|out| {
        bson::put_string(out, "createIndexes", collection);
        bson::put_head(out, kind::ARRAY, "indexes");
        let list = bson::open(out);
        bson::put_item_head(out, kind::DOCUMENT, 0);
        let index = bson::open(out);
        bson::put_head(out, kind::DOCUMENT, "key");
        let key = bson::open(out);
        bson::put_string(out, "$**", "text");
        bson::close(out, key);
        bson::put_string(out, "name", "$**_text");
        bson::put_boolean(out, "background", true);
        // The original's, of fields that its documents do not have.
        bson::put_head(out, kind::DOCUMENT, "weights");
        let weights = bson::open(out);
        bson::put_int32(out, "lorem", 15);
        bson::put_int32(out, "_fulltext.text", 5);
        bson::close(out, weights);
        bson::close(out, index);
        bson::close(out, list);
    });
    made.map(drop)
}
