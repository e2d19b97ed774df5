//! `dyno bexhoma` in pods: what its summary says of nodes and counters, and the port that it prints.

use crate::kube::Cluster;
use dyno_testkit::{Dyno, assert_exit, stdout};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn bexhoma(cluster: &Cluster, dyno: &Dyno, text: &str) -> String {
    let kubectl = format!("kubernetes.kubectl={}", cluster.lab.join("k").display());
    let mut all = vec!["bexhoma"];
    all.extend(text.split_whitespace());
    let own = "-dbms Redis -xwl a --scale 1000 -xtb 1000 -xnlf 2 -xnbf 2 -nlp 2 -nlt 8 -nbt 8 -xop 4 -m -mc -ma -q --image \
               localhost/dyno:test --namespace bench --set kubernetes.server_image=localhost/redis:7 --set kubernetes.pull=Never \
               --resultfolder results -rr 64Mi -rc 100m -lr 512Mi -lc 0 --set";
    let end = all.len() - 1;
    let mode = all.remove(end);
    all.extend(own.split_whitespace());
    all.extend([kubectl.as_str(), mode]);
    let output = dyno.run(&all);
    dyno.assert_bexhoma_ran(&output);
    stdout(&output)
}

pub fn summary_of_a_run_and_servers_that_others_reach(cluster: &Cluster) {
    let dyno = Dyno::new();
    let summary = bexhoma(cluster, &dyno, "ycsb run");
    // Facts of the node, not of the host where the user typed the command; and what the server was given.
    for line in [
        "* Redis-1-1-1-1 uses docker image localhost/redis:7",
        "  * limits_memory:512Mi",
        "  * requests_cpu:100m",
        "  * eval_parameters",
        "  * client pod 2",
    ] {
        assert!(summary.lines().any(|found| found == line), "no {line:?}:\n{summary}");
    }
    // Clients go where no server is.
    let node = |before: &str| {
        let found = summary.lines().find_map(|line| line.strip_prefix(before));
        found.unwrap_or_else(|| panic!("no {before:?}:\n{summary}"))
    };
    let (server, client) = (node("  * node:"), node("    * node:"));
    assert!(server.starts_with("node") && client.starts_with("node") && server != client, "{summary}");
    // The server's lines stand before bexhoma's parameters, in its order; an agent beside it knows the processor.
    let section = summary.split("\n* Redis-1-1-1-1 uses docker image ").nth(1).unwrap();
    let own = section.split("  * eval_parameters\n").next().unwrap();
    let keys = own.lines().filter_map(|line| line.strip_prefix("  * ")?.split(':').next());
    let keys: Vec<&str> = keys.filter(|key| *key != "CPU").collect();
    let facts = ["RAM", "Cores", "host", "node", "disk", "cpu_list"];
    let given = ["requests_cpu", "requests_memory", "limits_memory", "image_id"];
    assert_eq!(keys, [&facts[..], &given[..]].concat(), "{own}");
    // Counters are whole in pods, too: two commands a row, one an operation, and a few of dyno's own.
    for (phase, least) in [("Loading", 2_000), ("Execution", 4_000)] {
        let below = summary.split(&format!("#### {phase} phase: SUT deployment\n")).nth(1).unwrap();
        let row = below.lines().find(|line| line.starts_with("| Redis-1-1-1-1 ")).unwrap();
        let replies: u64 = row.split('|').nth(2).unwrap().trim().parse().unwrap_or_else(|_| panic!("{row}"));
        assert!((least..least + 400).contains(&replies), "{phase}: {row}");
        // Shorter than a kubelet's period: the database says what its process has used.
        let below = summary.split(&format!("\n### {phase} phase: SUT deployment\n")).nth(1).unwrap();
        assert!(below.lines().nth(1).is_some_and(|line| line.starts_with("| DBMS ")), "{phase}: {summary}");
    }
    assert!(summary.contains("* TEST passed: Workflow as planned\n"), "{summary}");
    cluster.assert_nothing_left(Duration::from_secs(20));

    let dyno = Dyno::new();
    let loaded = bexhoma(cluster, &dyno, "ycsb load");
    let printed = loaded.split('`').find(|message| message.contains("port-forward")).unwrap();
    let words: Vec<&str> = printed.split_whitespace().collect();
    let told = std::fs::File::create(dyno.path("forwarded")).unwrap();
    let mut forward =
        Command::new(words[0]).args(&words[1..]).stdout(told).stderr(Stdio::null()).spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    let forwards =
        || std::fs::read_to_string(dyno.path("forwarded")).unwrap().contains("Forwarding from 127.0.0.1:");
    while !forwards() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(100));
    }
    let works = forwards();
    dyno_testkit::signal(forward.id(), "TERM");
    forward.wait().unwrap();
    assert!(works, "{printed}");
    let code = std::fs::read_dir(dyno.path("results")).unwrap().next().unwrap().unwrap().file_name();
    let code = code.to_string_lossy().into_owned();
    assert_exit(&dyno.run(&["bexhoma", "stop", "-e", &code, "--resultfolder", "results"]), &[0]);
    cluster.assert_nothing_left(Duration::from_secs(30));
}
