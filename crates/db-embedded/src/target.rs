//! Embedded stores: libraries that keep records in files of this host, by their URI.

use dyno_db::collections::Collections;
use dyno_db::probe::Stop;
use dyno_db::target::{Database, OpenTarget, Scheme, Target, TargetInfo};
use dyno_db::target_error::TargetError;
use dyno_engine::{Control, Finished, Job, RunError, Second, run_blocking};
use dyno_types::{Content, Refused, Store};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A kind of embedded store, by its scheme; the crate knows the rest.
pub struct Embedded(pub [Scheme; 1]);

impl Database for Embedded {
    fn name(&self) -> &'static str {
        self.0[0].name
    }

    fn schemes(&self) -> &[Scheme] {
        &self.0
    }

    fn parse(&self, uri: &str) -> Result<Box<dyn Target>, Refused> {
        crate::check(uri)?;
        Ok(Box::new(EmbeddedTarget(uri.to_owned())))
    }
}

/// A store that is not open yet, by its URI.
#[derive(Debug)]
struct EmbeddedTarget(String);

impl Target for EmbeddedTarget {
    fn redacted(&self) -> String {
        self.0.clone()
    }

    fn embedded(&self) -> Option<&str> {
        Some(&self.0)
    }

    fn open(&self, content: Arc<dyn Content>, _stop: Stop<'_>) -> Result<Box<dyn OpenTarget>, TargetError> {
        Ok(open_store(crate::open(&self.0, content)?))
    }
}

/// A store that is open, as a target.
pub fn open_store(store: Arc<dyn Store>) -> Box<dyn OpenTarget> {
    Box::new(OpenStore(store))
}

struct OpenStore(Arc<dyn Store>);

impl OpenTarget for OpenStore {
    fn info(&self) -> TargetInfo {
        let database = self.0.engine();
        // The mock keeps nothing.
        let on_disk = !database.starts_with("null");
        TargetInfo { database, on_disk, batches: true, ..TargetInfo::default() }
    }

    fn facts(&self) -> BTreeMap<String, String> {
        let mut facts: BTreeMap<String, String> = self.0.facts().into_iter().collect();
        facts.insert("durability".into(), self.0.durability());
        facts
    }

    fn collections(&self) -> Option<Box<dyn Collections + '_>> {
        Some(Box::new(StoreCollections(self.0.as_ref())))
    }

    fn apply(
        &self,
        job: Job,
        control: Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Finished, RunError> {
        run_blocking(job, control, self.0.as_ref(), on_second)
    }
}

/// Collections of an embedded store.
struct StoreCollections<'a>(&'a dyn Store);

impl Collections for StoreCollections<'_> {
    fn remove(&self, name: &str) -> Result<(), RunError> {
        Ok(self.0.drop_collection(name)?)
    }

    /// Embedded stores make theirs with the first document.
    fn index(&self, _name: &str, _index: &str, _fields: &[(String, i32)]) -> Result<(), RunError> {
        Ok(())
    }

    fn count(&self, name: &str) -> Result<u64, RunError> {
        Ok(self.0.documents(name)?)
    }

    fn sample(&self, name: &str, count: u32) -> Result<Vec<Vec<u8>>, RunError> {
        Ok(self.0.sample(name, count)?)
    }

    fn highest(&self, name: &str, between: Option<&[u8]>) -> Result<Option<Vec<u8>>, RunError> {
        Ok(self.0.highest(name, between)?)
    }

    fn is_embedded(&self) -> bool {
        true
    }
}
