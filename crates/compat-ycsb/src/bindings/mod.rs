//! Bindings: which database a benchmark is for, and what the settings say about it.
//!
//! A [`Binding`] is chosen by name or by YCSB's class name; [`resolve`] turns the settings that belong to it into a
//! [`BindingTarget`], with every value checked. `redis` reads the properties of Redis, `stores` those of the
//! embedded stores and the mock, whose target is a URI for `dyno-db-embedded`.

pub mod memcached;
pub mod mongodb;
pub mod redis;
pub mod stores;
mod target;

pub use target::BindingTarget;

use crate::property::DescribedProperty;
use dyno_config::settings::{BadSetting, PropertySettings, Source};
use dyno_types::suggest;

/// The databases that can be named on YCSB's command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Redis and what speaks its protocol.
    Redis,
    /// MongoDB and what speaks its protocol.
    Mongo,
    /// The same under the name of YCSB's other binding.
    MongoAsync,
    /// memcached.
    Memcached,
    /// YCSB's mock.
    Basic,
    /// YCSB's mock for time series.
    BasicTs,
    /// SQLite.
    Sqlite,
    /// redb.
    Redb,
    /// fjall.
    Fjall,
    /// LMDB.
    Lmdb,
    /// RocksDB.
    Rocksdb,
    /// WiredTiger.
    Wiredtiger,
    /// Nothing: the ceiling of the engine.
    Null,
}

/// Each binding with its name and the class that `-db` knows it by.
const BINDINGS: [(Binding, &str, &str); 13] = [
    (Binding::Redis, "redis", "site.ycsb.db.RedisClient"),
    (Binding::Mongo, "mongodb", "site.ycsb.db.MongoDbClient"),
    (Binding::MongoAsync, "mongodb-async", "site.ycsb.db.AsyncMongoDbClient"),
    (Binding::Memcached, "memcached", "site.ycsb.db.MemcachedClient"),
    (Binding::Basic, "basic", "site.ycsb.BasicDB"),
    (Binding::BasicTs, "basicts", "site.ycsb.BasicTSDB"),
    (Binding::Sqlite, "sqlite", "sqlite"),
    (Binding::Redb, "redb", "redb"),
    (Binding::Fjall, "fjall", "fjall"),
    (Binding::Lmdb, "lmdb", "lmdb"),
    (Binding::Rocksdb, "rocksdb", "site.ycsb.db.rocksdb.RocksDBClient"),
    (Binding::Wiredtiger, "wiredtiger", "wiredtiger"),
    (Binding::Null, "null", "null"),
];

/// A binding that is not offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoBinding {
    /// A binding that dyno does not know.
    #[error(
        "unknown binding {0:?}{hint}; accepted: {list}",
        hint = suggest::hint(class_alone(.0), known_names()),
        list = Binding::names()
    )]
    Unknown(String),
}

impl Binding {
    /// All bindings.
    pub fn all() -> impl Iterator<Item = Binding> {
        BINDINGS.iter().map(|&(binding, ..)| binding)
    }

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The value of `db` that selects it.
    pub fn class(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> &'static (Binding, &'static str, &'static str) {
        BINDINGS.iter().find(|(binding, ..)| *binding == self).unwrap_or(&BINDINGS[0])
    }

    fn names() -> String {
        Binding::all().map(Binding::name).collect::<Vec<_>>().join(", ")
    }

    /// The binding with this name (`redis`), class name (`RedisClient`) or class of the packages `site.ycsb` and
    /// `com.yahoo.ycsb`.
    pub fn from_name(text: &str) -> Result<Binding, NoBinding> {
        let name = class_alone(text.trim());
        let found = BINDINGS.iter().find(|(_, short, class)| *short == name || class_alone(class) == name);
        found.map(|&(binding, ..)| binding).ok_or_else(|| NoBinding::Unknown(text.to_owned()))
    }
}

/// A class without the package, if it is one of YCSB's.
fn class_alone(name: &str) -> &str {
    let packages = ["site.ycsb.db.", "site.ycsb.", "com.yahoo.ycsb.db.", "com.yahoo.ycsb."];
    packages.iter().find_map(|package| name.strip_prefix(package)).unwrap_or(name)
}

fn known_names() -> impl Iterator<Item = &'static str> {
    BINDINGS.iter().flat_map(|&(_, name, class)| [name, class_alone(class)])
}

/// A target, and what is worth saying about how it was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundTarget {
    /// The target.
    pub target: BindingTarget,
    /// Warnings, each a line of its own without an end.
    pub notes: Vec<String>,
}

/// Reads what `settings` say about the target of `binding`.
pub fn resolve(binding: Binding, settings: &PropertySettings) -> Result<BoundTarget, BadSetting> {
    let mut notes = Vec::new();
    let store = |uri| BindingTarget::Store { uri };
    if !matches!(binding, Binding::Mongo | Binding::MongoAsync) && mongodb::wants_official(settings)? {
        return Err(settings.refuse_value("dyno.client", "wire: the official driver is MongoDB's"));
    }
    let target = match binding {
        Binding::Redis => redis::target(settings, &mut notes)?,
        Binding::Mongo | Binding::MongoAsync => mongodb::target(settings, &mut notes)?,
        Binding::Memcached => memcached::target(settings, &mut notes)?,
        Binding::Basic | Binding::BasicTs => store(stores::basic_uri(settings, &mut notes)?),
        Binding::Sqlite
        | Binding::Redb
        | Binding::Fjall
        | Binding::Lmdb
        | Binding::Rocksdb
        | Binding::Wiredtiger => store(stores::file_uri(binding.name(), settings)?),
        Binding::Null => BindingTarget::Null,
    };
    Ok(BoundTarget { target, notes })
}

/// The properties of all bindings, save the mock's `basicdb.*`, which YCSB counts among the client's.
pub fn properties() -> Vec<DescribedProperty> {
    redis::properties()
        .chain(mongodb::properties())
        .chain(memcached::properties())
        .chain(stores::properties())
        .collect()
}

/// Environment variables that stand for a property, so that a password need not be typed where all can see it.
pub const ENVIRONMENT: [(&str, &str); 4] = [
    ("DYNO_MONGODB_URL", "mongodb.url"),
    ("DYNO_REDIS_PASSWORD", "redis.password"),
    ("DYNO_REDIS_USER", "redis.user"),
    ("DYNO_REDIS_URI", "redis.uri"),
];

/// Takes over the variables of [`ENVIRONMENT`] that `lookup` finds; they are stronger than files and weaker than the
/// command line.
pub fn take_environment(settings: &mut PropertySettings, lookup: impl Fn(&str) -> Option<String>) {
    for (variable, key) in ENVIRONMENT {
        if let Some(value) = lookup(variable) {
            settings.set_property(key, value, Source::Environment { variable: variable.to_owned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_classes() {
        for (text, binding) in [
            ("redis", Binding::Redis),
            ("site.ycsb.db.RedisClient", Binding::Redis),
            ("com.yahoo.ycsb.db.RedisClient ", Binding::Redis),
            ("mongodb", Binding::Mongo),
            ("site.ycsb.db.AsyncMongoDbClient", Binding::MongoAsync),
            ("site.ycsb.BasicDB", Binding::Basic),
            ("com.yahoo.ycsb.BasicDB", Binding::Basic),
            ("BasicTSDB", Binding::BasicTs),
            ("basicts", Binding::BasicTs),
            ("null", Binding::Null),
        ] {
            assert_eq!(Binding::from_name(text), Ok(binding), "{text}");
        }
        for binding in Binding::all() {
            assert_eq!(Binding::from_name(binding.name()), Ok(binding));
            assert_eq!(Binding::from_name(binding.class()), Ok(binding));
        }
    }

    #[test]
    fn refusals() {
        let text = |name: &str| Binding::from_name(name).unwrap_err().to_string();
        assert!(text("reddis").contains("did you mean redis?"));
        assert!(text("site.ycsb.db.RedisCleint").contains("did you mean RedisClient?"));
        let far = text("cassandra-cql");
        assert!(
            !far.contains("did you mean")
                && far.contains("accepted: redis, mongodb, mongodb-async, memcached, basic"),
            "{far}"
        );
    }

    #[test]
    fn the_environment_stands_between_files_and_the_command_line() {
        let mut settings = PropertySettings::new();
        let line = Source::File { path: "f".into(), line: 1 };
        settings.set_property("redis.password", "file", line);
        settings.set_property("redis.user", "typed", Source::CommandLine);
        take_environment(&mut settings, |name| {
            Some(format!("from {name}")).filter(|_| !name.ends_with("URI") && !name.ends_with("URL"))
        });
        assert_eq!(settings.text_of("redis.password"), Some("from DYNO_REDIS_PASSWORD"));
        assert_eq!(settings.text_of("redis.user"), Some("typed"));
        assert_eq!(settings.get("redis.password").unwrap().source.to_string(), "$DYNO_REDIS_PASSWORD");
        assert_eq!(settings.text_of("redis.uri"), None);
    }
}
