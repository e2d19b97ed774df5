//! `cluster.config` of bexhoma: what `dyno bexhoma` takes of it, and what it says of the rest.

use dyno_testkit::{Dyno, assert_exit, skip, stderr, stdout};
use std::fs;
use std::process::Output;

const FLAGS: &str = "-dbms Redis -sf 1 -xwl a -xop 1 -xtb 500 -xnlf 1 -xnbf 1 -nlp 2 -nlt 4 -nbt 4 --scale 1000 \
                     --set client.threads=1 --resultfolder results -q";

const CONFIG: &str = "{
    'credentials': {'k8s': {'context': {
        'lab': {'namespace': 'bench', 'clustername': 'Lab'},
        'other': {'namespace': 'else'},
    }}},
    'catalogue': {'metrics': {
        'replies': {'metric': 'counter', 'query': 'sum(redis_commands_processed_total)', 'title': 'Replies Sent [count]'},
        # bexhoma prints the difference of two rates for this one
        'rate': {'metric': 'counter', 'query': 'sum(rate(redis_commands_processed_total[5m]))', 'title': 'Commands [1/s]'},
        'memory': {'metric': 'gauge', 'query': 'max(redis_memory_used_bytes)/1024/1024', 'title': 'Memory [MiB]'},
        'lag': {'metric': 'gauge', 'query': 'sum(redis_replica_lag)', 'title': 'Lag'},
        'off': {'active': False, 'query': 'sum(y)', 'title': 'Off'},
    }},
    'dockers': {'Redis': {
        'loadData': 'redis-cli < {scriptname}', 'delay_prepare': 1, 'datadir': '/data', 'priceperhourdollar': 0.5,
        'logfile': '/var/log/redis.log', 'colour': 'red',
        'monitor': {'sut': {'metrics': 'catalogue', 'discovery': True, 'headless': True, 'discovery_config': '''
  - job_name: x'''}},
    }},
}
";

fn bexhoma(dyno: &Dyno, text: &str) -> Output {
    let mut all = vec!["bexhoma"];
    all.extend(text.split_whitespace());
    dyno.run(&all)
}

/// The row below a heading's table head, by column.
fn figure(summary: &str, section: &str, column: &str) -> String {
    let at = summary.find(section).unwrap_or_else(|| panic!("no {section}:\n{summary}"));
    let mut lines = summary[at..].lines().filter(|line| line.starts_with('|'));
    let cells =
        |line: &str| line.trim_matches('|').split('|').map(|c| c.trim().to_owned()).collect::<Vec<_>>();
    let head = cells(lines.next().unwrap());
    let at = head.iter().position(|name| name == column).unwrap_or_else(|| panic!("{column}: {head:?}"));
    cells(lines.nth(1).unwrap())[at].clone()
}

#[test]
fn metrics_price_and_delay() {
    if dyno_databases::spawn::find_server(Some("redis")).is_none() {
        return skip("cluster.config of dyno bexhoma");
    }
    let dyno = Dyno::new();
    fs::write(dyno.path("cluster.config"), CONFIG).unwrap();
    let done = bexhoma(&dyno, &format!("ycsb {FLAGS} --local -m -ma run"));
    dyno.assert_bexhoma_ran(&done);
    let (summary, said) = (stdout(&done), stderr(&done));
    let execution = "#### Execution phase: SUT deployment";
    let measured = |column: &str| figure(&summary, execution, column).parse::<f64>().unwrap();
    // A thousand operations at 500 a second; monitors ask a few questions of their own.
    assert!((950.0..1_200.0).contains(&measured("Replies Sent [count]")), "{summary}");
    assert!((100.0..650.0).contains(&measured("Commands [1/s]")), "a rate is a rate: {summary}");
    assert!(measured("Memory [MiB]") > 0.5, "{summary}");
    assert_eq!(figure(&summary, execution, "Lag"), "-");
    assert!(said.contains("note: Lag: redis_replica_lag: was not recorded"), "{said}");
    assert!(!summary.contains("| Off"), "{summary}");
    // Two commands for each of a thousand inserts.
    let loaded: f64 =
        figure(&summary, "#### Loading phase: SUT deployment", "Replies Sent [count]").parse().unwrap();
    assert!((1_900.0..2_300.0).contains(&loaded), "{summary}");
    // The CPU of two seconds of loading is measured, of servers and of loaders.
    for component in ["### Loading phase: SUT deployment", "### Loading phase: component loader"] {
        let cpu: f64 = figure(&summary, component, "CPU [CPUs]").parse().unwrap();
        assert!(cpu > 0.0 && cpu < 4.0, "{component}: {summary}");
    }
    for message in [
        "cluster.config:16:52: dockers.Redis.colour: is not known",
        "note: dockers.Redis.loadData: without effect",
        "note: dockers.Redis.logfile: without effect",
        "note: dockers.Redis.monitor: nothing is discovered",
    ] {
        assert!(said.contains(message), "no {message:?} in {said}");
    }
    let code = fs::read_dir(dyno.path("results")).unwrap().next().unwrap().unwrap().path();
    let page = fs::read_to_string(code.join("report.html")).unwrap();
    assert!(
        page.contains("Per currency unit") || page.to_lowercase().contains("currency"),
        "the price is in the report"
    );
    let text = fs::read_to_string(code.join("experiment.json")).unwrap();
    assert!(text.contains("hooks.before_load=[[sleep, '1']]"), "delay_prepare: {text}");
    // Made anew, it says the same.
    let name = code.file_name().unwrap().to_string_lossy().into_owned();
    let again = bexhoma(&dyno, &format!("summary -e {name} --resultfolder results"));
    assert!(stdout(&again).contains("Commands [1/s]"), "{}", stdout(&again));
}

#[test]
fn contexts_are_those_of_the_file() {
    let dyno = Dyno::new();
    fs::write(dyno.path("other.config"), CONFIG).unwrap();
    let dry = |more: &str| bexhoma(&dyno, &format!("ycsb {FLAGS} {more} run --dry-run"));
    let unknown = dry("--cluster-config other.config -cx nowhere");
    assert_exit(&unknown, &[2]);
    assert!(
        stderr(&unknown).contains("-cx nowhere: is no context of cluster.config: expected lab, other"),
        "{}",
        stderr(&unknown)
    );
    let known = dry("--cluster-config other.config -cx lab");
    assert_exit(&known, &[0]);
    assert!(stdout(&known).contains("\n  context: \"lab\""), "{}", stdout(&known));
    assert!(stdout(&known).contains("# --set kubernetes.namespace=bench\n"), "{}", stdout(&known));
    let absent = dry("--cluster-config absent.config");
    assert_exit(&absent, &[2]);
    assert!(stderr(&absent).contains("absent.config: "), "{}", stderr(&absent));
    fs::write(dyno.path("cluster.config"), "{'dockers': {'Redis': open('/etc/passwd')}}").unwrap();
    let evaluated = dry("--local");
    assert_exit(&evaluated, &[2]);
    let message = "cluster.config:1:23: \"open\": only literals are read; names and calls are not evaluated";
    assert!(stderr(&evaluated).contains(message), "{}", stderr(&evaluated));
}
