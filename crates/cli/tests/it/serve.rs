//! `dyno serve` as programs and bad neighbours see it; `tests/browser` sees it as people do.

use dyno_testkit::{Dyno, assert_exit, signal, stderr};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

struct Served {
    child: Child,
    /// `127.0.0.1:PORT`
    host: String,
    /// The whole address that was printed.
    address: String,
}

impl Served {
    fn start(dyno: &Dyno, args: &[&str]) -> Self {
        let mut all = vec!["serve"];
        all.extend(args);
        let mut command = dyno.command(&all);
        // A secret of the process, which no page may show.
        command.env("DYNO_TEST_SECRET", "hunter2hunter2");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let host = line.trim().strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
        Served { child, host, address: line.trim().to_owned() }
    }

    fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(!answer.contains("hunter2"), "{answer}");
        answer
    }

    fn ask(&self, method: &str, path: &str, fields: &str) -> String {
        self.raw(&format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{fields}\r\n", self.host))
    }

    /// Status and body.
    fn get(&self, path: &str) -> (u16, String) {
        let answer = self.ask("GET", path, "");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A simulated run of a fraction of a second.
fn run(dyno: &Dyno, out: &str) {
    let args = ["run", "sim:?service=100us", "-u", "2", "--ops", "20000", "--out", out, "-q"];
    dyno.assert_ran(&dyno.run(&args));
}

#[test]
fn runs_are_listed_opened_and_compared_and_nothing_else_is_given_away() {
    let dyno = Dyno::new();
    for name in ["all/a", "all/below/b", "elsewhere"] {
        run(&dyno, name);
    }
    std::fs::create_dir_all(dyno.path("all/foreign/deep")).unwrap();
    std::fs::write(dyno.path("all/foreign/data.txt"), "not ours").unwrap();
    symlink(dyno.path("elsewhere"), dyno.path("all/link")).unwrap();
    let served = Served::start(&dyno, &["all"]);
    let (status, list) = served.get("/");
    assert_eq!(status, 200);
    assert!(list.contains("/dir/a/report.html") && list.contains("/dir/below/b/report.html"), "{list}");
    assert!(
        list.contains("type=\"search\" id=\"filter\"") && list.contains("<link rel=\"icon\" href=\"data:"),
        "{list}"
    );
    // Each has a p99; the latest is the first.
    let list = list.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    assert!(!list.contains("link") && !list.contains("foreign") && !list.contains("elsewhere"), "{list}");
    let p99: Vec<&str> =
        list.split("data-head=\"p99\">").skip(1).filter_map(|rest| rest.split('<').next()).collect();
    assert!(p99.len() == 2 && p99.iter().all(|one| one.ends_with('s')), "{list}");
    assert!(list.find("/dir/below/b/report.html") < list.find("/dir/a/report.html"), "{list}");
    let head = served.ask("HEAD", "/", "");
    for field in ["X-Frame-Options: DENY", "X-Content-Type-Options: nosniff", "Cache-Control: no-store"] {
        assert!(head.contains(field), "{head}");
    }
    assert!(!head.to_lowercase().contains("access-control"), "{head}");
    let (status, report) = served.get("/dir/a/report.html");
    assert_eq!(status, 200);
    // Whether it is valid depends on the host, too.
    assert!(report.contains("class=\"trust ") && report.contains("<section id=\"diagnosis\""));
    assert!(served.get("/dir/a/report.html").1 == report, "the one that is kept");
    let (status, compared) = served.get("/compare?dir=a&dir=below%2Fb&baseline=a");
    assert_eq!(status, 200, "{compared}");
    assert!(compared.contains("between these two runs; 3 more runs a side at least"), "{compared}");
    let (status, tail) = served.get("/tail/a?from=0");
    assert_eq!(status, 200);
    assert!(tail.contains("\"over\":true") && tail.contains("\"state\":\"complete\""), "{tail}");
    assert!(tail.contains("\"server_us\":"), "{tail}");
    for path in [
        "/dir/../elsewhere/report.html",
        "/dir/%2e%2e/elsewhere/report.html",
        "/dir/%2e%2e%2felsewhere/report.html",
        "/dir/link/report.html",
        "/dir//etc/report.html",
        "/dir/foreign/report.html",
        "/dir/a/run.json",
        "/tail/../elsewhere",
        "/live/link",
        "/compare?dir=a&dir=../elsewhere",
        "/compare?dir=a&dir=/etc",
        "/etc/passwd",
        "/favicon.ico",
    ] {
        assert_eq!(served.get(path).0, 404, "{path}");
    }
    assert_eq!(served.get("/compare?dir=a").0, 422);
    let long: String = (0..30).map(|n| format!("&dir=a{n}")).collect();
    assert_eq!(served.get(&format!("/compare?dir=a{long}")).0, 422);
    // Another site's name for this address, another site's page, another method.
    assert!(served.raw("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").starts_with("HTTP/1.1 421 "));
    assert!(served.raw("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 421 "));
    let embedded = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n";
    assert!(served.ask("GET", "/dir/a/report.html", embedded).starts_with("HTTP/1.1 403 "));
    assert!(
        served.ask("POST", "/stop/a", &format!("Origin: http://{}\r\n", served.host)).contains("read-only")
    );
    assert!(served.ask("DELETE", "/dir/a", "").starts_with("HTTP/1.1 405 "));
}

#[test]
fn what_cannot_be_read_is_said_and_links_that_lead_out_are_not_followed() {
    let dyno = Dyno::new();
    for name in ["newer", "torn", "tricky", "cut", "fine"] {
        run(&dyno, &format!("all/{name}"));
    }
    let edit = |file: &str, change: &dyn Fn(String) -> String| {
        let path = dyno.path("all").join(file);
        let text = change(std::fs::read_to_string(&path).unwrap());
        std::fs::write(path, text).unwrap();
    };
    edit("newer/run.json", &|text| text.replacen("\"version\": 1", "\"version\": 99", 1));
    edit("torn/run.json", &|text| text[..text.len() / 2].to_owned());
    edit("cut/run.json", &|text| text.replacen("\"complete\"", "\"running\"", 1));
    std::fs::remove_file(dyno.path("all/cut/summary.json")).unwrap();
    // Whatever was written last was written long ago.
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(3_600);
    for file in ["run.json", "series.csv", "events.jsonl"] {
        let path = dyno.path("all/cut").join(file);
        if path.is_file() {
            std::fs::File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
        }
    }
    std::fs::write(dyno.path("secret.json"), "{\"secret\": \"hunter2hunter2\"}").unwrap();
    std::fs::remove_file(dyno.path("all/tricky/summary.json")).unwrap();
    symlink(dyno.path("secret.json"), dyno.path("all/tricky/summary.json")).unwrap();
    // An experiment whose journal names a run outside of it.
    std::fs::create_dir(dyno.path("all/outside")).unwrap();
    let record = r#"{"version":1,"dyno":"x","name":"<b>x</b>","path":"x","sets":[],"command":[],"cwd":"/","started":"2026",
        "cells":[{"number":1,"label":"","levels":[]}],"runs":1}"#;
    std::fs::write(dyno.path("all/outside/experiment.json"), record).unwrap();
    let ended = r#"{"at":"x","event":"ended","cell":1,"repetition":1,"point":"","value":0,"dir":"../../secret","status":
        "complete","words":"","trust":"valid","throughput":1,"offered":null,"passed":true}"#;
    std::fs::write(dyno.path("all/outside/journal.jsonl"), format!("{}\n", ended.replace('\n', ""))).unwrap();
    let served = Served::start(&dyno, &["all"]);
    let (_, list) = served.get("/");
    for message in [
        "newer than this dyno reads",
        "unreadable",
        "cut off",
        "summary.json: no file",
        "lies below its experiment",
    ] {
        assert!(list.contains(message), "{message}: {list}");
    }
    assert!(served.get("/dir/newer/report.html").1.contains("update dyno"));
    assert_eq!(served.get("/dir/torn/report.html").0, 422);
    let (status, message) = served.get("/dir/tricky/report.html");
    assert!(status == 422 && message.contains("link that leads out"), "{message}");
    assert_eq!(served.get("/dir/outside/report.html").0, 422);
    assert!(served.get("/dir/cut/report.html").1.contains("INCOMPLETE"));
    assert_eq!(served.get("/compare?dir=fine&dir=tricky").0, 422);
    let (status, message) = served.get("/compare?dir=fine&dir=cut");
    assert!(status == 422 && message.contains("it has not come to its end"), "{message}");
    // A report follows its directory.
    let before = served.get("/dir/fine/report.html").1;
    edit("fine/summary.json", &|text| text.replacen("\"title\": \"", "\"title\": \"renamed ", 1));
    let after = served.get("/dir/fine/report.html").1;
    assert!(!before.contains("<title>renamed") && after.contains("<title>renamed"), "{after}");
}

#[test]
fn addresses_that_others_reach_want_a_token_and_everything_wants_it_then() {
    let dyno = Dyno::new();
    run(&dyno, "all/a");
    for (args, message) in [
        (vec!["serve", "missing"], "missing"),
        (vec!["serve", "all", "--listen", "0.0.0.0:0"], "wants --token-file"),
        (vec!["serve", "all", "--listen", "0.0.0.0:0", "--allow-write"], "--name"),
        (vec!["serve", "all", "--listen", "nonsense"], "HOST:PORT"),
        (vec!["serve", "all", "--token-file", "short"], "16"),
    ] {
        std::fs::write(dyno.path("short"), "abc\n").unwrap();
        let refused = dyno.run(&args);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(message), "{args:?}: {}", stderr(&refused));
    }
    let token = "a-token-of-some-length";
    std::fs::write(dyno.path("token"), format!("{token}\n")).unwrap();
    std::fs::set_permissions(dyno.path("token"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let served = Served::start(&dyno, &["all", "--token-file", "token"]);
    assert!(!served.address.contains(token), "{}", served.address);
    for path in ["/", "/rows", "/dir/a/report.html", "/tail/a", "/?token=wrong-token-of-length"] {
        assert_eq!(served.get(path).0, 401, "{path}");
    }
    let entered = served.ask("GET", &format!("/?token={token}"), "");
    assert!(entered.starts_with("HTTP/1.1 303 ") && entered.contains("Location: /\r\n"), "{entered}");
    let cookie = entered.split("Set-Cookie: ").nth(1).unwrap().split(';').next().unwrap().to_owned();
    let with = format!("Cookie: {cookie}\r\n");
    assert!(served.ask("GET", "/", &with).contains("/dir/a/report.html"));
    assert!(served.ask("POST", "/stop/a", &with).starts_with("HTTP/1.1 403 "), "no origin");
    let foreign = format!("{with}Origin: http://evil.example\r\n");
    assert!(served.ask("POST", "/stop/a", &foreign).starts_with("HTTP/1.1 403 "));
    let own = format!("{with}Origin: http://{}\r\n", served.host);
    assert!(served.ask("POST", "/stop/a", &own).starts_with("HTTP/1.1 404 "), "a run is no experiment");
    assert!(served.ask("POST", "/stop/../all", &own).starts_with("HTTP/1.1 404 "));
}

#[test]
fn interrupting_it_ends_it_at_once() {
    let dyno = Dyno::new();
    std::fs::create_dir(dyno.path("all")).unwrap();
    let mut served = Served::start(&dyno, &["all"]);
    assert!(served.get("/").1.contains("There is no run and no experiment"));
    // Clients that say nothing do not hold it up.
    let _idle: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(&served.host).unwrap()).collect();
    let begun = Instant::now();
    signal(served.child.id(), "INT");
    assert_eq!(served.child.wait().unwrap().code(), Some(130));
    // It does not wait for those who are silent; their time is much longer on any host.
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

/// One interval of an imported result may say years; pages are made of them like of others.
#[test]
fn a_run_with_a_gap_of_years_stops_no_page() {
    let dyno = Dyno::new();
    let rows = (0..6_000).map(|second| (second, 1_000 + second % 7)).chain([(1_006_000, 1_000)]);
    let text: String = rows.map(|(second, rate)| format!("{second},{rate}\n")).collect();
    std::fs::write(dyno.path("gap.csv"), format!("t,x\n{text}")).unwrap();
    let import = "import csv gap.csv --time t --throughput x --users 20 --out all/gap";
    assert_exit(&dyno.run(&import.split(' ').collect::<Vec<_>>()), &[0]);
    run(&dyno, "all/a");
    let served = Served::start(&dyno, &["all"]);
    let begun = Instant::now();
    for path in ["/", "/dir/gap/report.html", "/dir/a/report.html", "/compare?dir=a&dir=gap"] {
        assert_eq!(served.get(path).0, 200, "{path}");
    }
    assert_exit(&dyno.run(&["explain", "all/gap"]), &[0]);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}
