//! Which members of a replica set are read from (MongoDB's "Server Selection" and "Max Staleness" specifications).

use super::description::{ServerDescription, ServerType, Tags};
use super::topology::{Topology, TopologyType};
use dyno_types::bson::{self, kind};
use dyno_types::{RefusalCode, Refused};

/// Which members of a replica set are read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadPreference {
    /// The primary alone.
    #[default]
    Primary,
    /// The primary, or a secondary where there is none.
    PrimaryPreferred,
    /// Secondaries alone.
    Secondary,
    /// Secondaries, or the primary where there is none.
    SecondaryPreferred,
    /// Any member.
    Nearest,
}

impl ReadPreference {
    pub(super) const NAMES: [(&str, ReadPreference); 5] = [
        ("primary", ReadPreference::Primary),
        ("primaryPreferred", ReadPreference::PrimaryPreferred),
        ("secondary", ReadPreference::Secondary),
        ("secondaryPreferred", ReadPreference::SecondaryPreferred),
        ("nearest", ReadPreference::Nearest),
    ];

    /// Name on the wire.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, mode)| *mode == self).map_or("primary", |(name, _)| name)
    }
}

/// Interval at which a primary that is idle writes to its log, seconds.
const IDLE_WRITE_S: u64 = 10;
/// Least bound of staleness, seconds.
const LEAST_STALENESS_S: u64 = 90;

/// Conditions that narrow the choice of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// `readPreferenceTags`: the first of these that any member has counts.
    pub tags: Vec<Tags>,
    /// `maxStalenessSeconds`.
    pub staleness_s: Option<u64>,
    /// `heartbeatFrequencyMS`: how often members are asked what they are.
    pub heartbeat_ms: u64,
    /// `localThresholdMS`: how much farther than the nearest a member may be.
    pub threshold_ms: u64,
    /// `serverSelectionTimeoutMS`: how long a member is waited for before an operation is sent again.
    pub patience_ms: u64,
}

impl Default for Selection {
    fn default() -> Self {
        Selection {
            tags: Vec::new(),
            staleness_s: None,
            heartbeat_ms: 10_000,
            threshold_ms: 15,
            patience_ms: 5_000,
        }
    }
}

impl Selection {
    /// Interval at which members are asked what they are, nanoseconds.
    pub(super) fn heartbeat_ns(&self) -> u64 {
        self.heartbeat_ms.saturating_mul(1_000_000)
    }

    /// Time that a member is waited for, nanoseconds.
    pub(super) fn patience_ns(&self) -> u64 {
        self.patience_ms.saturating_mul(1_000_000)
    }

    /// Takes one of the options, whose name is in lower case; false if it is none of them.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<bool, &'static str> {
        let number = |least: u64, expected| value.parse().ok().filter(|n| *n >= least).ok_or(expected);
        match key {
            "readpreferencetags" => self.tags.push(tags(value).ok_or("name:value,name:value")?),
            "maxstalenessseconds" if value == "-1" => self.staleness_s = None,
            "maxstalenessseconds" => {
                self.staleness_s = Some(number(1, "seconds, at least 90, or -1 for no bound")?)
            }
            "heartbeatfrequencyms" => self.heartbeat_ms = number(500, "milliseconds, at least 500")?,
            "localthresholdms" => self.threshold_ms = number(0, "milliseconds")?,
            "serverselectiontimeoutms" => self.patience_ms = number(1, "milliseconds, at least 1")?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Refuses what the mode does not go with.
    pub(super) fn check(&self, mode: ReadPreference) -> Result<(), Refused> {
        if mode == ReadPreference::Primary {
            if self.tags.iter().any(|tags| !tags.is_empty()) {
                return Err(Refused::new(
                    RefusalCode::Conflict,
                    "readPreferenceTags",
                    "readPreferenceTags choose among secondaries: not with readPreference=primary",
                ));
            }
            if self.staleness_s.is_some() {
                return Err(Refused::new(
                    RefusalCode::Conflict,
                    "maxStalenessSeconds",
                    "maxStalenessSeconds is a bound for secondaries: not with readPreference=primary",
                ));
            }
        }
        let least = LEAST_STALENESS_S.max((self.heartbeat_ms + IDLE_WRITE_S * 1_000).div_ceil(1_000));
        match self.staleness_s {
            Some(seconds) if seconds < least => Err(Refused::new(
                RefusalCode::BadValue,
                "maxStalenessSeconds",
                format!(
                    "maxStalenessSeconds={seconds}: at least {least} here (heartbeatFrequencyMS and 10 s)"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Appends `$readPreference`.
    pub(super) fn put(&self, mode: ReadPreference, out: &mut Vec<u8>) {
        bson::put_head(out, kind::DOCUMENT, "$readPreference");
        let at = bson::open(out);
        bson::put_string(out, "mode", mode.name());
        if !self.tags.is_empty() {
            bson::put_head(out, kind::ARRAY, "tags");
            let list = bson::open(out);
            for (number, tags) in self.tags.iter().enumerate() {
                bson::put_item_head(out, kind::DOCUMENT, number as u32);
                let set = bson::open(out);
                tags.iter().for_each(|(name, value)| bson::put_string(out, name, value));
                bson::close(out, set);
            }
            bson::close(out, list);
        }
        match self.staleness_s.map(|seconds| (i32::try_from(seconds), seconds)) {
            Some((Ok(seconds), _)) => bson::put_int32(out, "maxStalenessSeconds", seconds),
            Some((Err(_), seconds)) => bson::put_int64(out, "maxStalenessSeconds", seconds as i64),
            None => {}
        }
        bson::close(out, at);
    }
}

fn tags(text: &str) -> Option<Tags> {
    if text.is_empty() {
        return Some(Tags::new());
    }
    let pair = |one: &str| one.split_once(':').map(|(name, value)| (name.to_owned(), value.to_owned()));
    text.split(',').map(pair).collect()
}

/// The servers that suit, by number, wherever they are. `writes`: for a command that changes data. `deprioritized`: servers
/// that are taken only where no other suits.
pub fn suitable_servers(
    topology: &Topology,
    writes: bool,
    mode: ReadPreference,
    selection: &Selection,
    deprioritized: &[u16],
) -> Vec<u16> {
    let all = of_kind(topology, |kind| !kind.is_unknown());
    let preferred = all.iter().copied().filter(|at| !deprioritized.contains(at)).collect();
    let found = among(topology, preferred, writes, mode, selection);
    if found.is_empty() && !deprioritized.is_empty() {
        return among(topology, all, writes, mode, selection);
    }
    found
}

/// The nearest of these servers, and those that are at most `localThresholdMS` farther.
pub fn nearest_servers(topology: &Topology, suitable: Vec<u16>, selection: &Selection) -> Vec<u16> {
    let found_any = !suitable.is_empty();
    let rtt_us = |at: u16| description(topology, at).rtt_us;
    // One that was not measured yet may be near.
    let least = suitable.iter().filter_map(|at| rtt_us(*at)).min().unwrap_or(0);
    let most = least.saturating_add(selection.threshold_ms.saturating_mul(1_000));
    let near: Vec<u16> =
        suitable.into_iter().filter(|at| rtt_us(*at).is_none_or(|rtt_us| rtt_us <= most)).collect();
    debug_assert_eq!(!near.is_empty(), found_any, "of some servers one is the nearest");
    near
}

fn description(topology: &Topology, at: u16) -> &ServerDescription {
    &topology.all_servers()[usize::from(at)].description
}

fn of_kind(topology: &Topology, is: impl Fn(ServerType) -> bool) -> Vec<u16> {
    let all = topology.all_servers().iter().enumerate();
    all.filter(|(_, server)| !server.removed && is(server.description.kind))
        .map(|(at, _)| at as u16)
        .collect()
}

fn among(
    topology: &Topology,
    servers: Vec<u16>,
    writes: bool,
    mode: ReadPreference,
    selection: &Selection,
) -> Vec<u16> {
    use ServerType::{Mongos, RsPrimary, RsSecondary};
    let of = |kind: ServerType| -> Vec<u16> {
        servers.iter().copied().filter(|at| description(topology, *at).kind == kind).collect()
    };
    match topology.topology_type() {
        TopologyType::Unknown => return Vec::new(),
        TopologyType::Single | TopologyType::LoadBalanced => return servers,
        TopologyType::Sharded => return of(Mongos),
        TopologyType::ReplicaSetNoPrimary | TopologyType::ReplicaSetWithPrimary => {}
    }
    let primary = of(RsPrimary);
    let secondaries = || narrowed(topology, of(RsSecondary), selection);
    match mode {
        _ if writes => primary,
        ReadPreference::Primary => primary,
        ReadPreference::PrimaryPreferred if primary.is_empty() => secondaries(),
        ReadPreference::PrimaryPreferred => primary,
        ReadPreference::Secondary => secondaries(),
        ReadPreference::SecondaryPreferred => {
            let found = secondaries();
            if found.is_empty() { primary } else { found }
        }
        ReadPreference::Nearest => {
            let bears_data = |at: &u16| matches!(description(topology, *at).kind, RsPrimary | RsSecondary);
            narrowed(topology, servers.iter().copied().filter(bears_data).collect(), selection)
        }
    }
}

/// Servers that are fresh enough and have the tags.
fn narrowed(topology: &Topology, mut chosen: Vec<u16>, selection: &Selection) -> Vec<u16> {
    if let Some(most_s) = selection.staleness_s {
        let most_ms = i64::try_from(most_s.saturating_mul(1_000)).unwrap_or(i64::MAX);
        chosen.retain(|at| staleness_ms(topology, description(topology, *at), selection) <= most_ms);
    }
    if selection.tags.is_empty() {
        return chosen;
    }
    let has = |at: u16, tags: &Tags| tags.iter().all(|tag| description(topology, at).tags.contains(tag));
    let sets = selection.tags.iter().map(|tags| chosen.iter().copied().filter(|at| has(*at, tags)).collect());
    sets.into_iter().find(|found: &Vec<u16>| !found.is_empty()).unwrap_or_default()
}

/// Time that a member is behind, as far as can be told, milliseconds.
fn staleness_ms(topology: &Topology, member: &ServerDescription, selection: &Selection) -> i64 {
    let heartbeat = i64::try_from(selection.heartbeat_ms).unwrap_or(i64::MAX);
    let all =
        |kind| of_kind(topology, move |other| other == kind).into_iter().map(|at| description(topology, at));
    let behind = match all(ServerType::RsPrimary).next() {
        _ if member.kind == ServerType::RsPrimary => return 0,
        Some(primary) => {
            let age = |one: &ServerDescription| one.asked_ms.saturating_sub(one.wrote_ms);
            age(member).saturating_sub(age(primary))
        }
        None => {
            let newest =
                all(ServerType::RsSecondary).map(|other| other.wrote_ms).max().unwrap_or(member.wrote_ms);
            newest.saturating_sub(member.wrote_ms)
        }
    };
    behind.saturating_add(heartbeat)
}

#[cfg(test)]
mod tests {
    use super::super::topology::TopologyServer;
    use super::*;

    #[test]
    fn members_that_are_farther_than_the_nearest_are_left_out() {
        let server = |kind, rtt_ms: u64| TopologyServer {
            description: ServerDescription {
                kind,
                rtt_us: Some(rtt_ms * 1_000),
                ..ServerDescription::default()
            },
            ..TopologyServer::default()
        };
        let (primary, secondary) = (ServerType::RsPrimary, ServerType::RsSecondary);
        let servers =
            vec![server(primary, 100), server(secondary, 20), server(secondary, 35), server(secondary, 36)];
        let topology = Topology::of_servers(TopologyType::ReplicaSetWithPrimary, servers);
        let chosen = |mode, threshold_ms| {
            let selection = Selection { threshold_ms, ..Selection::default() };
            nearest_servers(&topology, suitable_servers(&topology, false, mode, &selection, &[]), &selection)
        };
        // 15 ms beyond the nearest of those that suit.
        assert_eq!(chosen(ReadPreference::Secondary, 15), [1, 2]);
        assert_eq!(chosen(ReadPreference::Nearest, 15), [1, 2]);
        assert_eq!(chosen(ReadPreference::Primary, 15), [0]);
        assert_eq!(chosen(ReadPreference::Nearest, 100), [0, 1, 2, 3]);
    }

    #[test]
    fn options_and_what_they_do_not_go_with() {
        let read = |options: &str| super::super::MongoOptions::from_uri(&format!("mongodb://h/?{options}"));
        let good = read(
            "readPreference=nearest&readPreferenceTags=dc:ny,rack:1&readPreferenceTags=&maxStalenessSeconds=120",
        );
        let selection = good.unwrap().selection;
        let tag = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(selection.tags, [vec![tag("dc", "ny"), tag("rack", "1")], vec![]]);
        assert_eq!(selection.staleness_s, Some(120));
        assert!(read("readPreference=primary&maxStalenessSeconds=-1").is_ok());
        assert!(read("readPreferenceTags=").is_ok());
        for (options, message) in [
            ("maxStalenessSeconds=120", "readPreference=primary"),
            ("readPreferenceTags=dc:ny", "readPreference=primary"),
            ("readPreference=nearest&maxStalenessSeconds=89", "at least 90"),
            ("readPreference=nearest&maxStalenessSeconds=0", "at least 90"),
            ("readPreference=nearest&maxStalenessSeconds=90&heartbeatFrequencyMS=80001", "at least 91"),
            ("readPreference=nearest&maxStalenessSeconds=90&heartbeatFrequencyMS=120000", "at least 130"),
            ("readPreference=nearest&readPreferenceTags=dc", "name:value"),
            ("heartbeatFrequencyMS=499", "at least 500"),
        ] {
            let why = read(options).unwrap_err().to_string();
            assert!(why.contains(message), "{options}: {why}");
        }
    }
}
