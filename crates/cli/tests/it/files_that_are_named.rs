//! Files that a command writes where the user says: a link or a pipe that stands there is neither followed nor waited for.

use dyno_testkit::{Dyno, stderr};
use std::os::unix::fs::symlink;

/// Commands that write `OUT`, and the file that they write in it where it is a folder.
const COMMANDS: [(&str, &str); 12] = [
    ("report run --format html --out OUT", ""),
    ("report run --format md --out OUT", ""),
    ("report run --format csv --out OUT", ""),
    ("compare run run --format html --out OUT", ""),
    ("export run --format csv --out OUT", ""),
    ("export run --format xlsx --out OUT", ""),
    ("export run --format parquet --out OUT", ""),
    ("export run --format ycsb --out OUT", ""),
    ("compare run run --html OUT", ""),
    ("compare run run --junit OUT", ""),
    ("run sim: --ops 1000 --no-out --junit OUT", ""),
    ("grafana --out OUT", "dyno-run.json"),
];

#[test]
fn links_and_pipes_are_left_alone_and_files_are_replaced() {
    let dyno = Dyno::new();
    let args = ["run", "sim:?service=100us", "-u", "2", "--ops", "20000", "--out", "run", "-q"];
    dyno.assert_ran(&dyno.run(&args));
    std::fs::write(dyno.path("theirs"), "theirs").unwrap();
    for (at, (message, file)) in COMMANDS.into_iter().enumerate() {
        for (kind, accepted) in [("link", &[1, 2][..]), ("pipe", &[1, 2]), ("file", &[0])] {
            let out = format!("out-{at}-{kind}");
            let place = match file {
                "" => dyno.path(&out),
                file => {
                    std::fs::create_dir(dyno.path(&out)).unwrap();
                    dyno.path(&out).join(file)
                }
            };
            match kind {
                "link" => symlink(dyno.path("theirs"), &place).unwrap(),
                "pipe" => rustix::fs::mkfifoat(rustix::fs::CWD, &place, rustix::fs::Mode::RWXU).unwrap(),
                _ => std::fs::write(&place, "before").unwrap(),
            }
            let ended = dyno.run(&message.replace("OUT", &out).split(' ').collect::<Vec<_>>());
            let code = ended.status.code().unwrap_or(-1);
            assert!(accepted.contains(&code), "{message}, {kind}: {code}: {}", stderr(&ended));
            match kind {
                "file" => assert_ne!(std::fs::read(&place).unwrap(), b"before", "{message}"),
                _ => {
                    let name = place.file_name().unwrap().to_string_lossy();
                    assert!(stderr(&ended).contains(&*name), "{message}, {kind}: {}", stderr(&ended));
                }
            }
        }
    }
    assert_eq!(std::fs::read(dyno.path("theirs")).unwrap(), b"theirs");
}

#[test]
fn a_run_directory_is_a_folder_that_can_be_made() {
    let dyno = Dyno::new();
    std::fs::write(dyno.path("x.yaml"), "target: 'null:'\nphases: {measure: {operations: 10}}\n").unwrap();
    std::fs::write(dyno.path("file"), "theirs").unwrap();
    symlink("nowhere", dyno.path("link")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, dyno.path("pipe"), rustix::fs::Mode::RWXU).unwrap();
    for out in ["file", "link", "pipe", "pipe/below"] {
        for target in ["run null: --ops 10 --out", "run x.yaml --out"] {
            let words: Vec<&str> = target.split(' ').chain([out]).collect();
            let ended = dyno.run(&words);
            dyno_testkit::assert_exit(&ended, &[2]);
            assert!(stderr(&ended).contains(out), "{target}: {}", stderr(&ended));
        }
    }
    assert_eq!(std::fs::read(dyno.path("file")).unwrap(), b"theirs");
    assert!(!dyno.path("nowhere").exists());
}
