//! `dyno pocdriver` as its users type it: sizes, reports, exact counts, resuming, refusals.

use dyno_databases::registry;
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{
    Dyno, RedisProcess, assert_exit, finish, phase, signal, skip, skip_because, stderr, stdout,
};
use dyno_types::bson::{self, kind};
use dyno_workload::Workload;
use dyno_workload::pocdriver::{PocConfig, PocWorkload};

/// The number after `After N seconds, ` in the last summary, and the collection's total.
fn inserted(text: &str) -> (u64, u64) {
    let line = text.lines().rfind(|l| l.contains(" new documents inserted - collection has ")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |word: &str, offset: usize| {
        let at = words.iter().position(|w| *w == word).unwrap();
        words[at + offset].replace(',', "").parse().unwrap()
    };
    (after("seconds,", 1), after("has", 1))
}

fn count(dyno: &Dyno, server: &Mongo, database: &str) -> u64 {
    // A run of no inserts tells how many documents are there.
    let uri = server.uri("");
    let namespace = format!("{database}.c");
    let run =
        dyno.run(&["pocdriver", "-c", &uri, "-n", &namespace, "-i", "0", "-r", "1", "-d", "1", "-t", "1"]);
    inserted(&stdout(&run)).1
}

#[test]
fn the_three_shapes_have_their_sizes() {
    let dyno = Dyno::new();
    for (flags, size) in [
        ("-f 25 -a 5:5 --depth 2 -x 3", 1.003),
        ("-f 234 -a 20:20 --depth 2 -x 6", 10.03),
        ("-f 1692 -a 10:10 --depth 2 -x 8", 50.01),
    ] {
        let arguments: Vec<&str> = ["pocdriver", "-p"].into_iter().chain(flags.split(' ')).collect();
        let printed = dyno.run(&arguments);
        assert_exit(&printed, &[0]);
        let text = stdout(&printed);
        let last = text.lines().last().unwrap();
        let found: f64 = last.split(' ').nth(2).unwrap().parse().unwrap();
        // One document; means are checked where many are made.
        assert!((found / size - 1.0).abs() < 0.03, "{flags}: {last}");
        assert!(text.starts_with("{\n  \"_id\": {\n    \"w\": 1,\n    \"i\": 12345678\n  },"), "{text}");
    }
}

/// A server that dies takes nothing from what was measured before.
#[test]
fn the_summary_survives_the_server() {
    let Some(server) = Mongo::java() else {
        return skip_because("dyno pocdriver", "mongo-java-server is not there (see scripts/need mongo)");
    };
    let dyno = Dyno::new();
    let uri = server.uri("");
    let run = dyno.start(&[
        "pocdriver",
        "-c",
        &uri,
        "-b",
        "20",
        "-t",
        "2",
        "-d",
        "4",
        "-k",
        "20",
        "--interval",
        "1",
    ]);
    std::thread::sleep(std::time::Duration::from_secs(2));
    drop(server);
    let ended = finish(run);
    assert_exit(&ended, &[5]);
    assert!(inserted(&stdout(&ended)).0 > 0, "{ended:?}");
}

#[test]
fn the_summary_equals_what_the_server_holds_and_the_next_run_goes_on() {
    let Some(server) = Mongo::java() else {
        return skip_because("dyno pocdriver", "mongo-java-server is not there (see scripts/need mongo)");
    };
    let dyno = Dyno::new();
    let uri = server.uri("");
    let run = |more: &[&str]| {
        let common =
            ["pocdriver", "-c", &uri, "-n", "poc.c", "-d", "2", "--interval", "1", "-b", "37", "-t", "3"];
        dyno.run(&[&common[..], &["-f", "25", "-a", "5:5", "--depth", "2", "-x", "3"], more].concat())
    };
    let first = run(&["-e", "-k", "20", "-u", "20", "-g", "5", "-r", "1", "-o", "log.csv"]);
    // Replies are handled late on a busy host.
    dyno.assert_ran(&first);
    let (new, total) = inserted(&stdout(&first));
    assert!(new > 0 && new == total, "{}", stdout(&first));
    // 37 divides no number of iterations: what was queued at the end has been sent too.
    assert_eq!(count(&dyno, &server, "poc"), total);
    for word in [
        "keyqueries per second on average",
        "rangequeries per second since last report",
        " % in under 50 milliseconds",
    ] {
        assert!(stdout(&first).contains(word), "{}", stdout(&first));
    }
    let log = std::fs::read_to_string(dyno.path("log.csv")).unwrap();
    assert!(log.starts_with("time,seconds,inserts,inserts_per_s,inserts_under_50ms_pct,"), "{log}");
    // Without -e the sequences go on, and nothing collides.
    let second = run(&["--workflow", "iukIp"]);
    dyno.assert_ran(&second);
    let (more, sum) = inserted(&stdout(&second));
    assert_eq!((sum, count(&dyno, &server, "poc")), (total + more, total + more));
    // Another client with workers of its own.
    let third = run(&["--threadIdStart", "3", "-q", "2000"]);
    let (paced, _) = inserted(&stdout(&third));
    assert!((3_000..=4_300).contains(&paced), "2,000/s for 2 s gave {paced}");
    assert_eq!(count(&dyno, &server, "poc"), sum + paced);
}

/// Half of the time inserts far more documents, in bulks, than it finds one by one; `--opsratio` does as many of each.
#[test]
fn weights_are_times_and_with_a_flag_proportions() {
    let Some(server) = Mongo::mongod() else { return skip("POCDriver's weights") };
    let (dyno, uri) = (Dyno::new(), server.uri(""));
    let counts = |more: &[&str]| -> (f64, f64) {
        let words =
            ["pocdriver", "-c", &uri, "-e", "-t", "2", "-d", "3", "-i", "50", "-k", "50", "--out", "r"];
        let output = dyno.run(&[&words[..], more].concat());
        dyno.assert_ran(&output);
        let summary = dyno.summary("r");
        std::fs::remove_dir_all(dyno.path("r")).unwrap();
        let metrics = phase(&summary, "measure")["metrics"].as_array().unwrap();
        let finds = metrics.iter().find(|metric| metric["name"] == "KEYQUERY").unwrap();
        (inserted(&stdout(&output)).0 as f64, finds["outcomes"]["ok"].as_f64().unwrap())
    };
    let (inserts, finds) = counts(&["--opsratio"]);
    // Five standard deviations of as many draws of two that are alike, and a batch of each thread that was not sent.
    let chance = 2.5 * (inserts + finds).sqrt() + 2.0 * 512.0;
    assert!(((inserts - finds) / 2.0).abs() < chance, "{inserts} and {finds}");
    let (inserts, finds) = counts(&[]);
    assert!(inserts > 1.5 * finds, "{inserts} and {finds}");
}

#[test]
fn arrays_are_updated_and_indexes_are_those_of_the_flags() {
    let Some(server) = Mongo::java() else {
        return skip_because(
            "POCDriver's -g and -x",
            "mongo-java-server is not there (see scripts/need mongo)",
        );
    };
    let (dyno, uri) = (Dyno::new(), server.uri(""));
    let run = |flags: &str| {
        let words =
            ["pocdriver", "-c", &uri, "-n", "arrays.c", "-t", "1", "-b", "10", "-f", "6", "-a", "2:2"];
        let more: Vec<&str> = flags.split(' ').collect();
        dyno.run(&[&words[..], &["--depth", "1", "-x", "3"], &more].concat())
    };
    dyno.assert_ran(&run("-d 1 -q 200"));
    let content = PocWorkload::new(&PocConfig::default(), &[]).unwrap().content();
    let opened = registry::parse(&server.uri("arrays")).unwrap().open(content, &|| false).unwrap();
    let admin = MongoAdmin::from_target(opened.as_ref()).unwrap();
    let changed = || {
        admin.find_one("c", &|out| {
            bson::put_head(out, kind::DOCUMENT, "filter");
            let filter = bson::open(out);
            bson::put_head(out, kind::DOCUMENT, "arr.0.0");
            let test = bson::open(out);
            bson::put_int32(out, "$gt", 0);
            bson::close(out, test);
            bson::close(out, filter);
        })
    };
    assert!(changed().unwrap().is_none(), "elements of arrays begin with 0");
    let updates = run("-i 0 -g 10 -d 1");
    dyno.assert_ran(&updates);
    assert!(changed().unwrap().is_some(), "{}", stdout(&updates));
    // `_id` and the first three leaves.
    let listed = admin.run_on("arrays", &|out| bson::put_string(out, "listIndexes", "c")).unwrap();
    let names = String::from_utf8_lossy(&listed).into_owned();
    for name in ["fld0_1", "fld1_1", "fld2_1"] {
        assert!(names.contains(name), "no {name} in {}", names.escape_debug());
    }
    assert!(!names.contains("fld3_1"), "{}", names.escape_debug());
}

#[test]
fn a_rate_is_kept_from_the_beginning() {
    let dyno = Dyno::new();
    let paced = |flags: &str| {
        let words: Vec<&str> = "pocdriver -c null: -t 4".split(' ').chain(flags.split(' ')).collect();
        let ran = dyno.run(&words);
        (inserted(&stdout(&ran)).0, stderr(&ran))
    };
    // 4 x 25 iterations a second: a bulk of 50 goes out when the last of its iterations is due.
    let (few, _) = paced("-d 5 -q 100 -b 50");
    assert_eq!(few, 500, "in 5 s at 100 a second: what was queued at the end is sent");
    // The original drops a bulk that is not full when the time is over.
    let (one, message) = paced("-d 2 -q 100 -b 512");
    assert!(one == 200 && message.contains("is due after 20.5 s, when the run is over"), "{one} {message}");
}

#[test]
fn a_rate_that_is_missed_is_said_and_one_that_was_held_up_is_made_up_for() {
    let dyno = Dyno::new();
    let much = dyno.run(&"pocdriver -c null: -t 2 -d 2 -q 1000000000 -b 100".split(' ').collect::<Vec<_>>());
    dyno.assert_ran(&much);
    let output = stderr(&much);
    assert!(
        output.contains("the run is suspect (offered_rate): ")
            && output.contains(" of 2,000,000,000 operations that were due"),
        "{output}"
    );
    let Some(server) = RedisProcess::start(&[]) else { return skip("-q and a server that stands still") };
    let line = format!("pocdriver -c {} -t 2 -d 4 -q 400 -b 10 --out run", server.uri());
    let run = dyno.start(&line.split(' ').collect::<Vec<_>>());
    let moving = |server: &RedisProcess| server.cli(&["DBSIZE"]).trim().parse::<u64>().unwrap() > 40;
    while !moving(&server) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    signal(server.pid(), "STOP");
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    signal(server.pid(), "CONT");
    let run = finish(run);
    // No operation was served for over a third of the time: all the same what was held up is made up for.
    dyno.assert_ran_but(&run, &["gone"]);
    assert_eq!(inserted(&stdout(&run)).0, 1_600, "{}", stderr(&run));
    assert!(!stderr(&run).contains("offered_rate"), "{}", stderr(&run));
}

/// Sizes and types of what is written, by the server's own account.
#[test]
fn binary_fields_do_not_compress_and_updates_keep_the_type() {
    let Some(server) = Mongo::java() else {
        return skip_because("--binary and -u", "mongo-java-server is not there (see scripts/need mongo)");
    };
    let (dyno, uri) = (Dyno::new(), server.uri(""));
    let run = |flags: &str| {
        let line = format!("pocdriver -c {uri} -n types.c -t 1 -b 10 -d 1 {flags}");
        let ran = dyno.run(&line.split(' ').collect::<Vec<_>>());
        dyno.assert_ran(&ran);
    };
    run("-q 50 --binary 8");
    let content = PocWorkload::new(&PocConfig::default(), &[]).unwrap().content();
    let opened = registry::parse(&server.uri("types")).unwrap().open(content, &|| false).unwrap();
    let admin = MongoAdmin::from_target(opened.as_ref()).unwrap();
    let document = admin.find_one("c", &|_| {}).unwrap().unwrap();
    let bytes = bson::find_element(&document, "bin").unwrap().as_bytes().unwrap().to_vec();
    let different = bytes.iter().collect::<std::collections::BTreeSet<_>>().len();
    assert!(bytes.len() == 8192 && different > 250, "{} bytes, {different} different", bytes.len());
    for flags in ["-i 0 -u 10", "-i 0 -u 10 -m", "-v kuI -q 200"] {
        run(flags);
        let small = admin.find_one("c", &|out| {
            bson::put_head(out, kind::DOCUMENT, "filter");
            let filter = bson::open(out);
            bson::put_head(out, kind::DOCUMENT, "fld0");
            let test = bson::open(out);
            bson::put_string(out, "$type", "int");
            bson::close(out, test);
            bson::close(out, filter);
        });
        assert!(small.unwrap().is_none(), "{flags}: an int32 where the load writes an int64");
    }
}

#[test]
fn a_wrong_command_line_leaves_what_is_there() {
    let Some(server) = Mongo::ferretdb(&[]) else {
        return skip_because("-e and wrong words", "FerretDB is not there (see scripts/need mongo)");
    };
    let dyno = Dyno::new();
    let uri = server.uri("");
    let words = ["pocdriver", "-c", &uri, "-n", "keep.c", "-d", "1", "-b", "20", "-t", "1"];
    dyno.assert_ran(&dyno.run(&[&words[..], &["--out", "d"]].concat()));
    let there = count(&dyno, &server, "keep");
    assert!(there > 0);
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(dyno.path("d/run.json")).unwrap()).unwrap();
    let settings = record["settings"].to_string();
    assert!(settings.contains("\"bulksize\"") && !settings.contains("usertable"), "{settings}");
    for wrong in [["-e", "--out", "d"], ["-e", "-o", "nowhere/x.csv"]] {
        assert_exit(&dyno.run(&[&words[..], &wrong].concat()), &[2]);
        assert_eq!(count(&dyno, &server, "keep"), there, "{wrong:?}");
    }
}

#[test]
fn a_client_with_the_same_workers_collides_and_ends() {
    let Some(server) = Mongo::ferretdb(&[]) else {
        return skip_because("duplicate keys", "FerretDB is not there (see scripts/need mongo)");
    };
    let dyno = Dyno::new();
    let uri = server.uri("");
    let arguments = ["pocdriver", "-c", &uri, "-n", "d.c", "-d", "2", "-b", "20", "-t", "1", "-q", "40"];
    // Both ask for the first free number before either has written.
    let (one, two) = (dyno.start(&arguments), dyno.start(&arguments));
    let (one, two) = (finish(one), finish(two));
    let output = stderr(&one) + &stderr(&two);
    assert!(output.contains("duplicate"), "{output}");
    assert!(output.contains("the run is invalid"), "{output}");
}

#[test]
fn forms_of_flags_as_they_are_typed() {
    let dyno = Dyno::new();
    let shown = |flags: &str| {
        let arguments: Vec<&str> = ["pocdriver", "-p"].into_iter().chain(flags.split(' ')).collect();
        let printed = dyno.run(&arguments);
        assert_exit(&printed, &[0]);
        (stdout(&printed).matches("\"fld").count(), stderr(&printed))
    };
    for form in ["-f20", "-f=20", "-f 20", "--numfields=20", "--numfields 20", "-numfields 20", "-numf=20"] {
        assert_eq!(shown(form).0, 20, "{form}");
    }
    let (fields, message) = shown("-f 20 -numfields 30");
    assert_eq!(fields, 20);
    assert!(message.contains("--numfields is given twice: the first counts, 20"), "{message}");
}

#[test]
fn what_cannot_be_done_is_refused_by_its_flag() {
    let dyno = Dyno::new();
    for (flags, message) in [
        ("-n nodot", "exactly one dot"),
        ("-l 9", "11 or more"),
        ("-x 11", "at most the 10 leaf fields"),
        ("-g 5", "--arrays x:y"),
        ("-i 0", "a weight above 0"),
        ("-v pK", "inserts (i) or queries (k)"),
        ("-v x", "letters of i u I k K p"),
        ("-a 5", "X:Y"),
        ("--insrts 3", "--inserts"),
        ("--thread 3", "did you mean --threads?"),
        ("-in 3", "--in"),
        ("-t -e", "--threads needs a value"),
        ("-k=x", "--keyqueries x: expected a whole number"),
        ("--ordered maybe", "true, false"),
        ("stray", "\"stray\" is one argument too many"),
        ("--binary 16384", "at most 16777216 bytes"),
        ("--faithful-clock -z 10", "exclude each other"),
        ("--faithful-clock --opsratio", "exclude each other"),
        ("-c mongodb://127.0.0.1:1", "nothing listens there"),
    ] {
        let arguments: Vec<&str> = ["pocdriver"].into_iter().chain(flags.split(' ')).collect();
        let refused = dyno.run(&arguments);
        let code = if flags.starts_with("-c") { 3 } else { 2 };
        assert_exit(&refused, &[code]);
        assert!(stderr(&refused).contains(message), "{flags}: {}", stderr(&refused));
    }
}
