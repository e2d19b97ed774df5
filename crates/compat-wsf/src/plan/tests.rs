use crate::plan::best_known_configs::best_known;
use crate::plan::cases::CASES;
use crate::plan::cases::choose;
use crate::plan::config::matches;
use crate::plan::lower::LoweredCase;
use crate::plan::lower::lower;
use crate::plan::lower::options::LowerOptions;
use crate::plan::sets::covering;
use crate::plan::*;
use dyno_config::experiment::read_plan;
use dyno_config::server::placement::Policy;

fn asked<'a>(
    name: &str,
    reading: Reading,
    environment: &'a dyn Fn(&str) -> Option<String>,
) -> CaseRequest<'a> {
    let case = choose(name).unwrap().case;
    CaseRequest { case, reading, typed: name.into(), environment, configs: &[], sets: &[], faithful: false }
}

const NOTHING: &dyn Fn(&str) -> Option<String> = &|_| None;

fn lowered(name: &str, reading: Reading) -> LoweredCase {
    lower(&resolve(&asked(name, reading, NOTHING), 0).unwrap(), &LowerOptions::default()).unwrap()
}

fn experiment(lowered: &LoweredCase) -> dyno_config::experiment::Experiment {
    read_plan(&lowered.text, "wsf", &[]).unwrap_or_else(|e| panic!("{e}\n{}", lowered.text)).base
}

fn set(text: &str) -> Vec<String> {
    let set = SetOption::parse(text).unwrap();
    (0..set.count())
        .map(|i| set.at(i).iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(","))
        .collect()
}

#[test]
fn series_of_set() {
    for (text, values) in [
        ("THREADS=1 2 5", "1 2 5"),
        ("THREADS=2 4 6 ...12", "2 4 6 8 10 12"),
        ("THREADS=2 4 6 ...13", "2 4 6 8 10 12"),
        ("THREADS=1 2 4 ...64", "1 2 4 8 16 32 64"),
        ("THREADS=1 2 4 ... 16", "1 2 4 8 16"),
        ("THREADS=40 30 20 ...0", "40 30 20 10 0"),
        ("THREADS=64 32 16 ...4", "64 32 16 8 4"),
        ("THREADS=0.1 0.2 0.3 ...0.5", "0.1 0.2 0.3 0.4 0.5"),
        ("THREADS=7 1 2 3 ...5", "7 1 2 3 4 5"),
        ("THREADS=1 2 3 ...12|4", "4 8 12"),
        ("THREADS=1 2 3 ...12 |4", "4 8 12"),
        ("THREADS=1 2 3 ...12 12|", "1 2 3 4 6 12"),
        ("CUSTOMER_NUMAOPT_SERVER=-N%201%20-m%201", "-N 1 -m 1"),
    ] {
        let (_, all) = SetOption::parse(text).unwrap().axes.remove(0);
        assert_eq!(all.join(" "), values, "{text}");
    }
    assert_eq!(set("A=1 2/B=x y"), ["A=1,B=x", "A=1,B=y", "A=2,B=x", "A=2,B=y"]);
    assert_eq!(set("DB_HOSTPATH=/mnt/a=b/c /mnt/d"), ["DB_HOSTPATH=/mnt/a=b/c", "DB_HOSTPATH=/mnt/d"]);
    assert_eq!(set("RECORD_COUNT="), ["RECORD_COUNT="]);
    assert_eq!(set("EVENT_TRACE_PARAMS=roi,RUN PHASE,end"), ["EVENT_TRACE_PARAMS=roi,RUN PHASE,end"]);
}

#[test]
fn series_that_cannot_be_meant() {
    for (text, word) in [
        ("THREADS", "VAR=VALUES"),
        ("=3", "VAR=VALUES"),
        ("THREADS=1 2 ...9", "3 or more"),
        ("THREADS=2 2 2 ...9", "do not change"),
        ("THREADS=1 2 5 ...9", "neither"),
        ("THREADS=1 2 3 ...", "behind the dots"),
        ("THREADS=4 5 6 ...1", "beyond"),
        ("THREADS=a b c ...d", "needs numbers"),
        ("THREADS=5 7|2", "leaves no value"),
        ("THREADS=1 2|0", "whole number from 1"),
        ("A=1/A=2", "twice"),
        ("THREADS=1 2 3 ...99999999", "more than"),
    ] {
        let error = SetOption::parse(text).unwrap_err().to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
}

#[test]
fn several_options_advance_together() {
    let sets: Vec<SetOption> =
        ["THREADS=1 2 3", "RECORD_COUNT=10 20"].iter().map(|t| SetOption::parse(t).unwrap()).collect();
    assert_eq!(covering(&sets), 3);
    let asked = CaseRequest { sets: &sets, ..asked("read", Reading::V23, NOTHING) };
    let values: Vec<String> = (0..4)
        .map(|i| resolve(&asked, i).unwrap())
        .map(|r| format!("{} {}", r.value("THREADS"), r.value("RECORD_COUNT")))
        .collect();
    assert_eq!(values, ["1 10", "2 20", "3 10", "1 20"]);
}

#[test]
fn the_last_word_wins() {
    let environment = |name: &str| match name {
        "THREADS" => Some("5".to_owned()),
        "CLIENT_COUNT" => Some("2".to_owned()),
        "FIELD_COUNT" => Some("7".to_owned()),
        "TARGET" => Some(String::new()),
        "REPLICA_SET" => Some("true".to_owned()),
        _ => None,
    };
    let file = "'test_*_gated': {FIELD_COUNT: 8, RECORD_COUNT: 500}\n'*_read': {FIELD_COUNT: 9}\n";
    let configs = [Config::parse(file, "my.yaml", false).unwrap()];
    let sets = [SetOption::parse("RECORD_COUNT=600").unwrap()];
    let asked = CaseRequest { configs: &configs, sets: &sets, ..asked("gated", Reading::V23, &environment) };
    let resolved = resolve(&asked, 0).unwrap();
    let shown = |name: &str| {
        let given = resolved.given(name).unwrap();
        format!("{} {}", given.value, given.source)
    };
    assert_eq!(shown("THREADS"), "1 case");
    assert_eq!(shown("FIELD_COUNT"), "8 my.yaml: test_*_gated");
    assert_eq!(shown("RECORD_COUNT"), "600 --set");
    assert_eq!(shown("TARGET"), "0 default");
    assert_eq!(resolved.suffix(), "_customized");
    assert!(resolved.notes.iter().any(|note| note.contains("THREADS: the case overwrites")));
    assert!(resolved.notes.iter().any(|note| note.contains("REPLICA_SET is a variable of reading 25")));
}

#[test]
fn wrong_values_are_refused() {
    for (text, word) in [
        ("THREADS=0", "whole number from 1"),
        ("THREDS=1", "THREADS"),
        ("REQUEST_DISTRIBUTION=zipfain", "zipfian"),
        ("INSERT_ORDER=hased", "hashed"),
        ("READ_PROPORTION=1.5", "from 0 to 1"),
        ("CORES=3-", "0-3,8"),
        ("NETWORK_RPS_TUNE_ENABLE=true", "reading 23.3 (--reading 23.3), not of 25"),
        ("EVENT_TRACE_PARAMS=roi,a", "triples"),
        ("EVENT_TRACE_PARAMS=time,x,5", "whole seconds"),
        ("EVENT_TRACE_PARAMS=tim,1,5", "roi or time"),
        ("EVENT_TRACE_PARAMS=roi,begin_region,end_region", "no phrase of the log"),
        ("EVENT_TRACE_PARAMS=roi,benchmark-finish,RUN_PHASE", "end comes before its begin"),
        ("EVENT_TRACE_PARAMS=roi,/(/,RUN_PHASE", "no regular expression"),
    ] {
        let sets = [SetOption::parse(text).unwrap()];
        let error = resolve(&CaseRequest { sets: &sets, ..asked("read", Reading::V25, NOTHING) }, 0)
            .unwrap_err()
            .to_string();
        assert!(error.contains(word), "{text}: {error}");
    }
}

#[test]
fn cases_go_by_many_names() {
    for (text, name, reading) in [
        ("gated", "gated", None),
        ("wsf-23.3/write", "write", Some(Reading::V23)),
        ("mongodb_ycsb_90read10update", "90read10update", None),
        ("test_mongodb_ycsb_90read10update", "90read10update", None),
        ("test_static_ycsb_mongodb604_base_30write70read", "30write70read", None),
    ] {
        let chosen = choose(text).unwrap();
        assert_eq!((chosen.case.name, chosen.reading), (name, reading), "{text}");
    }
    assert!(choose("wirte").unwrap_err().to_string().contains("write"));
    assert!(choose("wsf-7/write").unwrap_err().to_string().contains("no reading"));
    assert!(matches("test_*_base_*", "test_ycsb_mongodb441_base_read"));
    assert!(matches("*_re?d", "mongodb_ycsb_read") && !matches("*_re?", "mongodb_ycsb_read"));
}

#[test]
fn every_case_is_an_experiment_in_both_readings() {
    for reading in [Reading::V23, Reading::V25] {
        for case in CASES.iter().filter(|case| case.registered && case.overwrites(reading, false).is_some()) {
            let spec = experiment(&lowered(case.name, reading));
            assert!(spec.server.is_some(), "{}", case.name);
        }
    }
    let share = |name: &str, reading, key: &str| {
        experiment(&lowered(name, reading)).workload.ycsb.unwrap().properties[key].clone()
    };
    assert_eq!(share("write", Reading::V23, "insertproportion"), "1.0");
    assert_eq!(share("write", Reading::V25, "updateproportion"), "1.0");
    assert_eq!(share("30write70read", Reading::V23, "insertproportion"), "0.30");
    assert_eq!(share("30write70read", Reading::V25, "updateproportion"), "0.30");
    assert_eq!(share("pkm", Reading::V23, "readproportion"), "0.90");
}

#[test]
fn the_window_of_pkm_lies_in_its_run_phase() {
    for reading in [Reading::V23, Reading::V25] {
        let lowered = lowered("pkm", reading);
        assert_eq!(lowered.windows, [Window::Time { begin_s: 300, length_s: 300 }]);
        let spec = experiment(&lowered);
        assert_eq!(spec.window.from.unwrap().to_string(), "5m");
        assert_eq!(spec.window.to.clone().unwrap().to_string(), "10m");
        assert!(spec.phases.measure.operations.is_none());
        assert!(spec.phases.measure.duration.unwrap() >= spec.window.to.unwrap());
    }
    let two = Window::parse_all("roi,RUN PHASE,benchmark-finish,time,60,30").unwrap();
    assert_eq!(two[0], Window::Roi { begin: "RUN PHASE".into(), end: "benchmark-finish".into() });
    assert_eq!(two[1].seconds(), Some((60, 90)));
    let original = CaseRequest { faithful: true, ..asked("pkm", Reading::V23, NOTHING) };
    let original = resolve(&original, 0).unwrap();
    assert_eq!((original.value("READ_PROPORTION"), original.value("MAX_EXECUTION_TIME")), ("0.95", "180"));
}

#[test]
fn windows_are_parts_of_phases() {
    let parts = |text: &str| -> Vec<String> {
        let windows = Window::parse_all(text).unwrap();
        let all = windows.iter().flat_map(|window| window.traced().unwrap());
        all.map(|part| format!("{} {} {:?}", part.phase.name(), part.from_s, part.length_s)).collect()
    };
    assert_eq!(parts("roi,RUN PHASE,benchmark-finish"), ["measure 0 None"]);
    assert_eq!(parts("roi,RUN_PHASE+2m,benchmark-finish"), ["measure 120 None"]);
    assert_eq!(parts("roi,[LOAD_PHASE],benchmark-finish"), ["load 0 None", "measure 0 None"]);
    assert_eq!(parts("roi,LOAD PHASE,RUN PHASE"), ["load 0 None"]);
    assert_eq!(parts("roi,LOAD PHASE+1s,RUN PHASE+5s"), ["load 1 None", "measure 0 Some(5)"]);
    assert_eq!(
        parts("roi,/RUN.PHASE/,RUN_PHASE+1h,time,60,30"),
        ["measure 0 Some(3600)", "measure 60 Some(30)"]
    );
}

#[test]
fn tracers_run_in_every_window() {
    let tracers = vec![vec!["perf".into(), "stat".into(), "-a".into()], vec!["sar".to_owned()]];
    let means = LowerOptions { tracers, ..LowerOptions::default() };
    let lowered = lower(&resolve(&asked("pkm", Reading::V25, NOTHING), 0).unwrap(), &means).unwrap();
    let traces = experiment(&lowered).traces;
    assert_eq!(traces.len(), 2);
    assert_eq!(traces[0].command, ["perf", "stat", "-a"]);
    assert_eq!((traces[1].from.0, traces[1].length.as_ref().unwrap().0), (300_000_000_000, 300_000_000_000));
    // Blank is the whole execution.
    let sets = [SetOption::parse("EVENT_TRACE_PARAMS=").unwrap()];
    let whole = resolve(&CaseRequest { sets: &sets, ..asked("read", Reading::V25, NOTHING) }, 0).unwrap();
    let phases: Vec<&str> =
        experiment(&lower(&whole, &means).unwrap()).traces.iter().map(|t| t.phase.name()).collect();
    assert_eq!(phases, ["load", "load", "measure", "measure"]);
}

#[test]
fn a_mix_that_does_not_sum_to_one_is_refused() {
    let resolved = resolve(&asked("30write60read10insert", Reading::V25, NOTHING), 0).unwrap();
    let error = lower(&resolved, &LowerOptions::default()).unwrap_err().to_string();
    assert!(error.contains("sum to 1.1") && error.contains("--faithful-weights"), "{error}");
    let weights =
        lower(&resolved, &LowerOptions { faithful_weights: true, ..LowerOptions::default() }).unwrap();
    assert!(weights.notes.iter().any(|note| note.contains("9.1 % are inserts")), "{:?}", weights.notes);
}

#[test]
fn the_keys_of_the_run_phase() {
    let gated = lowered("gated", Reading::V25);
    assert!(gated.notes.iter().any(|note| note.contains("INSERT_COUNT=0 means all records")));
    assert!(experiment(&gated).workload.ycsb.unwrap().run_properties.is_empty());
    let means = LowerOptions { faithful: true, ..LowerOptions::default() };
    let resolved = resolve(&asked("gated", Reading::V25, NOTHING), 0).unwrap();
    let kept = lower(&resolved, &means).unwrap();
    let run = experiment(&kept).workload.ycsb.unwrap().run_properties;
    assert_eq!((run["insertcount"].as_str(), run["requestdistribution"].as_str()), ("1", "uniform"));
    assert!(kept.notes.iter().any(|note| note.contains("same one key")));
    assert!(experiment(&kept).phases.pause.is_some());
    // Blank in the newer reading: what the description says, not the file's 1000.
    assert_eq!(
        experiment(&lowered("read", Reading::V25)).workload.ycsb.unwrap().records.unwrap().0,
        4_000_000
    );
}

#[test]
fn a_run_phase_without_keys_can_be_run_with_every_distribution() {
    let means = LowerOptions { faithful: true, ..LowerOptions::default() };
    for (distribution, count) in [
        ("zipfian", "0"),
        ("uniform", "1"),
        ("latest", "1"),
        ("hotspot", "1"),
        ("exponential", "1"),
        ("sequential", "1"),
    ] {
        let requests = format!("REQUEST_DISTRIBUTION={distribution}");
        let words = ["READ_PROPORTION=0.80", "INSERT_PROPORTION=0.10", requests.as_str()];
        let sets: Vec<SetOption> = words.iter().map(|text| SetOption::parse(text).unwrap()).collect();
        let asked = CaseRequest { sets: &sets, ..asked("gated", Reading::V25, NOTHING) };
        let kept = lower(&resolve(&asked, 0).unwrap(), &means).unwrap();
        let ycsb = experiment(&kept).workload.ycsb.unwrap();
        assert_eq!(ycsb.run_properties["insertcount"], count, "{distribution}");
        let records = ycsb.records.unwrap().0.to_string();
        let read = dyno_workload::ycsb::CoreConfig::from_lookup(&mut |key: &str| match key {
            "recordcount" => Some(records.clone()),
            _ => ycsb.run_properties.get(key).or_else(|| ycsb.properties.get(key)).cloned(),
        });
        assert!(read.is_ok(), "{distribution}: {read:?}");
    }
}

#[test]
fn placement_and_mongod() {
    let lower_with = |reading, sets: &[&str]| {
        let sets: Vec<SetOption> = sets.iter().map(|text| SetOption::parse(text).unwrap()).collect();
        let asked = CaseRequest { sets: &sets, ..asked("read", reading, NOTHING) };
        lower(&resolve(&asked, 0).unwrap(), &LowerOptions::default()).map_err(|error| error.to_string())
    };
    let spec = experiment(
        &lower_with(Reading::V23, &["NUMACTL_OPTION=2", "SELECT_NUMA_NODE=1", "CORES=0-3"]).unwrap(),
    );
    let server = spec.server.unwrap();
    assert_eq!(
        (server.placement.policy, server.placement.node, server.port),
        (Policy::Node, Some(1), Some(27017))
    );
    assert_eq!((server.instances, server.journal), (3, Some(false)));
    let spec = experiment(
        &lower_with(
            Reading::V25,
            &[
                "CUSTOMER_NUMAOPT_SERVER=numactl%20-N%201",
                "CACHE_SIZE_GB=1.5",
                "DB_HOSTPATH=/a%20/b",
                "REPLICA_SET=true",
            ],
        )
        .unwrap(),
    );
    let server = spec.server.unwrap();
    assert_eq!(server.placement.numactl.as_deref(), Some("-N 1"));
    assert_eq!(server.cache.unwrap().to_string(), "1536MiB");
    assert_eq!(server.data.path.unwrap().all_paths().len(), 2);
    assert_eq!(server.members, Some(1));
    assert_eq!(server.journal, None);
    assert!(lower_with(Reading::V23, &["NUMACTL_OPTION=3"]).unwrap_err().contains("0 to 2"));
    assert!(lower_with(Reading::V25, &["NUMACTL_OPTION=3"]).unwrap_err().contains("CORE_NUMS_EACH_INSTANCE"));
    assert!(lower_with(Reading::V25, &["TLS_FLAG=1"]).unwrap_err().contains("TLS"));
    // What 23.3 looked at before --set had spoken.
    let single =
        lower_with(Reading::V23, &["RUN_SINGLE_NODE=true", "YCSB_CORES=1", "CLIENT_COUNT=1"]).unwrap();
    assert_eq!(experiment(&single).client.placement.cores.unwrap().0, [1]);
}

#[test]
fn best_known_configurations() {
    for (name, pairs, policy) in [
        ("icx", 16, Policy::BindByPort),
        ("spr", 16, Policy::Node),
        ("m6i.32xlarge", 16, Policy::BindByPort),
        ("bkm-m6i.16xlarge", 8, Policy::Node),
    ] {
        let text = best_known(name).unwrap().experiment().unwrap();
        let spec = read_plan(&text, name, &[]).unwrap().base;
        let server = spec.server.unwrap();
        assert_eq!((server.instances, server.placement.policy), (pairs, policy), "{name}");
        assert_eq!(spec.phases.measure.users, Some(64));
    }
    let configs = [best_known("spr").unwrap().config(Reading::V25).unwrap()];
    let resolved =
        resolve(&CaseRequest { configs: &configs, ..asked("read", Reading::V25, NOTHING) }, 0).unwrap();
    assert_eq!(resolved.suffix(), "_withbkc");
    // The command of m6i.32xlarge sets what 25 has no more.
    for (reading, is_set) in [(Reading::V23, true), (Reading::V25, false)] {
        let configs = [best_known("m6i.32xlarge").unwrap().config(reading).unwrap()];
        let found =
            resolve(&CaseRequest { configs: &configs, ..asked("read", reading, NOTHING) }, 0).unwrap();
        assert_eq!(found.on("NETWORK_RPS_TUNE_ENABLE"), is_set, "{reading}");
    }
    assert_eq!(resolve(&asked("read", Reading::V25, NOTHING), 0).unwrap().suffix(), "");
}

#[test]
fn variables_have_names_and_defaults_of_their_own() {
    for (at, variable) in VARIABLES.iter().enumerate() {
        assert!(VARIABLES[..at].iter().all(|other| other.name != variable.name), "{} twice", variable.name);
        for default in variable.defaults.into_iter().flatten() {
            variable.kind.check(default).unwrap_or_else(|e| panic!("{}: {e}", variable.name));
        }
    }
}
