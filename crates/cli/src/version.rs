//! What `dyno --version` says: version, commit, target, features.

use std::sync::LazyLock;

/// Features that a build may have, and whether this one has them.
const FEATURES: [(&str, bool); 10] = [
    ("parquet", cfg!(feature = "parquet")),
    ("xlsx", cfg!(feature = "xlsx")),
    ("redb", cfg!(feature = "redb")),
    ("fjall", cfg!(feature = "fjall")),
    ("lmdb", cfg!(feature = "lmdb")),
    ("rocksdb", cfg!(feature = "rocksdb")),
    ("wiredtiger", cfg!(feature = "wiredtiger")),
    ("official", cfg!(feature = "official")),
    ("aws", cfg!(feature = "aws")),
    ("gssapi", cfg!(feature = "gssapi")),
];

/// The C library of this build.
const LIBC: &str = if cfg!(target_env = "musl") { "musl" } else { "gnu" };

/// Returns version, commit, target and features, a line each. The commit is that of `DYNO_COMMIT` when the program was built, as
/// `make` sets it.
pub fn long_version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(describe);
    &TEXT
}

fn describe() -> String {
    let commit = option_env!("DYNO_COMMIT").filter(|commit| !commit.is_empty());
    let commit = commit.unwrap_or("not known: built without make");
    let arch = std::env::consts::ARCH;
    let features: Vec<&str> = FEATURES.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    format!(
        "{}\ncommit: {commit}\ntarget: {arch}-unknown-linux-{LIBC}\nfeatures: {features}",
        env!("CARGO_PKG_VERSION")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_version_alone() {
        let text = long_version();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], env!("CARGO_PKG_VERSION"));
        assert_eq!(lines.len(), 4);
        assert!(lines[1].starts_with("commit: ") && lines[2].contains("-linux-"), "{text}");
    }
}
