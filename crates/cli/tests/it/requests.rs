//! `dyno requests` where there is nothing to be said.

use dyno_testkit::{Dyno, assert_exit, stderr};

#[test]
fn runs_outside_of_pods_have_no_requests() {
    let dyno = Dyno::new();
    let run = dyno.run(&[
        "run",
        "null:",
        "--ops",
        "1000",
        "--warmup",
        "0s",
        "--records",
        "100",
        "--out",
        "one",
        "-q",
    ]);
    assert_exit(&run, &[0, 5]);
    for (folder, expected) in
        [("one", "one: no run in pods whose pods were watched"), ("none", "none: No such file")]
    {
        let refused = dyno.run(&["requests", folder]);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(expected), "{}", stderr(&refused));
    }
}
