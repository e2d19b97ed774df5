//! Hands the exact versions of redb and fjall, which do not tell them themselves, to `Store::engine`.

use std::fs;

fn main() {
    let lock = "../../Cargo.lock";
    println!("cargo:rerun-if-changed={lock}");
    let text = fs::read_to_string(lock).unwrap_or_default();
    for name in ["redb", "fjall"] {
        let version = version_of(&text, name).unwrap_or("of unknown version");
        println!("cargo:rustc-env=DYNO_{}_VERSION={version}", name.to_uppercase());
    }
}

/// The version that follows `name = "..."` in a lock file.
fn version_of<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    Some(rest.split_once('"')?.0)
}
