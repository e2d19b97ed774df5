//! A server that is started for the run and ends with it: `spawn:redis`.

use dyno_db::probe::Stop;
use dyno_db::target::{Database, OpenTarget, Scheme, Target};
use dyno_db::target_error::TargetError;
use dyno_types::{Content, RefusalCode, Refused};
use std::sync::Arc;

/// Servers that dyno starts.
pub(super) struct Spawn;

impl Database for Spawn {
    fn name(&self) -> &'static str {
        "spawn"
    }

    fn schemes(&self) -> &[Scheme] {
        const { &[Scheme::store_scheme("spawn", "spawn:redis")] }
    }

    fn parse(&self, uri: &str) -> Result<Box<dyn Target>, Refused> {
        Ok(Box::new(Unstarted(uri.strip_prefix("spawn:").unwrap_or_default().to_owned())))
    }
}

/// A server of this kind that is not started yet.
#[derive(Debug)]
struct Unstarted(String);

impl Target for Unstarted {
    fn redacted(&self) -> String {
        format!("spawn:{}", self.0)
    }

    fn must_start(&self) -> Option<&str> {
        Some(&self.0)
    }

    fn open(&self, _content: Arc<dyn Content>, _stop: Stop<'_>) -> Result<Box<dyn OpenTarget>, TargetError> {
        Err(Refused::new(RefusalCode::Missing, "target", format!("spawn:{} must be started first", self.0))
            .into())
    }
}
