//! Kinds of servers that dyno starts: what can be said of each without looking at a machine. `dyno-databases` knows how each
//! is configured and spoken to.

mod dragonfly;
mod ferretdb;
mod memcached;
pub mod mongod;
mod redis;
mod rules;
pub mod server_kind;

pub use rules::{Election, ServerRules};
pub use server_kind::ServerKind;

use std::fmt;

impl ServerKind {
    /// The rules of this kind. Nothing else matches on a kind (a test sees to it).
    pub fn server_rules(self) -> &'static dyn ServerRules {
        match self {
            ServerKind::Redis => &redis::REDIS,
            ServerKind::Valkey => &redis::VALKEY,
            ServerKind::KeyDb => &redis::KEYDB,
            ServerKind::Dragonfly => &dragonfly::DragonflyRules,
            ServerKind::Mongod => &mongod::Mongod,
            ServerKind::FerretDb => &ferretdb::FerretDb,
            ServerKind::Memcached => &memcached::Memcached,
        }
    }

    /// The program's usual name.
    pub fn program_name(self) -> &'static str {
        self.server_rules().program()
    }

    /// Names of the kinds for which `fits` holds: `redis, valkey and keydb`.
    pub fn names_where(fits: impl Fn(&dyn ServerRules) -> bool) -> String {
        let names =
            Self::ALL.map(Self::server_rules).into_iter().filter(|rules| fits(*rules)).map(ServerRules::name);
        let names: Vec<&str> = names.collect();
        match names.split_last() {
            Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
            _ => names.concat(),
        }
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.server_rules().name())
    }
}
