//! Nothing: the engine alone, whose requests are answered in the process (`null:`).

use dyno_db::probe::Stop;
use dyno_db::target::{Database, OpenTarget, Scheme, Target, TargetInfo};
use dyno_db::target_error::TargetError;
use dyno_engine::{Control, Finished, Job, RunError, Second, run_null};
use dyno_types::{Content, Refused};
use std::sync::Arc;

/// The engine alone: the database, its target, and the target open.
#[derive(Debug)]
pub(super) struct NullDatabase;

impl Database for NullDatabase {
    fn name(&self) -> &'static str {
        "null"
    }

    fn schemes(&self) -> &[Scheme] {
        const { &[Scheme::store_scheme("null", "null:")] }
    }

    fn parse(&self, _uri: &str) -> Result<Box<dyn Target>, Refused> {
        Ok(Box::new(NullDatabase))
    }
}

impl Target for NullDatabase {
    fn redacted(&self) -> String {
        "null:".into()
    }

    fn open(&self, _content: Arc<dyn Content>, _stop: Stop<'_>) -> Result<Box<dyn OpenTarget>, TargetError> {
        Ok(Box::new(NullDatabase))
    }
}

impl OpenTarget for NullDatabase {
    fn takes_commands(&self) -> bool {
        true
    }

    fn info(&self) -> TargetInfo {
        TargetInfo { database: "null".into(), wire: true, ..TargetInfo::default() }
    }

    fn apply(
        &self,
        job: Job,
        control: Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Finished, RunError> {
        run_null(job, control, on_second)
    }
}
