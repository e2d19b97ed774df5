//! `dyno run --in-cluster` and its commands where there is no cluster: what is wrong is said, and nothing is left.

use dyno_testkit::{Dyno, assert_exit, stderr};

const PODS: &str = "server: {kind: redis}\nkubernetes: {kubectl: /nowhere/kubectl}\nworkload: {ycsb: {records: 10}}\n\
                    phases: {measure: {duration: 1s}}\n";

#[test]
fn what_cannot_be_conducted_is_refused_with_its_reason() {
    let dyno = Dyno::new();
    std::fs::write(dyno.path("pods.yaml"), PODS).unwrap();
    std::fs::write(dyno.path("here.yaml"), PODS.replace("kubernetes: {kubectl: /nowhere/kubectl}\n", ""))
        .unwrap();
    std::fs::write(dyno.path("own.yaml"), PODS.replace("{kubectl", "{manifests: own, kubectl")).unwrap();
    std::fs::create_dir(dyno.path("own")).unwrap();
    let store = |text: &str| format!("kubernetes.controller.store={text}");
    let sets = [
        store("{bucket: b, login: l, endpoint: 'http://u:p@h'}"),
        store("{bucket: b, login: l, prefix: ../a}"),
        store("{bucket: b/c, login: l}"),
    ];
    let with = |at: usize| ["run", "pods.yaml", "--in-cluster", "--set", sets[at].as_str()];
    let (login, prefix, bucket) = (with(0), with(1), with(2));
    let both = [&with(0)[..3], &["--set", "kubernetes.controller={claim: c, store: {bucket: b, login: l}}"]]
        .concat();
    for (words, code, said) in [
        (&["run", "null:", "--in-cluster"][..], 2, "--in-cluster: goes with an experiment"),
        (&["run", "here.yaml", "--in-cluster"], 2, "the experiment has no section `kubernetes`"),
        (&["run", "own.yaml", "--in-cluster"], 2, "kubernetes.manifests: own is a folder of this host"),
        (&["run", "pods.yaml", "--in-cluster", "--out", "d"], 3, "/nowhere/kubectl: No such file"),
        (
            &["run", "pods.yaml", "--in-cluster", "--junit", "j.xml"],
            2,
            "--in-cluster and --junit exclude each other",
        ),
        (&["run", "pods.yaml", "--in-cluster", "--set", "kubernetes.controller.sise=1"], 2, "size"),
        (&login[..], 2, "store.endpoint: expected http://HOST:PORT"),
        (&prefix[..], 2, "store.prefix: \"../a\": expected names with '/'"),
        (&bucket[..], 2, "store.bucket: \"b/c\": expected a name of letters"),
        (&both[..], 2, "kubernetes.controller.claim: is for a volume"),
        (&["logs", "d"], 2, "no `dyno run --in-cluster` has made this directory"),
        (&["fetch", "d"], 2, "no `dyno run --in-cluster` has made this directory"),
    ] {
        let output = dyno.run(words);
        assert_exit(&output, &[code]);
        assert!(stderr(&output).contains(said), "{words:?}: {}", stderr(&output));
        assert!(!dyno.path("d").exists(), "{words:?} has left its directory");
    }
}

/// A directory of another user's making must not choose which programs are started.
#[test]
fn a_controller_that_others_may_write_is_not_followed() {
    use std::os::unix::fs::PermissionsExt;
    let dyno = Dyno::new();
    std::fs::create_dir(dyno.path("d")).unwrap();
    let file = dyno.path("d/controller.json");
    let text = r#"{"version": 1, "name": "dyno-1", "claim": "c", "own_claim": true,
                   "kubernetes": {"kubectl": "/nowhere/kubectl"}}"#;
    std::fs::write(&file, text).unwrap();
    let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    for words in [["logs", "d"], ["fetch", "d"], ["status", "d"], ["stop", "d"]] {
        mode(0o666);
        let output = dyno.run(&words);
        assert_exit(&output, &[2]);
        assert!(stderr(&output).contains("others may reach it"), "{words:?}: {}", stderr(&output));
        // One's own is: it starts what it names.
        mode(0o600);
        let output = dyno.run(&words);
        assert_exit(&output, &[3]);
        assert!(stderr(&output).contains("/nowhere/kubectl"), "{words:?}: {}", stderr(&output));
    }
}
