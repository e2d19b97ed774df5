//! One client, shared by all users of a job.

use crate::official_driver::deployment::Official;
use crate::official_driver::errors::OfficialFailure;
use crate::official_driver::session::OfficialSession;
use dyno_types::{Content, Refused, Store, StoreSession};
use mongodb::Client;
use mongodb::bson::doc;
use mongodb::event::EventHandler;
use mongodb::event::cmap::CmapEvent;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Longest wait for the pool's connections: a server that takes no more is measured with those it takes.
const FILLING: Duration = Duration::from_secs(5);

/// See the module.
pub struct OfficialStore {
    official: Arc<Official>,
    client: Client,
    content: Arc<dyn Content>,
    timeout: Option<Duration>,
}

impl OfficialStore {
    /// A store for one job: a client whose pool has a connection for each of `users`, made before this returns. An
    /// operation that is not answered within `timeout` ends as timed out.
    pub fn new(
        official: Arc<Official>,
        users: usize,
        timeout: Option<Duration>,
        content: Arc<dyn Content>,
    ) -> Result<Self, OfficialFailure> {
        let mut options = official.client_options();
        // A pool that the URI makes smaller than the users stays so: an application would wait for it too.
        let most = *options.max_pool_size.get_or_insert(users.max(1) as u32);
        let least = (users.max(1) as u32).min(most);
        options.min_pool_size.get_or_insert(least);
        let ready = Arc::new(Semaphore::new(0));
        let made = ready.clone();
        options.cmap_event_handler = Some(EventHandler::Callback(Arc::new(move |event| {
            if matches!(event, CmapEvent::ConnectionReady(_))
                && made.available_permits() < Semaphore::MAX_PERMITS
            {
                made.add_permits(1);
            }
        })));
        let database = official.options().database.clone();
        let client = official.block_on(async {
            let client = Client::with_options(options)?;
            client.database(&database).run_command(doc! { "ping": 1 }).await?;
            // Connections that are made while operations wait for them would count as their latency.
            let filled = tokio::time::timeout(FILLING, ready.acquire_many(least)).await;
            drop(filled);
            Ok::<_, OfficialFailure>(client)
        })?;
        Ok(OfficialStore { official, client, content, timeout })
    }
}

impl Store for OfficialStore {
    fn engine(&self) -> String {
        self.official.product_name()
    }

    fn durability(&self) -> String {
        self.official.describe_durability()
    }

    fn session(&self) -> Result<Box<dyn StoreSession>, Refused> {
        let database = self.client.database(&self.official.options().database);
        Ok(Box::new(OfficialSession::new(
            self.official.clone(),
            database,
            self.content.clone(),
            self.timeout,
        )))
    }
}
