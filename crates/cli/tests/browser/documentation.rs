//! The site of the documentation: every page, in both themes.

use crate::browser;
use crate::checks::Axe;
use std::path::{Path, PathBuf};
use std::process::Command;

fn has_mdbook() -> bool {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or(home).unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain([cache.join("dyno-mdbook/bin")]);
    folders.any(|folder| folder.join("mdbook").is_file())
}

/// Pages below a folder.
fn pages_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            pages_below(&path, found);
        } else if path.extension().is_some_and(|end| end == "html") {
            found.push(path);
        }
    }
}

#[test]
#[ignore = "needs a browser: make test-all"]
fn the_documentation_breaks_no_rule_of_accessibility() {
    let home = tempfile::tempdir().expect("a folder");
    let what = "the documentation in a browser";
    let Some(mut browser) = browser(home.path(), what) else { return };
    if !has_mdbook() {
        return dyno_testkit::skip_because(what, "mdbook is not there (scripts/need mdbook compiles it)");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/docs.sh");
    let built = Command::new(script).env("CARGO_TARGET_DIR", home.path()).output().expect("scripts/docs.sh");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let axe = Axe::fetch(home.path());
    let mut pages = Vec::new();
    pages_below(&home.path().join("book"), &mut pages);
    // That page is for a server: its files are looked for at the root.
    pages.retain(|page| !page.ends_with("404.html"));
    assert!(pages.len() > 60, "{pages:?}");
    for page in pages {
        for (width, dark) in [(1280, true), (390, false)] {
            let address = format!("file://{}", page.display());
            browser.open(&address, width, dark);
            axe.check(&mut browser, &format!("{address} at {width}"));
        }
    }
}
