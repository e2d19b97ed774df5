//! Options, engines and defaults of mongod by version. Sources are the release notes and the manual of each version
//! (`mongodb.com/docs/v8.0/release-notes`, `.../reference/configuration-options`); a fact without a version holds from
//! 3.6 to 8.2. `net.maxIncomingConnections`, `net.unixDomainSocket.enabled`, `operationProfiling` and
//! `storage.journal.commitIntervalMs` are in all of them.

use std::fmt;

/// A version of mongod, as far as facts depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MongodVersion {
    /// The 8 of 8.2.1.
    pub major: u32,
    /// The 2 of 8.2.1.
    pub minor: u32,
}

impl MongodVersion {
    /// The version `major.minor`.
    pub const fn new(major: u32, minor: u32) -> Self {
        MongodVersion { major, minor }
    }

    /// Reads a version as programs, servers and images tell it: `db version v7.0.5`, `7.0.5`, `8`. The tag of an image may
    /// leave out the minor number: it is then the lowest that the tag can mean.
    pub fn parse(text: &str) -> Option<Self> {
        let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
        let mut parts = text.split(['v', ' ', ',', ':', '-']).find(is_number)?.split('.');
        let major = parts.next()?.parse().ok()?;
        let minor = parts.next().map_or(Some(0), |part| part.parse().ok())?;
        Some(MongodVersion { major, minor })
    }

    /// Returns whether the journal cannot be switched off: `storage.journal.enabled`, `--journal` and `--nojournal` are gone.
    pub fn always_journals(self) -> bool {
        self >= JOURNAL_ALWAYS_ON
    }

    /// Returns whether members of a replica set may run WiredTiger without a journal.
    pub fn allows_members_without_journal(self) -> bool {
        self < MEMBERS_NEED_JOURNAL
    }

    /// Returns whether the server adjusts the number of its tickets itself.
    pub fn adjusts_tickets(self) -> bool {
        self >= TICKETS_ADJUSTED
    }

    /// Returns whether the implicit write concern of replica sets is `majority`, as [`implicit_write_concern`] computes it.
    pub fn defaults_to_majority(self) -> bool {
        self >= MAJORITY_BY_DEFAULT
    }

    /// Returns whether a default write concern can be set for the cluster, by `setDefaultRWConcern`.
    pub fn has_cluster_defaults(self) -> bool {
        self >= CLUSTER_DEFAULTS
    }
}

impl fmt::Display for MongodVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// First version that always keeps its journal (manual, "Configuration File Settings and Command-Line Options Mapping").
pub const JOURNAL_ALWAYS_ON: MongodVersion = MongodVersion::new(6, 1);

/// First version whose replica-set members do not start with WiredTiger and no journal (release notes of 4.0, SERVER-30347).
pub const MEMBERS_NEED_JOURNAL: MongodVersion = MongodVersion::new(4, 0);

/// First version that adjusts its tickets (manual, "WiredTiger Storage Engine": dynamic concurrency by default from 7.0 on,
/// `storageEngineConcurrencyAdjustmentAlgorithm: throughputProbing`).
pub const TICKETS_ADJUSTED: MongodVersion = MongodVersion::new(7, 0);

/// First version whose implicit default write concern is `majority` (manual, "Default MongoDB Write Concerns").
pub const MAJORITY_BY_DEFAULT: MongodVersion = MongodVersion::new(5, 0);

/// First version with `setDefaultRWConcern` and `getDefaultRWConcern` (release notes of 4.4).
pub const CLUSTER_DEFAULTS: MongodVersion = MongodVersion::new(4, 4);

/// First version with the compressor zstd (release notes of 4.2).
pub const ZSTD: MongodVersion = MongodVersion::new(4, 2);

/// The `w` of writes that name none, in a set of a version that [`MongodVersion::defaults_to_majority`] and without a default
/// of the cluster: `1` if there are arbiters and no more members with data than voters in a majority (manual, "Default MongoDB
/// Write Concerns").
pub fn implicit_write_concern(arbiters: usize, others: usize, voters: usize) -> &'static str {
    let majority = voters / 2 + 1;
    if arbiters > 0 && others <= majority { "1" } else { "majority" }
}

/// When a setting, an engine or a parameter came and went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Name; of a key, the keys below it share its history.
    pub name: &'static str,
    /// First version that has it; `None` if all known ones have.
    pub since: Option<MongodVersion>,
    /// First version without it; `None` if the newest has it.
    pub until: Option<MongodVersion>,
}

impl History {
    const fn since(name: &'static str, version: MongodVersion) -> Self {
        History { name, since: Some(version), until: None }
    }

    const fn until(name: &'static str, version: MongodVersion) -> Self {
        History { name, since: None, until: Some(version) }
    }

    /// Returns why a version does not have it, or `None` if it does.
    pub fn describe_absence(&self, version: MongodVersion) -> Option<String> {
        match (self.since, self.until) {
            (Some(since), _) if version < since => Some(format!("came with mongod {since}")),
            (_, Some(until)) if version >= until => Some(format!("was removed in mongod {until}")),
            _ => None,
        }
    }
}

/// Storage engines of which versions decide. `wiredTiger` is in all; `inMemory` depends on the edition, and `rocksdb` on the
/// build. Release notes of 4.2: MMAPv1 is removed.
const ENGINES: [History; 1] = [History::until("mmapv1", MongodVersion::new(4, 2))];

/// Keys of `mongod.conf` that came or went (manual, "Configuration File Settings and Command-Line Options Mapping"; parameters:
/// manual, "mongod Parameters", and SERVER-95141, which shows the names of the storage engine's tickets in 6.0 beside the older
/// `wiredTigerConcurrentReadTransactions`, still accepted in 7.0).
const KEYS: [History; 10] = [
    History::until("storage.journal.enabled", JOURNAL_ALWAYS_ON),
    History::until("storage.mmapv1", MongodVersion::new(4, 2)),
    History::until("storage.repairPath", MongodVersion::new(4, 2)),
    History::until("replication.secondaryIndexPrefetch", MongodVersion::new(4, 2)),
    History::until("storage.indexBuildRetry", MongodVersion::new(4, 4)),
    // With it goes the choice of `adaptive`.
    History::until("net.serviceExecutor", MongodVersion::new(5, 0)),
    History::since("setParameter.storageEngineConcurrentReadTransactions", MongodVersion::new(6, 0)),
    History::since("setParameter.storageEngineConcurrentWriteTransactions", MongodVersion::new(6, 0)),
    History::since("setParameter.storageEngineConcurrencyAdjustmentAlgorithm", TICKETS_ADJUSTED),
    History::since("operationProfiling.filter", MongodVersion::new(4, 4)),
];

/// Returns why a version does not have a storage engine, as far as the version decides that.
pub fn engine_absence(engine: &str, version: MongodVersion) -> Option<String> {
    ENGINES.iter().find(|history| history.name == engine)?.describe_absence(version)
}

/// Returns why a version does not have a key of `mongod.conf`, as far as that is known.
pub fn key_absence(key: &str, version: MongodVersion) -> Option<String> {
    let stands_for =
        |name: &str| key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    KEYS.iter().find(|history| stands_for(history.name))?.describe_absence(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The versions that the facts were looked up for.
    const KNOWN: [(u32, u32); 9] = [(3, 6), (4, 0), (4, 2), (4, 4), (5, 0), (6, 0), (7, 0), (8, 0), (8, 2)];

    fn holds(of: impl Fn(MongodVersion) -> bool) -> Vec<String> {
        let all = KNOWN.into_iter().map(|(major, minor)| MongodVersion::new(major, minor));
        all.filter(|version| of(*version)).map(|version| version.to_string()).collect()
    }

    #[test]
    fn versions_are_read_as_programs_servers_and_images_tell_them() {
        let read = |text: &str| MongodVersion::parse(text).map(|version| version.to_string());
        assert_eq!(read("db version v3.6.8").as_deref(), Some("3.6"));
        assert_eq!(read("8.2.1-rc0").as_deref(), Some("8.2"));
        assert_eq!((read("8").as_deref(), read("7.0-ubi9").as_deref()), (Some("8.0"), Some("7.0")));
        assert_eq!((read("unknown"), read(""), read("latest"), read("7.x")), (None, None, None, None));
    }

    #[test]
    fn each_fact_begins_with_its_version() {
        assert_eq!(holds(MongodVersion::always_journals), ["7.0", "8.0", "8.2"]);
        assert_eq!(holds(MongodVersion::allows_members_without_journal), ["3.6"]);
        assert_eq!(holds(MongodVersion::adjusts_tickets), ["7.0", "8.0", "8.2"]);
        assert_eq!(holds(MongodVersion::defaults_to_majority), ["5.0", "6.0", "7.0", "8.0", "8.2"]);
        assert_eq!(holds(MongodVersion::has_cluster_defaults), ["4.4", "5.0", "6.0", "7.0", "8.0", "8.2"]);
        assert_eq!(holds(|version| engine_absence("mmapv1", version).is_none()), ["3.6", "4.0"]);
        assert_eq!(holds(|version| engine_absence("wiredTiger", version).is_none()).len(), KNOWN.len());
        assert_eq!(holds(|version| key_absence("net.serviceExecutor", version).is_none()).len(), 4);
        assert_eq!(
            holds(|version| key_absence("storage.mmapv1.smallFiles", version).is_none()),
            ["3.6", "4.0"]
        );
        assert_eq!(holds(|version| key_absence("storage.mmapv1s", version).is_none()).len(), KNOWN.len());
        let algorithm = "setParameter.storageEngineConcurrencyAdjustmentAlgorithm";
        assert_eq!(holds(|version| key_absence(algorithm, version).is_none()), ["7.0", "8.0", "8.2"]);
    }

    #[test]
    fn the_implicit_write_concern_follows_the_manuals_examples() {
        assert_eq!(implicit_write_concern(1, 2, 3), "1");
        assert_eq!(implicit_write_concern(1, 4, 5), "majority");
        assert_eq!(implicit_write_concern(0, 3, 3), "majority");
    }
}
