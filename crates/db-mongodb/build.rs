//! Hands the exact version of the driver, which does not tell it itself, to the report.

use std::fs;

fn main() {
    let lock = "../../Cargo.lock";
    println!("cargo:rerun-if-changed={lock}");
    let text = fs::read_to_string(lock).unwrap_or_default();
    let found =
        text.split_once("name = \"mongodb\"\nversion = \"").and_then(|(_, rest)| rest.split_once('"'));
    let version = found.map_or("of unknown version", |(version, _)| version);
    println!("cargo:rustc-env=DYNO_MONGODB_VERSION={version}");
}
