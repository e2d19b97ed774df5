//! The databases' side of a binding: what it can do, and the target it opens.

use crate::bindings::BindingTarget;
use dyno_databases::registry;
use dyno_db::probe::Stop;
use dyno_db::target::{OpenTarget, Target};
use dyno_db::target_error::TargetError;
use dyno_db_embedded::basic::Sink;
use dyno_types::Content;
use std::sync::Arc;

impl BindingTarget {
    /// Returns whether MongoDB's official driver applies the load.
    pub fn is_official(&self) -> bool {
        matches!(self, BindingTarget::Official { .. })
    }

    /// Returns whether one connection may have several requests in flight.
    pub fn is_wire(&self) -> bool {
        !matches!(self, BindingTarget::Official { .. } | BindingTarget::Store { .. })
    }

    /// Returns how long a reply is awaited, nanoseconds; `None` for ever. A binding without a time-out of its own takes
    /// `dyno.timeout`.
    pub fn timeout_ns(&self, dyno_timeout: Option<u64>) -> Option<u64> {
        match self {
            BindingTarget::Redis { timeout_ns, .. }
            | BindingTarget::Mongo { timeout_ns, .. }
            | BindingTarget::Memcached { timeout_ns, .. }
            | BindingTarget::Official { timeout_ns, .. } => *timeout_ns,
            BindingTarget::Store { .. } | BindingTarget::Null => dyno_timeout,
        }
    }

    /// Connects once, or opens the store, until `stop` says so; the `basic` binding writes its lines to `lines`.
    ///
    /// # Errors
    /// The target does not answer, or the store cannot be opened.
    pub fn open(
        &self,
        content: &Arc<dyn Content>,
        lines: Sink,
        stop: Stop<'_>,
    ) -> Result<(Box<dyn Target>, Box<dyn OpenTarget>), TargetError> {
        let target = match self {
            BindingTarget::Redis { options, .. } => {
                dyno_db_redis::target::open_options(options.as_ref().clone())
            }
            BindingTarget::Mongo { options, .. } => {
                dyno_db_mongodb::target::open_options(options.as_ref().clone())
            }
            BindingTarget::Memcached { options, .. } => {
                dyno_db_memcached::target::open_options(options.as_ref().clone())
            }
            BindingTarget::Official { uri, database, upsert, .. } => {
                dyno_db_mongodb::target::official_target(uri, database.as_deref(), *upsert)?
            }
            BindingTarget::Store { uri } => {
                let store = dyno_db_embedded::open_with_sink(uri, content.clone(), Some(lines))?;
                return Ok((registry::parse(uri)?, dyno_db_embedded::target::open_store(store)));
            }
            BindingTarget::Null => registry::parse("null:")?,
        };
        let opened = target.open(content.clone(), stop)?;
        Ok((target, opened))
    }
}
