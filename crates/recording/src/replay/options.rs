//! How a recording is replayed.

use super::slots::ClusterRules;
use dyno_engine::arrivals::{Process, Profile, Schedule};
use std::sync::Arc;

/// Which half of the traffic is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayOnly {
    /// Commands that only read.
    Reads,
    /// Commands that may write.
    Writes,
}

/// Times in place of those of then: commands in the recorded order, at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplaySchedule {
    /// Commands a second, over all connections and workers.
    pub rate: f64,
    /// How they are spaced.
    pub process: Process,
    /// Seed of their gaps.
    pub seed: u64,
}

impl ReplaySchedule {
    /// Begins with the first command.
    pub(super) fn begin(&self) -> Schedule {
        Schedule::new(Profile::Constant { rate: self.rate }, self.process, self.seed, 0, 1)
    }
}

/// What decides when commands with times are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayPace {
    /// Their times of then.
    #[default]
    Due,
    /// The pauses of then, each behind the reply of now.
    Think,
}

/// How a recording is replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayOptions {
    /// How many times as fast as it was recorded; `None`: each command as soon as it may be sent.
    pub speed: Option<f64>,
    /// What decides when commands are due, where the speed is one.
    pub pace: ReplayPace,
    /// Times in place of those of then; the speed is 1.
    pub schedule: Option<ReplaySchedule>,
    /// Part of the recording: from this time on, nanoseconds.
    pub from_ns: u64,
    /// Up to this time.
    pub to_ns: u64,
    /// A half of it alone.
    pub only: Option<ReplayOnly>,
    /// Commands that administer a server and are sent all the same, in capitals.
    pub include: Vec<String>,
    /// Names of commands that only read, in capitals: what a server says of them. MongoDB's servers are not asked.
    pub reads: Vec<String>,
    /// This worker, and the number of workers: each has every n-th connection.
    pub part: (u32, u32),
    /// Number of the database in which connections begin: the target's.
    pub database: u32,
    /// A number of this replay, the same for all its workers: sessions of then get ids that no other replay has.
    pub replay_number: u64,
    /// Relative times to live are divided by the speed.
    pub scale_ttl: bool,
    /// Where commands go, if the target is a cluster.
    pub cluster: Option<Arc<ClusterRules>>,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        ReplayOptions {
            speed: Some(1.0),
            pace: ReplayPace::Due,
            schedule: None,
            from_ns: 0,
            to_ns: u64::MAX,
            only: None,
            include: Vec::new(),
            reads: Vec::new(),
            part: (0, 1),
            database: 0,
            replay_number: 0,
            scale_ttl: false,
            cluster: None,
        }
    }
}

impl ReplayOptions {
    /// Returns whether a command that is not sent by itself was named, in capitals.
    pub(super) fn includes(&self, name: &str) -> bool {
        self.include.iter().any(|included| included == name)
    }

    /// Returns whether a connection is one of this worker's.
    pub(super) fn is_own(&self, connection: u32) -> bool {
        let (index, total) = self.part;
        connection % total == index
    }

    /// Returns whether a time of the recording is in the part that is replayed.
    pub(super) fn is_in_part(&self, at_ns: u64) -> bool {
        (self.from_ns..self.to_ns).contains(&at_ns)
    }

    /// When a command is due after the epoch, nanoseconds; `None` where commands have no times.
    pub(super) fn due_ns(&self, at_ns: u64) -> Option<u64> {
        let after = at_ns.saturating_sub(self.from_ns);
        self.speed.map(|speed| if speed == 1.0 { after } else { (after as f64 / speed) as u64 })
    }

    /// A pause of the recording, nanoseconds, as it is now.
    pub(super) fn pause_ns(&self, pause_ns: u64) -> u64 {
        (pause_ns as f64 / self.speed.unwrap_or(f64::INFINITY)) as u64
    }

    /// The most that a command may wait for data, milliseconds, which did for so many nanoseconds.
    pub(super) fn longest_wait_ms(&self, wait_ns: u64) -> u32 {
        let ms = self.pause_ns(wait_ns) as f64 * 2.0 / 1e6 + 1e3;
        ms.ceil() as u32
    }

    /// Returns whether commands are due at times that no reply moves.
    pub(super) fn has_times(&self) -> bool {
        self.speed.is_some() && self.pace == ReplayPace::Due
    }

    /// What decides when commands are due, by its name in summaries.
    pub(super) fn pace_name(&self) -> &'static str {
        match (self.speed, &self.schedule, self.pace) {
            (_, Some(_), _) => "rate",
            (None, ..) => "max",
            (.., ReplayPace::Due) => "due",
            (.., ReplayPace::Think) => "think",
        }
    }

    /// Length of what is sent, nanoseconds; `None` where commands have no times. `commands` are sent in `length_ns` of the
    /// recording.
    pub fn replayed_ns(&self, length_ns: u64, commands: u64) -> Option<u64> {
        let length = |of: f64| (of as u64).saturating_add(1);
        match &self.schedule {
            Some(schedule) => Some(length(commands as f64 * 1e9 / schedule.rate)),
            None if self.pace == ReplayPace::Think => None,
            None => self.speed.map(|speed| length(length_ns as f64 / speed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_scaled_from_the_part_s_begin_on() {
        let options =
            ReplayOptions { speed: Some(2.0), from_ns: 100, to_ns: 200, ..ReplayOptions::default() };
        assert_eq!((options.due_ns(100), options.due_ns(150)), (Some(0), Some(25)));
        assert_eq!([99, 100, 199, 200].map(|at| options.is_in_part(at)), [false, true, true, false]);
        assert_eq!(ReplayOptions { speed: None, ..options }.due_ns(150), None);
    }
}
