//! Hands the exact versions of redb, fjall and RocksDB, which do not tell them themselves, to `Store::engine`.

use std::fs;

fn main() {
    let lock = "../../Cargo.lock";
    println!("cargo:rerun-if-changed={lock}");
    let text = fs::read_to_string(lock).unwrap_or_default();
    for name in ["redb", "fjall"] {
        let version = version_of(&text, name).unwrap_or("of unknown version");
        println!("cargo:rustc-env=DYNO_{}_VERSION={version}", name.to_uppercase());
    }
    if std::env::var_os("CARGO_FEATURE_ROCKSDB").is_some() {
        let header = "/usr/include/rocksdb/version.h";
        println!("cargo:rerun-if-changed={header}");
        let text = fs::read_to_string(header).unwrap_or_default();
        let version = header_version(&text).unwrap_or_else(|| "of unknown version".to_owned());
        println!("cargo:rustc-env=DYNO_ROCKSDB_VERSION={version}");
    }
}

/// The version that RocksDB's header defines.
fn header_version(text: &str) -> Option<String> {
    let part = |name: &str| {
        let (_, rest) = text.split_once(&format!("#define ROCKSDB_{name} "))?;
        Some(rest.split_whitespace().next()?.to_owned())
    };
    Some(format!("{}.{}.{}", part("MAJOR")?, part("MINOR")?, part("PATCH")?))
}

/// The version that follows `name = "..."` in a lock file.
fn version_of<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    Some(rest.split_once('"')?.0)
}
