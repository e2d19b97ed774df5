//! What applies the load of a session: an open target of this process, or a crew of worker processes.

use crate::mongo::ROUTERS_DOWN;
use crate::parts;
use crate::target::Opened;
use crate::worker::Part;
use dyno_engine::{Control, Finished, Job, RunError, Second};
use dyno_monitor::{ProcessCpu, peak_resident_bytes};
use dyno_record::Totals;
use dyno_rundir::schema::CollectionFigures;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a session must know of the target and of the way to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nature {
    /// Product and version.
    pub database: String,
    /// Who speaks to the database, where there is a choice.
    pub driver: Option<String>,
    /// Whether load threads of the engine apply the load (not users that block inside a store).
    pub wire: bool,
    /// Whether its data belong on a disk, not in memory alone.
    pub on_disk: bool,
    /// Whether time is virtual.
    pub virtual_time: bool,
    /// Whether several inserts can go out as one batch.
    pub batches: bool,
}

/// A phase that has been applied, and what that cost the client.
#[derive(Debug)]
pub struct Applied {
    /// The engine's own account.
    pub finished: Finished,
    /// User CPU of all processes, seconds.
    pub user_s: f64,
    /// System CPU of all processes, seconds.
    pub system_s: f64,
    /// Largest resident memory, bytes, of all processes together.
    pub peak_resident_bytes: u64,
    /// Load threads; `None`: as many as the job says.
    pub threads: Option<usize>,
    /// Requests that were still queued when the phase ended: sent afterwards, and not sent.
    pub rest: (u64, u64),
}

/// What applies the load.
pub trait Apparatus {
    /// What it is applied to.
    fn nature(&self) -> Nature;

    /// Runs the jobs of one phase side by side; `on_second` gets their seconds added up.
    fn run(
        &self,
        phase: &str,
        jobs: &[Job],
        control: &Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Applied, RunError>;

    /// What each target did in the last phase, where there are several: target, totals, measured nanoseconds.
    fn parts(&self) -> Vec<(String, Totals, u64)> {
        Vec::new()
    }

    /// What each worker process did in the last phase: its target and its part.
    fn workers(&self) -> Vec<(String, Part)> {
        Vec::new()
    }

    /// What the database says of the collections that it holds now: name, figure, value.
    fn collections(&self) -> CollectionFigures {
        CollectionFigures::new()
    }

    /// What of the target did not answer before the run and is left out until it does, in words.
    fn missing(&self) -> Option<String> {
        None
    }

    /// Workers that were lost on the way, in words: what they had measured since their last second is missing.
    fn lost(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Apparatus for Opened {
    fn nature(&self) -> Nature {
        Nature {
            database: self.database(),
            driver: self.driver().map(str::to_owned),
            wire: self.is_wire(),
            on_disk: self.is_on_disk(),
            virtual_time: self.is_virtual(),
            batches: self.batches(),
        }
    }

    fn run(
        &self,
        _phase: &str,
        jobs: &[Job],
        control: &Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Applied, RunError> {
        self.run_jobs(jobs, control, on_second)
    }

    fn collections(&self) -> CollectionFigures {
        self.mongo_admin().map(|admin| admin.collections()).unwrap_or_default()
    }

    fn missing(&self) -> Option<String> {
        match self {
            Opened::Mongo { facts, .. } => facts.get(ROUTERS_DOWN).map(str::to_owned),
            _ => None,
        }
    }
}

impl Opened {
    /// Runs jobs side by side in this process, and takes down what they cost it.
    pub(crate) fn run_jobs(
        &self,
        jobs: &[Job],
        control: &Arc<Control>,
        on_second: &mut dyn FnMut(Second),
    ) -> Result<Applied, RunError> {
        let before = ProcessCpu::now();
        let finished = parts::run(self, jobs, control, on_second)?;
        let cpu = ProcessCpu::now().since(&before);
        Ok(Applied {
            finished,
            user_s: cpu.user_s,
            system_s: cpu.system_s,
            peak_resident_bytes: peak_resident_bytes().unwrap_or(0),
            threads: None,
            rest: (0, 0),
        })
    }
}
