//! Primaries of a real replica set that step down, die, freeze or are cut off while several loads run against it, one for each
//! read preference, with retries and without. `mongod`'s own log says when the next primary was elected: from one second later on
//! every operation succeeds, and the set has as many documents as were acknowledged.
//!
//! Where the old primary keeps its connections without a word, the other secondary goes on waiting for its oplog (3.6.8: about
//! ten seconds): a majority has new writes only then. Those loads write with `w=1`.

use dyno_databases::registry;
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_testkit::lab::Lab;
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, finish, signal, skip_because, stderr, stdout};
use dyno_types::bson::{self, kind};
use dyno_workload::Workload;
use dyno_workload::sysbench_mongodb::{SysbenchConfig, SysbenchRun};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Child;
use std::time::{Duration, Instant};

/// Words of `mongod` when it has become the primary.
const ELECTED: &str = "transition to primary complete";

/// Commands that look after the set; the database is `t`.
pub(crate) fn admin(uri: &str) -> Result<MongoAdmin, String> {
    let content = SysbenchRun::new(&SysbenchConfig::default()).unwrap().content();
    let opened = registry::parse(uri).unwrap().open(content, &|| false).map_err(|error| error.to_string())?;
    Ok(MongoAdmin::from_target(opened.as_ref()).unwrap())
}

/// Makes the set `dyno` of the members, whose next primary is elected within about two seconds; returns the hosts of its URI.
pub(crate) fn form(members: &[Mongo]) -> String {
    form_as("dyno", members)
}

/// The same with another name.
pub(crate) fn form_as(name: &str, members: &[Mongo]) -> String {
    let first = admin(&format!("mongodb://{}/t?directConnection=true", members[0].host())).unwrap();
    let initiated = first.run_on("admin", &|out| {
        bson::put_head(out, kind::DOCUMENT, "replSetInitiate");
        let config = bson::open(out);
        bson::put_string(out, "_id", name);
        bson::put_head(out, kind::ARRAY, "members");
        let list = bson::open(out);
        for (number, member) in members.iter().enumerate() {
            bson::put_item_head(out, kind::DOCUMENT, number as u32);
            let document = bson::open(out);
            bson::put_int32(out, "_id", number as i32);
            bson::put_string(out, "host", &member.host());
            bson::close(out, document);
        }
        bson::close(out, list);
        bson::put_head(out, kind::DOCUMENT, "settings");
        let settings = bson::open(out);
        bson::put_int32(out, "electionTimeoutMillis", 2_000);
        bson::put_int32(out, "heartbeatIntervalMillis", 500);
        bson::close(out, settings);
        bson::close(out, config);
    });
    initiated.unwrap();
    let hosts: Vec<String> = members.iter().map(Mongo::host).collect();
    let hosts = hosts.join(",");
    let begun = Instant::now();
    while let Err(why) = admin(&format!("mongodb://{hosts}/t?replicaSet={name}")) {
        assert!(begun.elapsed() < Duration::from_secs(60), "no primary: {why}");
        std::thread::sleep(Duration::from_millis(100));
    }
    hosts
}

/// Moments at which a member has become primary, by its log.
fn elections(member: &Mongo) -> Vec<Timestamp> {
    let log = member.log();
    let lines = log.lines().filter(|line| line.contains(ELECTED));
    // Until 4.4 a line begins with its time.
    lines.filter_map(|line| line.split(' ').next()?.parse().ok()).collect()
}

/// The member that was elected last.
pub(crate) fn primary(members: &[Mongo]) -> usize {
    (0..members.len()).max_by_key(|at| elections(&members[*at]).last().copied()).unwrap()
}

/// Waits for an election after `since` by a member other than the last primary; returns its time.
pub(crate) fn await_election(members: &[Mongo], old: usize, since: Timestamp) -> Timestamp {
    let begun = Instant::now();
    loop {
        let others = members.iter().enumerate().filter(|(at, _)| *at != old);
        let found = others.flat_map(|(_, member)| elections(member)).filter(|at| *at > since).max();
        if let Some(elected) = found {
            return elected;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no member is elected");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A load, with the database that it has for itself.
struct Load {
    name: String,
    dyno: Dyno,
    child: Child,
    majority: bool,
    retries: bool,
}

/// Starts a load for each read preference, with retries and without; and two with the default interval of heartbeats.
fn loads(hosts: &str, concern: &str) -> Vec<Load> {
    let mut all = Vec::new();
    for preference in ["primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"] {
        for retries in [false, true] {
            let query = format!("heartbeatFrequencyMS=500&readPreference={preference}");
            all.push((query, retries));
        }
    }
    all.extend([("readPreference=primary".to_owned(), false), ("readPreference=nearest".to_owned(), true)]);
    let start = |(number, (query, retries)): (usize, (String, bool))| {
        let dyno = Dyno::new();
        let again = format!("retryReads={retries}&retryWrites={retries}&serverSelectionTimeoutMS=20000");
        let uri = format!("mongodb://{hosts}/t{number}?replicaSet=dyno&w={concern}&{again}&{query}");
        let mix = ["-p", "readproportion=0.7", "-p", "updateproportion=0", "-p", "insertproportion=0.3"];
        let pace = ["--rate", "40", "--connections", "2", "--warmup", "0", "--duration", "18s"];
        let common = ["run", &uri, "--records", "100", "--quiet", "--out", "d"];
        let child = dyno.start(&[&common[..], &mix, &pace].concat());
        let majority = concern == "majority";
        let name = format!("t{number} {query} retries {retries}");
        Load { name, dyno, child, majority, retries }
    };
    all.into_iter().enumerate().map(start).collect()
}

/// The lines of a file of a run.
fn lines(dyno: &Dyno, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(dyno.path("d").join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What a load whose server fails may be called invalid for.
pub(crate) const OPEN: [&str; 7] = ["errors", "gone", "connections", "samples", "steady", "outage", "target"];

/// Operations of a run.
pub(crate) struct Seconds {
    /// Inserts by outcome.
    inserts: BTreeMap<String, u64>,
    /// Those of them that succeeded before the election.
    before: u64,
    /// Operations by outcome, from a second after the election on.
    pub(crate) settled: BTreeMap<String, u64>,
}

/// Checks that each operation succeeds from a second after the election on; returns the inserts by outcome.
pub(crate) fn check_seconds(name: &str, dyno: &Dyno, elected: Timestamp) -> BTreeMap<String, u64> {
    check_seconds_but(name, dyno, elected, &[]).inserts
}

/// The same of operations that may end by outcomes of `open`, too.
pub(crate) fn check_seconds_but(name: &str, dyno: &Dyno, elected: Timestamp, open: &[&str]) -> Seconds {
    let events = lines(dyno, "events.jsonl");
    let begin = events.iter().find(|event| event["event"] == "begin" && event["text"] == "measure").unwrap();
    let begin: Timestamp = begin["at"].as_str().unwrap().parse().unwrap();
    let settled_s = (elected.duration_since(begin).as_secs_f64() + 1.0).ceil();
    let mut sums = BTreeMap::<String, u64>::new();
    let mut settled = BTreeMap::<String, u64>::new();
    let mut before = 0;
    let all = lines(dyno, "intervals.jsonl");
    let last = all.iter().rfind(|second| second["phase"] == "measure").map(|second| &second["second"]);
    for second in all.iter().filter(|second| second["phase"] == "measure") {
        let number = second["second"].as_f64().unwrap();
        for (outcome, count) in second["ended"].as_object().unwrap() {
            // What a busy client has not sent by the end says nothing of the set: it waited, or was taken from the schedule then.
            let taken = second["arrivals"].as_u64().filter(|_| Some(&second["second"]) == last);
            let unsent = outcome == "aborted" && count.as_u64() <= second["backlog"].as_u64().max(taken);
            assert!(
                number < settled_s || outcome == "ok" || unsent || open.contains(&outcome.as_str()),
                "{name}: {count} {outcome} in second {number}; elected {settled_s} - 1; {second}"
            );
            if number >= settled_s && !unsent {
                *settled.entry(outcome.clone()).or_default() += count.as_u64().unwrap();
            }
        }
        let inserts =
            second["outcomes"].as_object().unwrap().iter().filter(|(kind, _)| kind.starts_with("INSERT"));
        for (outcome, count) in inserts.flat_map(|(_, outcomes)| outcomes.as_object().unwrap()) {
            *sums.entry(outcome.clone()).or_default() += count.as_u64().unwrap();
            if outcome == "ok" && number < settled_s {
                before += count.as_u64().unwrap();
            }
        }
    }
    // Several seconds are left, at 40 operations each, or some 20 transactions; a few of these on a busy host.
    assert!(settled.values().sum::<u64>() > 10, "{name}: {settled:?} after the election");
    Seconds { inserts: sums, before, settled }
}

/// Checks a load that has ended against the set: the time of the election, and the number of documents.
fn check(load: Load, elected: Timestamp, documents: &dyn Fn(&str) -> u64) {
    let Load { name, dyno, child, majority, retries } = load;
    dyno.assert_ran_but(&finish(child), &OPEN);
    let sums = check_seconds(&name, &dyno, elected);
    let ok = sums.get("ok").copied().unwrap_or(0);
    let open: u64 = sums
        .iter()
        .filter(|(outcome, _)| *outcome != "ok" && *outcome != "unreachable")
        .map(|(_, n)| n)
        .sum();
    let there = documents(name.split(' ').next().unwrap()) - 100;
    // Of what one member had acknowledged, the last may not have reached another one before the fault.
    let least = if majority { ok } else { ok.saturating_sub(20) };
    assert!((least..=ok + open).contains(&there), "{name}: {there} documents, {sums:?}");
    if retries {
        // What was lost was done once more, and once.
        assert_eq!(open, 0, "{name}: {sums:?}");
        assert!(there <= ok, "{name}: {there} documents, {sums:?}");
    }
}

/// Number of documents of a collection, by the member that was elected last. The others may answer nothing.
fn count(members: &[Mongo], database: &str, collection: &str) -> u64 {
    let host = members[primary(members)].host();
    admin(&format!("mongodb://{host}/{database}?directConnection=true")).unwrap().count(collection).unwrap()
}

/// Runs all loads; `fault` happens to the primary at their fifth second.
fn walk(members: &mut [Mongo], hosts: &str, concern: &str, fault: impl FnOnce(&mut [Mongo], usize)) {
    let loads = loads(hosts, concern);
    for load in &loads {
        load.dyno.await_phase("d", "measure");
    }
    std::thread::sleep(Duration::from_secs(4));
    let (old, since) = (primary(members), Timestamp::now());
    fault(members, old);
    let elected = await_election(members, old, since);
    loads
        .into_iter()
        .for_each(|load| check(load, elected, &|database| count(members, database, "usertable")));
}

/// Has a primary step down. It closes all connections, that of the command too.
pub(crate) fn step_down(primary: &Mongo) {
    let admin = admin(&format!("mongodb://{}/t?directConnection=true", primary.host())).unwrap();
    let _ = admin.run_on("admin", &|out| bson::put_int32(out, "replSetStepDown", 60));
}

fn members() -> Option<Vec<Mongo>> {
    (0..3).map(|_| Mongo::member()).collect()
}

const WITHOUT: &str = "mongod is not on PATH";

#[test]
fn a_primary_that_steps_down_is_followed() {
    let Some(mut members) = members() else { return skip_because("a step-down of mongod", WITHOUT) };
    let hosts = form(&members);
    walk(&mut members, &hosts, "majority", |members, old| step_down(&members[old]));
}

#[test]
fn a_primary_that_dies_is_followed() {
    let Some(mut members) = members() else { return skip_because("the death of a mongod", WITHOUT) };
    let hosts = form(&members);
    walk(&mut members, &hosts, "majority", |members, old| members[old].kill());
}

#[test]
fn a_primary_that_freezes_is_followed() {
    let Some(mut members) = members() else { return skip_because("a frozen mongod", WITHOUT) };
    let hosts = form(&members);
    walk(&mut members, &hosts, "1", |members, old| signal(members[old].pid(), "STOP"));
}

/// Waits until one member is primary and all others are secondaries, by their own words.
pub(crate) fn await_whole(members: &[Mongo], hosts: &str) {
    let states = || {
        let status = admin(&format!("mongodb://{hosts}/t?replicaSet=dyno"))?
            .run_on("admin", &|out| bson::put_int32(out, "replSetGetStatus", 1))
            .map_err(|error| error.to_string())?;
        let list = bson::find_element(&status, "members").and_then(|e| e.as_document()).unwrap_or_default();
        let each = bson::read_elements(list).into_iter().flatten().flatten().filter_map(|e| e.as_document());
        let states = each.filter_map(|one| bson::find_element(one, "stateStr")?.as_str().map(str::to_owned));
        Ok::<Vec<String>, String>(states.collect())
    };
    let begun = Instant::now();
    loop {
        let found = states().unwrap_or_default();
        let count = |state: &str| found.iter().filter(|one| *one == state).count();
        if count("PRIMARY") == 1 && count("SECONDARY") == members.len() - 1 {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the set is not whole: {found:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The drop-ins go through a second cut, of the primary that the first has brought about.
#[test]
fn a_primary_that_is_cut_off_is_followed() {
    let Some(lab) = Lab::new(&["db1", "db2", "db3"]) else {
        return skip_because("a mongod that is cut off", "no network namespaces or no sshd");
    };
    let hosts = ["db1", "db2", "db3"];
    let member = |host| {
        let (namespace, address) = (lab.namespace(host), lab.address(host));
        Mongo::from_path_in("mongod", &namespace, &address, &["--replSet", "dyno"])
    };
    let members = hosts.map(member);
    let Some(mut members) = members.into_iter().collect::<Option<Vec<Mongo>>>() else {
        return skip_because("a mongod that is cut off", WITHOUT);
    };
    let uri_hosts = form(&members);
    walk(&mut members, &uri_hosts, "1", |_, old| assert!(lab.cut(hosts[old], true)));
    hosts.iter().for_each(|host| assert!(lab.cut(host, false)));
    await_whole(&members, &uri_hosts);
    walk_drop_ins(&mut members, &uri_hosts, "1", |_, old| assert!(lab.cut(hosts[old], true)));
}

/// Iterations of a bulk of POCDriver's in these tests: several bulks a second, so that some meet the fault.
const BULK: u64 = 32;

/// Documents that POCDriver's threads have numbered up to the last one in the set, and that are not in the set.
fn missing(members: &[Mongo]) -> u64 {
    let host = members[primary(members)].host();
    let admin = admin(&format!("mongodb://{host}/POCDB?directConnection=true")).unwrap();
    let last = admin.run(&|out| {
        bson::put_string(out, "aggregate", "POCCOLL");
        bson::put_head(out, kind::ARRAY, "pipeline");
        let list = bson::open(out);
        bson::put_item_head(out, kind::DOCUMENT, 0);
        let stage = bson::open(out);
        bson::put_head(out, kind::DOCUMENT, "$group");
        let group = bson::open(out);
        bson::put_string(out, "_id", "$_id.w");
        bson::put_document(out, "last", &bson::build_document(|out| bson::put_string(out, "$max", "$_id.i")));
        bson::close(out, group);
        bson::close(out, stage);
        bson::close(out, list);
        bson::put_document(out, "cursor", &bson::build_document(|_| ()));
    });
    let last = last.unwrap();
    let workers = bson::element_at_path(&last, "cursor.firstBatch").and_then(|e| e.as_document()).unwrap();
    let each = bson::read_elements(workers).unwrap().flatten().filter_map(|e| e.as_document());
    let numbered = each.map(|one| bson::find_element(one, "last").and_then(|e| e.as_i64()).unwrap() + 1);
    numbered.sum::<i64>().unsigned_abs() - admin.count("POCCOLL").unwrap()
}

/// Checks POCDriver, whose bulk is sent once more when it is lost. One that begins while no primary is known is not sent:
/// then, and only then, its documents are not found later. `lost`: the fault may have undone the last writes of one member.
fn check_pocdriver(dyno: &Dyno, printed: &str, elected: Timestamp, members: &[Mongo], lost: bool) {
    let seconds = check_seconds_but("pocdriver", dyno, elected, &["not_found"]);
    let of = |outcomes: &BTreeMap<String, u64>, name: &str| outcomes.get(name).copied().unwrap_or(0);
    let (ok, unsent) = (of(&seconds.inserts, "ok"), of(&seconds.inserts, "unreachable"));
    assert_eq!(ok + unsent, seconds.inserts.values().sum::<u64>(), "pocdriver: {:?}", seconds.inserts);
    // The last summary has what was acknowledged.
    let line = printed.lines().rfind(|line| line.contains(" new documents inserted - collection has "));
    let numbers: Vec<u64> = line.unwrap().split(' ').filter_map(|word| word.parse().ok()).collect();
    let (reported, counted) = (numbers[1], count(members, "POCDB", "POCCOLL"));
    // What is inserted in more than a second: other members have what was inserted before.
    let undone = if lost { reported / 10 } else { 0 };
    assert!(counted <= reported && reported - counted <= undone, "{counted} there; {line:?}");
    let missing = missing(members);
    assert!(missing <= unsent * BULK + undone, "{missing} documents are missing, {:?}", seconds.inserts);
    // Keys are drawn evenly from all documents so far: of those at the time of the fault this share was missing.
    let there = counted * seconds.before / ok.max(1);
    let share = missing as f64 / (there + missing).max(1) as f64;
    let asked: u64 = seconds.settled.values().sum();
    let most = if missing > 0 { 3.0 * share * asked as f64 + 50.0 } else { 0.0 };
    let not_found = of(&seconds.settled, "not_found");
    assert!(not_found as f64 <= most, "{not_found} of {asked} not found, {missing} of {counted} missing");
}

/// The drop-ins go on after a fault too, and the set holds what they report.
fn walk_drop_ins(members: &mut [Mongo], hosts: &str, concern: &str, fault: impl FnOnce(&mut [Mongo], usize)) {
    let set = |database: &str| format!("mongodb://{hosts}/{database}?replicaSet=dyno&w={concern}");
    let (ycsb, poc, sysbench) = (Dyno::new(), Dyno::new(), Dyno::new());
    let url = format!("mongodb.url={}", set("ycsb"));
    let core = ["-p", "workload=site.ycsb.workloads.CoreWorkload", "-p", "recordcount=200", "-p", &url];
    // The first writes wait until the members of a new set have what a majority must have.
    ycsb.assert_ran_but(&ycsb.run(&[&["ycsb", "load", "mongodb"][..], &core].concat()), &["gone"]);
    let more = ["-p", "insertproportion=0.3", "-p", "readproportion=0.7", "-p", "updateproportion=0"];
    let pace =
        ["-p", "operationcount=1000000", "-p", "maxexecutiontime=18", "-target", "100", "-threads", "2"];
    let out = ["--out", "d"];
    // A retry waits for the next primary as long as an election on a busy host may take.
    let uri = set("").replace("/?", "/?retryWrites=true&serverSelectionTimeoutMS=20000&");
    let bulk = BULK.to_string();
    let sysbench_uri = format!("URI={}", set(""));
    let running = [
        ycsb.start(&[&["ycsb", "run", "mongodb", "-s"][..], &core, &more, &pace, &out].concat()),
        poc.start(&[
            "pocdriver",
            "-c",
            &uri,
            "-t",
            "2",
            "-d",
            "18",
            "-i",
            "30",
            "-k",
            "70",
            "-b",
            &bulk,
            "--out",
            "d",
        ]),
        sysbench.start(&[
            "sysbench-mongodb",
            &sysbench_uri,
            "NUM_COLLECTIONS=1",
            "NUM_DOCUMENTS_PER_INSERT=100",
            "NUM_DOCUMENTS_PER_COLLECTION=500",
            "NUM_LOADER_THREADS=1",
            "NUM_WRITER_THREADS=1",
            "DB_NAME=sbtest",
            "RUN_TIME_SECONDS=18",
            "--out",
            "d",
        ]),
    ];
    for dyno in [&ycsb, &poc, &sysbench] {
        dyno.await_phase("d", "measure");
    }
    std::thread::sleep(Duration::from_secs(4));
    let (old, since) = (primary(members), Timestamp::now());
    fault(members, old);
    let elected = await_election(members, old, since);
    let outputs = running.map(finish);
    for (dyno, output) in [&ycsb, &poc, &sysbench].into_iter().zip(&outputs) {
        dyno.assert_ran_but(output, &OPEN);
    }
    let inserts = check_seconds("ycsb", &ycsb, elected);
    let open: u64 = inserts.iter().filter(|(outcome, _)| *outcome != "ok").map(|(_, n)| n).sum();
    // Of what one member had acknowledged, the last may not have reached another one before the fault.
    let lost = if concern == "majority" { 0 } else { 100 };
    let (ok, there) = (inserts["ok"], count(members, "ycsb", "usertable") - 200);
    assert!((ok.saturating_sub(lost)..=ok + open).contains(&there), "ycsb: {there} documents, {inserts:?}");
    let warned = stderr(&outputs[1]);
    assert!(!warned.contains("could not be sent"), "{warned}");
    check_pocdriver(&poc, &stdout(&outputs[1]), elected, members, lost > 0);
    check_seconds("sysbench-mongodb", &sysbench, elected);
}

#[test]
fn drop_ins_follow_a_step_down() {
    let Some(mut members) = members() else { return skip_because("drop-ins on a step-down", WITHOUT) };
    let hosts = form(&members);
    walk_drop_ins(&mut members, &hosts, "majority", |members, old| step_down(&members[old]));
}

#[test]
fn drop_ins_follow_the_death_of_a_primary() {
    let Some(mut members) = members() else { return skip_because("drop-ins on a death", WITHOUT) };
    let hosts = form(&members);
    walk_drop_ins(&mut members, &hosts, "majority", |members, old| members[old].kill());
}

#[test]
fn drop_ins_leave_a_frozen_primary() {
    let Some(mut members) = members() else { return skip_because("drop-ins on a frozen mongod", WITHOUT) };
    let hosts = form(&members);
    walk_drop_ins(&mut members, &hosts, "1", |members, old| signal(members[old].pid(), "STOP"));
}
