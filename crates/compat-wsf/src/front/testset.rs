//! `--testset`: tests one after the other, as a file says them.
//!
//! ```yaml
//! BENCHMARK: Mongo-YCSB
//! testcase: mongodb_ycsb_90read10update
//! loop: 2
//! THREADS: 8 16
//! ---
//! testcases: [mongodb_ycsb_read, mongodb_ycsb_write]
//! run: 3
//! ```

use super::args::WsfArgs;
use dyno_config::tree::{Node, Value};
use dyno_frontend::exit::Failure;
use dyno_frontend::terminal;
use dyno_types::bounded;
use dyno_types::limits::TEXT_BYTES;
use std::path::Path;

/// The tests of a file, each as if it had been typed; what is typed beside `--testset` holds for all.
pub fn read(args: &WsfArgs, path: &Path) -> Result<Vec<WsfArgs>, Failure> {
    let shown = path.display().to_string();
    if shown.ends_with(".m4") || shown.ends_with(".j2") {
        let message = "is a template; expected the YAML that it expands to";
        return Err(Failure::usage(format!("--testset {shown}: {message}")));
    }
    let text = bounded::text_file(path, TEXT_BYTES)
        .map_err(|e| Failure::usage(format!("--testset {shown}: {e}")))?;
    let mut all = Vec::new();
    for (before, document) in documents(&text) {
        // Lines are counted from the beginning of the file.
        let padded = format!("{}{document}", "\n".repeat(before));
        let tree = Node::parse(&padded, &shown)?;
        match &tree.value {
            Value::Null => {}
            Value::Map(entries) => all.extend(tests(args, &tree, entries)?),
            _ => return Err(refuse(&tree, "", "expected a mapping such as `testcase: mongodb_ycsb_read`")),
        }
    }
    if all.is_empty() {
        return Err(Failure::usage(format!("--testset {shown}: names no test")));
    }
    Ok(all)
}

/// Parts between lines of `---`, and the number of lines before each.
fn documents(text: &str) -> Vec<(usize, String)> {
    let mut all = vec![(0, String::new())];
    for (number, line) in text.lines().enumerate() {
        match (line.trim_end() == "---", all.last_mut()) {
            (false, Some((_, part))) => {
                part.push_str(line);
                part.push('\n');
            }
            _ => all.push((number + 1, String::new())),
        }
    }
    all
}

fn refuse(node: &Node, key: &str, message: &str) -> Failure {
    Failure::usage(node.error_at(key, message).to_string())
}

fn tests(args: &WsfArgs, tree: &Node, entries: &[(String, Node)]) -> Result<Vec<WsfArgs>, Failure> {
    let mut one = args.clone();
    one.ctest.testset = None;
    let (mut cases, mut sets) = (Vec::new(), Vec::new());
    for (key, node) in entries {
        let text = || node.items().map_or_else(|| node.to_label(), |all| joined(all, " "));
        match key.as_str() {
            "testcase" | "testcases" => cases.extend(text().split_whitespace().map(str::to_owned)),
            "BENCHMARK" if !text().to_lowercase().contains("mongo") => {
                return Err(refuse(node, key, "expected Mongo-YCSB, the only workload here"));
            }
            "PLATFORM" | "BENCHMARK" => {}
            "sync" => terminal::note("note: sync: without effect; tests follow each other on one host"),
            "options" => one.ctest.options = Some(text()),
            "loop" => one.loops = Some(number(node, key)?),
            "burst" => one.burst = Some(number(node, key)?),
            "run" => one.runs = number(node, key)?,
            "config" | "test-config" => one.configs.push(text().into()),
            _ if key.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_') => {
                sets.push(format!("{key}={}", text()));
            }
            _ => {
                let message = "expected testcase, testcases, options, loop, burst, run, sync, config, PLATFORM, \
                             BENCHMARK or a variable of the workload";
                return Err(refuse(node, key, message));
            }
        }
    }
    if cases.is_empty() {
        return Err(refuse(tree, "testcase", "names the test, such as mongodb_ycsb_90read10update"));
    }
    // Options that are typed stand above the file.
    sets.append(&mut one.sets);
    one.sets = sets;
    Ok(cases.into_iter().map(|case| WsfArgs { case: Some(case), ..one.clone() }).collect())
}

fn joined(all: &[Node], gap: &str) -> String {
    all.iter().map(Node::to_label).collect::<Vec<_>>().join(gap)
}

fn number<T: std::str::FromStr>(node: &Node, key: &str) -> Result<T, Failure> {
    node.to_label().parse().map_err(|_| refuse(node, key, "expected a whole number from 1"))
}
