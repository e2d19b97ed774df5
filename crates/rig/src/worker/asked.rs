//! What the controller itself knows and asks of a crew's targets.

use crate::mongo::MongoAdmin;
use crate::probe::NEVER;
use crate::target::Target;
use dyno_record::Totals;
use dyno_rundir::schema::CollectionFigures;
use std::sync::OnceLock;

/// What one worker did in the last phase, or the workers of one target together.
#[derive(Clone, Debug)]
pub struct Part {
    /// Number of the target, from 0.
    pub instance: usize,
    /// Users.
    pub users: usize,
    /// Everything measured.
    pub totals: Totals,
    /// Length without the warm-up, nanoseconds.
    pub measured_ns: u64,
}

/// Targets whose collections the controller asks for itself, with what it needs for that once it is known.
#[derive(Default)]
pub struct Asked(Vec<(Target, OnceLock<Option<MongoAdmin>>)>);

impl Asked {
    /// Of these, in the order of the pairs.
    pub fn of(targets: Vec<Target>) -> Self {
        Asked(targets.into_iter().map(|target| (target, OnceLock::new())).collect())
    }

    /// What they say now; of several the names begin with the pair's number.
    pub(super) fn collections(&self) -> CollectionFigures {
        let mut all = CollectionFigures::new();
        for (at, (target, admin)) in self.0.iter().enumerate() {
            // Workers speak to it: that it does not answer here is an accident, and its figures are absent.
            let admin = admin.get_or_init(|| target.look(NEVER).ok()?.mongo_admin());
            let named = |name: String| match self.0.len() {
                1 => name,
                _ => format!("pair {}: {name}", at + 1),
            };
            let found = admin.as_ref().map(MongoAdmin::collections).unwrap_or_default();
            all.extend(found.into_iter().map(|(name, figures)| (named(name), figures)));
        }
        all
    }
}
