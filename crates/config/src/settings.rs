//! Settings: what each property is set to, and by whom.
//!
//! Layers, weakest first: defaults, files (and built-in workloads), the environment, the command line. Within a layer
//! the later wins; between layers the order of setting does not matter, so that `-p x=1 -P file` and `-P file -p x=1`
//! mean the same, as in YCSB. Every refusal of a value ([`BadSetting`]) says where the value came from.

use dyno_types::secret::{mask_value, remember_value};
use dyno_types::{RefusalCode, Refused, suggest};
use dyno_workload::ycsb::BadProperty;
use std::collections::BTreeMap;
use std::fmt;

/// Source of a value that each run draws anew: no difference between two runs of the same thing.
pub const DRAWN: &str = "drawn";

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Not set.
    Default,
    /// Not set; each run draws its own.
    Drawn,
    /// A property file.
    File {
        /// Path as typed.
        path: String,
        /// The line, from 1.
        line: u32,
    },
    /// A workload that is built in.
    BuiltIn {
        /// Name as typed, such as `workloads/workloada`.
        name: String,
        /// The line, from 1.
        line: u32,
    },
    /// An environment variable.
    Environment {
        /// Name.
        variable: String,
    },
    /// An option of the command line other than `-p`.
    Option {
        /// The option as typed, such as `-threads`.
        flag: String,
    },
    /// `-p key=value`.
    CommandLine,
}

impl Source {
    /// The layer: a value is replaced only by one of the same or a higher layer.
    fn layer(&self) -> u8 {
        match self {
            Source::Default => 0,
            Source::File { .. } | Source::BuiltIn { .. } => 1,
            Source::Environment { .. } => 2,
            // dyno draws only what the user has not chosen.
            Source::Option { .. } | Source::CommandLine | Source::Drawn => 3,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::Drawn => f.write_str(DRAWN),
            Source::File { path, line } => write!(f, "{path}:{line}"),
            Source::BuiltIn { name, line } => write!(f, "built-in {name}:{line}"),
            Source::Environment { variable } => write!(f, "${variable}"),
            Source::Option { flag } => f.write_str(flag),
            Source::CommandLine => f.write_str("-p"),
        }
    }
}

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The value as written.
    pub value: String,
    /// Source of the value.
    pub source: Source,
}

/// One line of the provenance list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// The property.
    pub key: String,
    /// Value, as the caller's mask left it.
    pub value: String,
    /// Where it comes from, as [`Source`] displays it.
    pub source: String,
}

/// All properties that are set, ordered by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropertySettings {
    entries: BTreeMap<String, Setting>,
}

impl PropertySettings {
    /// No settings.
    pub fn new() -> Self {
        PropertySettings::default()
    }

    /// Sets `key`, unless a higher layer has set it. Secrets in the value are hidden from now on.
    pub fn set_property(&mut self, key: &str, value: impl Into<String>, source: Source) {
        let old = self.entries.get(key);
        let value = value.into();
        remember_value(key, &value);
        if old.is_none_or(|old| old.source.layer() <= source.layer()) {
            self.entries.insert(key.to_owned(), Setting { value, source });
        }
    }

    /// The value of `key` and its source, if it is set.
    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.entries.get(key)
    }

    /// The value of `key`, if it is set.
    pub fn text_of(&self, key: &str) -> Option<&str> {
        self.entries.get(key).map(|setting| setting.value.as_str())
    }

    /// All settings in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.entries.iter().map(|(key, setting)| (key.as_str(), setting))
    }

    /// The settings as the lookup that `dyno-workload` reads properties from.
    pub fn property_lookup(&self) -> impl FnMut(&str) -> Option<String> + '_ {
        |key| self.text_of(key).map(str::to_owned)
    }

    /// The refusal of the value of `key`: what was `expected`.
    pub fn refuse_value(&self, key: &str, expected: impl Into<String>) -> BadSetting {
        let setting = self.get(key);
        BadSetting {
            key: key.to_owned(),
            value: setting.map(|s| mask_value(key, &s.value)),
            source: setting.map_or(Source::Default, |s| s.source.clone()),
            expected: expected.into(),
        }
    }

    /// Adds the source to a refusal of `dyno-workload`.
    pub fn blame_source(&self, bad: BadProperty) -> BadSetting {
        BadSetting {
            source: self.get(&bad.key).map_or(Source::Default, |s| s.source.clone()),
            value: Some(mask_value(&bad.key, &bad.value)),
            key: bad.key,
            expected: bad.expected,
        }
    }

    /// Lists what is set, and by which source, for the run directory; then the `defaults` (key, value) that are not set and not
    /// empty. `mask` hides secrets: [`mask_value`], or something stricter.
    pub fn list_provenance<'a>(
        &self,
        defaults: impl IntoIterator<Item = (&'a str, &'a str)>,
        mask: impl Fn(&str, &str) -> String,
    ) -> Vec<Provenance> {
        let line = |key: &str, value: &str, source: &Source| Provenance {
            key: key.to_owned(),
            value: mask(key, value),
            source: source.to_string(),
        };
        let mut list: Vec<Provenance> =
            self.iter().map(|(key, setting)| line(key, &setting.value, &setting.source)).collect();
        let unset = defaults.into_iter().filter(|(key, value)| self.get(key).is_none() && !value.is_empty());
        list.extend(unset.map(|(key, value)| line(key, value, &Source::Default)));
        list
    }
}

/// A setting that cannot be used. Secrets in its value are masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSetting {
    /// The property.
    pub key: String,
    /// Value; `None` if it is not set and has no default.
    pub value: Option<String>,
    /// Source of the value.
    pub source: Source,
    /// Form that is accepted.
    pub expected: String,
}

impl std::error::Error for BadSetting {}

impl From<BadSetting> for Refused {
    fn from(bad: BadSetting) -> Self {
        let code = if bad.value.is_some() { RefusalCode::BadValue } else { RefusalCode::Missing };
        let place = match &bad.source {
            Source::Option { flag } => flag,
            Source::File { path, .. } => path,
            _ => &bad.key,
        };
        Refused::new(code, place, bad.to_string())
    }
}

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, expected) = (&self.key, &self.expected);
        match (&self.value, &self.source) {
            (None, _) => write!(f, "{key} is not set: expected {expected}"),
            (Some(value), Source::Default) => write!(f, "{key}={value} (default): expected {expected}"),
            (Some(value), Source::CommandLine) => write!(f, "-p {key}={value}: expected {expected}"),
            (Some(value), source) => write!(f, "{source}: {key}={value}: expected {expected}"),
        }
    }
}

/// A note on a property that nothing reads.
pub fn unknown_property<'a>(key: &str, source: &Source, known: impl IntoIterator<Item = &'a str>) -> String {
    let hint = match MISNOMERS.iter().find(|(wrong, _)| wrong.eq_ignore_ascii_case(key)) {
        Some((_, right)) => format!("; did you mean {right}?"),
        None => suggest::hint(key, known),
    };
    format!("{source}: unknown property {key:?}, which has no effect{hint}")
}

/// Names that people are known to try, and what they look for.
const MISNOMERS: [(&str, &str); 8] = [
    ("threads", "threadcount"),
    ("operations", "operationcount"),
    ("records", "recordcount"),
    ("fieldsize", "fieldlength"),
    ("duration", "maxexecutiontime"),
    ("rate", "target"),
    ("throughput", "target"),
    ("distribution", "requestdistribution"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn file(line: u32) -> Source {
        Source::File { path: "workloads/workloada".into(), line }
    }

    #[test]
    fn files_lose_to_the_command_line_wherever_they_stand() {
        let flag = || Source::Option { flag: "-threads".into() };
        let mut s = PropertySettings::new();
        s.set_property("threadcount", "1", Source::CommandLine);
        s.set_property("threadcount", "2", file(1));
        assert_eq!(s.text_of("threadcount"), Some("1"));
        s.set_property("threadcount", "3", flag());
        s.set_property("threadcount", "4", Source::Environment { variable: "X".into() });
        assert_eq!(s.get("threadcount").unwrap(), &Setting { value: "3".into(), source: flag() });
        s.set_property("threadcount", "5", Source::CommandLine);
        assert_eq!(s.text_of("threadcount"), Some("5"));
        s.set_property("target", "1", Source::BuiltIn { name: "workloada".into(), line: 1 });
        s.set_property("target", "2", file(9));
        s.set_property("target", "0", Source::Default);
        assert_eq!(s.text_of("target"), Some("2"));
    }

    #[test]
    fn sources_read_well() {
        assert_eq!(file(12).to_string(), "workloads/workloada:12");
        assert_eq!(Source::CommandLine.to_string(), "-p");
        assert_eq!(Source::Option { flag: "-threads".into() }.to_string(), "-threads");
        assert_eq!(Source::Default.to_string(), "default");
        let built_in = Source::BuiltIn { name: "workloada".into(), line: 3 };
        assert_eq!(built_in.to_string(), "built-in workloada:3");
    }

    #[test]
    fn provenance_is_masked_and_ends_with_defaults() {
        let mut s = PropertySettings::new();
        s.set_property("redis.password", "hunter2", Source::CommandLine);
        s.set_property("redis.host", "h", file(2));
        let list = s.list_provenance([("redis.host", ""), ("target", "0"), ("label", "")], mask_value);
        let text: Vec<String> = list.iter().map(|p| format!("{}={} {}", p.key, p.value, p.source)).collect();
        assert_eq!(text, ["redis.host=h workloads/workloada:2", "redis.password=*** -p", "target=0 default"]);
    }

    #[test]
    fn refusals_name_key_value_and_source() {
        let mut s = PropertySettings::new();
        s.set_property("target", "x", file(4));
        s.set_property("redis.password", "hunter2", Source::CommandLine);
        let text = s.refuse_value("target", "a number").to_string();
        assert_eq!(text, "workloads/workloada:4: target=x: expected a number");
        assert_eq!(
            s.refuse_value("redis.host", "a host").to_string(),
            "redis.host is not set: expected a host"
        );
        assert!(!s.refuse_value("redis.password", "less").to_string().contains("hunter2"));
        let bad = BadProperty { key: "fieldcount".into(), value: "0".into(), expected: "1 or more".into() };
        assert_eq!(s.blame_source(bad).to_string(), "fieldcount=0 (default): expected 1 or more");
    }

    #[test]
    fn unknown_properties() {
        let known = ["operationcount", "delayedseries", "redis.host"];
        let note = |key| unknown_property(key, &file(3), known);
        assert!(note("delayedSeries").ends_with("did you mean delayedseries?"));
        assert!(note("operations").ends_with("did you mean operationcount?"));
        assert!(note("rediss.host").contains("workloads/workloada:3: unknown property \"rediss.host\""));
        assert!(note("zzz").ends_with("no effect"));
    }
}
