//! Which members of a replica set are read from (MongoDB's "Server Selection" and "Max Staleness" specifications).

use dyno_types::Refused;
use dyno_types::bson::{self, kind};

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

/// Names and values that a member has, or is asked to have.
pub type Tags = Vec<(String, String)>;

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
                return Err(Refused(
                    "readPreferenceTags choose among secondaries: not with readPreference=primary".into(),
                ));
            }
            if self.staleness_s.is_some() {
                return Err(Refused(
                    "maxStalenessSeconds is a bound for secondaries: not with readPreference=primary".into(),
                ));
            }
        }
        let least = LEAST_STALENESS_S.max((self.heartbeat_ms + IDLE_WRITE_S * 1_000).div_ceil(1_000));
        match self.staleness_s {
            Some(seconds) if seconds < least => Err(Refused(format!(
                "maxStalenessSeconds={seconds}: at least {least} here (heartbeatFrequencyMS and 10 s)"
            ))),
            _ => Ok(()),
        }
    }

    /// Appends `$readPreference`.
    pub(super) fn put(&self, mode: ReadPreference, out: &mut Vec<u8>) {
        bson::head(out, kind::DOCUMENT, "$readPreference");
        let at = bson::open(out);
        bson::string(out, "mode", mode.name());
        if !self.tags.is_empty() {
            bson::head(out, kind::ARRAY, "tags");
            let list = bson::open(out);
            for (number, tags) in self.tags.iter().enumerate() {
                bson::item(out, kind::DOCUMENT, number as u32);
                let set = bson::open(out);
                tags.iter().for_each(|(name, value)| bson::string(out, name, value));
                bson::close(out, set);
            }
            bson::close(out, list);
        }
        match self.staleness_s.map(|seconds| (i32::try_from(seconds), seconds)) {
            Some((Ok(seconds), _)) => bson::int32(out, "maxStalenessSeconds", seconds),
            Some((Err(_), seconds)) => bson::int64(out, "maxStalenessSeconds", seconds as i64),
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

/// Role of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Takes writes.
    Primary,
    /// Can be read from.
    Secondary,
    /// Answers, but is neither: an arbiter, a member that recovers or belongs to another set.
    Other,
    /// Has not answered, or what it said holds no more.
    #[default]
    Unknown,
}

/// A member as it was when last asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Role of the member.
    pub role: Role,
    /// Tags.
    pub tags: Tags,
    /// Time of its last write, by the servers' clock, milliseconds.
    pub wrote_ms: i64,
    /// When it was asked, by the client's clock, milliseconds.
    pub asked_ms: i64,
    /// Time of the way to it and back, microseconds.
    pub away_us: u64,
}

/// The members that may be read from, by number.
pub fn eligible(members: &[Member], mode: ReadPreference, selection: &Selection) -> Vec<u16> {
    let of = |role: Role| move |at: &u16| members[usize::from(*at)].role == role;
    let all = || 0..members.len() as u16;
    let primary: Vec<u16> = all().filter(of(Role::Primary)).collect();
    let secondaries = || narrowed(members, all().filter(of(Role::Secondary)).collect(), selection);
    let chosen = match mode {
        ReadPreference::Primary => primary,
        ReadPreference::PrimaryPreferred if primary.is_empty() => secondaries(),
        ReadPreference::PrimaryPreferred => primary,
        ReadPreference::Secondary => secondaries(),
        ReadPreference::SecondaryPreferred => {
            let found = secondaries();
            if found.is_empty() { primary } else { found }
        }
        ReadPreference::Nearest => {
            let both =
                all().filter(|at| matches!(members[usize::from(*at)].role, Role::Primary | Role::Secondary));
            narrowed(members, both.collect(), selection)
        }
    };
    let nearest = chosen.iter().map(|at| members[usize::from(*at)].away_us).min().unwrap_or(0);
    let farthest = nearest.saturating_add(selection.threshold_ms.saturating_mul(1_000));
    chosen.into_iter().filter(|at| members[usize::from(*at)].away_us <= farthest).collect()
}

/// Members that are fresh enough and have the tags.
fn narrowed(members: &[Member], mut chosen: Vec<u16>, selection: &Selection) -> Vec<u16> {
    if let Some(most_s) = selection.staleness_s {
        let most_ms = i64::try_from(most_s.saturating_mul(1_000)).unwrap_or(i64::MAX);
        chosen.retain(|at| staleness_ms(members, &members[usize::from(*at)], selection) <= most_ms);
    }
    let has = |at: u16, tags: &Tags| tags.iter().all(|tag| members[usize::from(at)].tags.contains(tag));
    if selection.tags.is_empty() {
        return chosen;
    }
    let sets = selection.tags.iter().map(|tags| chosen.iter().copied().filter(|at| has(*at, tags)).collect());
    sets.into_iter().find(|found: &Vec<u16>| !found.is_empty()).unwrap_or_default()
}

/// Time that a member is behind, as far as can be told, milliseconds.
fn staleness_ms(members: &[Member], member: &Member, selection: &Selection) -> i64 {
    let heartbeat = i64::try_from(selection.heartbeat_ms).unwrap_or(i64::MAX);
    let behind = match members.iter().find(|other| other.role == Role::Primary) {
        _ if member.role == Role::Primary => return 0,
        Some(primary) => {
            let age = |one: &Member| one.asked_ms.saturating_sub(one.wrote_ms);
            age(member).saturating_sub(age(primary))
        }
        None => {
            let secondaries = members.iter().filter(|other| other.role == Role::Secondary);
            let newest = secondaries.map(|other| other.wrote_ms).max().unwrap_or(member.wrote_ms);
            newest.saturating_sub(member.wrote_ms)
        }
    };
    behind.saturating_add(heartbeat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ReadPreference::{Nearest, Primary, PrimaryPreferred, Secondary, SecondaryPreferred};

    fn member(role: Role, tags: &str, away_ms: u64) -> Member {
        Member { role, tags: super::tags(tags).unwrap(), away_us: away_ms * 1_000, ..Member::default() }
    }

    fn chosen(members: &[Member], mode: ReadPreference, tags: &[&str]) -> Vec<u16> {
        let tags = tags.iter().map(|text| super::tags(text).unwrap()).collect();
        eligible(members, mode, &Selection { tags, ..Selection::default() })
    }

    /// A primary in ny, secondaries in ny, sf and sf.
    fn set() -> Vec<Member> {
        vec![
            member(Role::Primary, "dc:ny,rack:1", 5),
            member(Role::Secondary, "dc:ny,rack:2", 5),
            member(Role::Secondary, "dc:sf,rack:1", 6),
            member(Role::Secondary, "dc:sf,rack:2", 7),
            member(Role::Other, "dc:ny", 1),
            member(Role::Unknown, "dc:ny", 0),
        ]
    }

    #[test]
    fn modes_with_a_primary() {
        let set = set();
        for (mode, tags, expected) in [
            (Primary, &[][..], vec![0]),
            (PrimaryPreferred, &[], vec![0]),
            // The tags are for secondaries: the primary is there.
            (PrimaryPreferred, &["dc:sf"], vec![0]),
            (Secondary, &[], vec![1, 2, 3]),
            (Secondary, &["dc:sf"], vec![2, 3]),
            (Secondary, &["dc:sf,rack:2"], vec![3]),
            // The first that any member has.
            (Secondary, &["dc:tokyo", "rack:2", "dc:sf"], vec![1, 3]),
            (Secondary, &["dc:tokyo"], vec![]),
            // An empty set of tags is any member's.
            (Secondary, &["dc:tokyo", ""], vec![1, 2, 3]),
            (SecondaryPreferred, &[], vec![1, 2, 3]),
            (SecondaryPreferred, &["dc:sf"], vec![2, 3]),
            // No secondary has them: the primary, whatever its tags.
            (SecondaryPreferred, &["dc:tokyo"], vec![0]),
            (Nearest, &[], vec![0, 1, 2, 3]),
            (Nearest, &["dc:ny"], vec![0, 1]),
            (Nearest, &["dc:tokyo"], vec![]),
        ] {
            assert_eq!(chosen(&set, mode, tags), expected, "{mode:?} {tags:?}");
        }
    }

    #[test]
    fn modes_without_a_primary_or_without_secondaries() {
        let mut none = set();
        none[0].role = Role::Unknown;
        assert_eq!(chosen(&none, Primary, &[]), [0; 0]);
        assert_eq!(chosen(&none, PrimaryPreferred, &[]), [1, 2, 3]);
        assert_eq!(chosen(&none, PrimaryPreferred, &["dc:sf"]), [2, 3]);
        assert_eq!(chosen(&none, SecondaryPreferred, &["dc:tokyo"]), [0; 0]);
        let alone = [member(Role::Primary, "", 1)];
        assert_eq!(chosen(&alone, Secondary, &[]), [0; 0]);
        assert_eq!(chosen(&alone, SecondaryPreferred, &[]), [0]);
        assert_eq!(chosen(&alone, Nearest, &[]), [0]);
    }

    #[test]
    fn members_that_are_farther_than_the_nearest_are_left_out() {
        let far = [
            member(Role::Primary, "", 100),
            member(Role::Secondary, "", 20),
            member(Role::Secondary, "", 35),
            member(Role::Secondary, "", 36),
        ];
        // 15 ms beyond the nearest of those that are eligible.
        assert_eq!(chosen(&far, Secondary, &[]), [1, 2]);
        assert_eq!(chosen(&far, Nearest, &[]), [1, 2]);
        assert_eq!(chosen(&far, Primary, &[]), [0]);
        let all = Selection { threshold_ms: 100, ..Selection::default() };
        assert_eq!(eligible(&far, Nearest, &all), [0, 1, 2, 3]);
    }

    #[test]
    fn staleness_by_the_primary_and_by_the_newest_secondary() {
        let at = |role, wrote_s: i64, asked_s: i64| Member {
            role,
            wrote_ms: wrote_s * 1_000,
            asked_ms: asked_s * 1_000,
            ..Member::default()
        };
        let within = |members: &[Member], mode, seconds| {
            let selection = Selection { staleness_s: Some(seconds), ..Selection::default() };
            eligible(members, mode, &selection)
        };
        // (asked - wrote) - (primary's asked - wrote) + heartbeat of 10 s: 30 - 0 + 10, 110 - 0 + 10, and one that was asked
        // 100 s later without being behind.
        let members = [
            at(Role::Primary, 1_000, 0),
            at(Role::Secondary, 970, 0),
            at(Role::Secondary, 890, 0),
            at(Role::Secondary, 1_100, 100),
        ];
        assert_eq!(within(&members, Secondary, 90), [1, 3]);
        assert_eq!(within(&members, Secondary, 119), [1, 3]);
        assert_eq!(within(&members, Secondary, 120), [1, 2, 3]);
        // The primary is never stale.
        assert_eq!(within(&members, Nearest, 90), [0, 1, 3]);
        // Without a primary: newest write - own write + heartbeat.
        let orphans =
            [at(Role::Secondary, 1_000, 0), at(Role::Secondary, 920, 0), at(Role::Secondary, 919, 50)];
        assert_eq!(within(&orphans, Secondary, 90), [0, 1]);
        assert_eq!(within(&orphans, SecondaryPreferred, 91), [0, 1, 2]);
        // None is fresh enough: the primary where it may be.
        let old = [at(Role::Primary, 1_000, 0), at(Role::Secondary, 100, 0)];
        assert_eq!(within(&old, SecondaryPreferred, 90), [0]);
        assert_eq!(within(&old, Secondary, 90), [0; 0]);
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
        for (options, words) in [
            ("maxStalenessSeconds=120", "readPreference=primary"),
            ("readPreferenceTags=dc:ny", "readPreference=primary"),
            ("readPreference=nearest&maxStalenessSeconds=89", "at least 90"),
            ("readPreference=nearest&maxStalenessSeconds=0", "at least 90"),
            ("readPreference=nearest&maxStalenessSeconds=90&heartbeatFrequencyMS=80001", "at least 91"),
            ("readPreference=nearest&maxStalenessSeconds=90&heartbeatFrequencyMS=120000", "at least 130"),
            ("readPreference=nearest&readPreferenceTags=dc", "name:value"),
            ("heartbeatFrequencyMS=499", "at least 500"),
        ] {
            let why = read(options).unwrap_err().0;
            assert!(why.contains(words), "{options}: {why}");
        }
    }
}
