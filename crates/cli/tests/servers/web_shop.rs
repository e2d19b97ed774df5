//! The web shop of `docs/examples/web-shop`: its traffic recorded, replayed and learned, as `docs/own-traffic.md` does.

use crate::record_proxy::{calls, start_proxy};
use dyno_testkit::{Dyno, RedisProcess, assert_exit, phase, skip, skip_because, stdout};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const SHOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/web-shop/shop.py");

/// A shop that ends with the test.
struct Shop {
    child: Child,
    address: String,
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open_shop(redis: u16) -> Shop {
    let mut child = Command::new("python3")
        .args([SHOP, "serve", "--port", "0", "--redis", &format!("127.0.0.1:{redis}")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit("//").next().unwrap().trim_end_matches('/').to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    Shop { child, address }
}

#[test]
fn the_traffic_of_a_shop_is_replayed() {
    if Command::new("python3").arg("--version").output().is_err() {
        return skip_because("the web shop", "python3 is not on PATH");
    }
    let (Some(then), Some(now)) = (RedisProcess::start(&[]), RedisProcess::start(&[])) else {
        return skip("the web shop");
    };
    let dyno = Dyno::new();
    // The shop fills itself before anything is recorded.
    drop(open_shop(then.port));
    assert_eq!(then.cli(&["DBSIZE"]), "10000");
    assert_eq!(then.cli(&["SAVE"]), "OK");
    std::fs::copy(then.folder().join("dump.rdb"), dyno.path("shop.rdb")).unwrap();
    assert_exit(&dyno.run(&["record", "shop.rdb", "-o", "data.dyno"]), &[0]);
    let proxy = start_proxy(&dyno, &then.uri(), &[]);
    let shop = open_shop(proxy.port);
    then.cli(&["CONFIG", "RESETSTAT"]);
    let visited = Command::new("python3")
        .args([
            SHOP,
            "visit",
            "--shop",
            &shop.address,
            "--visitors",
            "10",
            "--seconds",
            "3",
            "--pause",
            "0.02",
        ])
        .output()
        .unwrap();
    let pages: u64 = stdout(&visited).split_whitespace().next().unwrap().parse().unwrap();
    assert!(visited.status.success() && pages > 100, "{pages}");
    let before = calls(&then);
    drop(shop);
    assert_exit(&proxy.end(), &[0]);
    // A page looks at the session once.
    assert_eq!(before["GET"], pages);
    now.cli(&["CONFIG", "RESETSTAT"]);
    let replay = ["replay", "traffic.dyno", &now.uri(), "--load-from", "data.dyno"];
    let output = dyno.run(&[&replay[..], &["--speed", "3", "--out", "run"]].concat());
    assert_exit(&output, &[0, 5]);
    let after = calls(&now);
    for name in
        ["GET", "SET", "HGETALL", "HGET", "ZINCRBY", "ZREVRANGE", "HINCRBY", "DECR", "XADD", "MULTI", "EXEC"]
    {
        assert!(before.get(name).is_some_and(|count| *count > 0), "{name}: {before:?}");
        assert_eq!(after.get(name), before.get(name), "{name}");
    }
    // What a visitor bought has left the same stock.
    let stock = "local n = 0 for i = 0, 4999 do n = n + redis.call('GET', 'stock:' .. i) end return n";
    assert_eq!(now.cli(&["EVAL", stock, "0"]), then.cli(&["EVAL", stock, "0"]));
    assert_eq!(now.cli(&["XLEN", "orders"]), then.cli(&["XLEN", "orders"]));
    // Each repetition has a server of its own, and the data again.
    let versions = format!("{}/../../docs/examples/web-shop/versions.yaml", env!("CARGO_MANIFEST_DIR"));
    let once = [
        "--set",
        "repetitions=1",
        "--set",
        "workload.recording.speed=4",
        "--set",
        "phases.load.from=data.dyno",
    ];
    let experiment = dyno.run(&[&["run", &versions, "--out", "versions"][..], &once].concat());
    assert_exit(&experiment, &[0, 5]);
    let summary = dyno.summary("versions/runs/cell0001-rep01");
    let compared = phase(&summary, "measure")["replay"]["compared"].as_u64();
    assert!(compared.is_some_and(|count| count > pages), "{compared:?}");
    let learned = dyno.run(&["learn", "traffic.dyno", "-o", "work.yaml"]);
    assert_exit(&learned, &[0]);
    let run = dyno.run(&[
        "run",
        &now.uri(),
        "--workload",
        "work.yaml",
        "--duration",
        "2s",
        "--reload",
        "--out",
        "model",
    ]);
    // The verdict is the host's matter; the model's commands are taken by the server.
    assert_exit(&run, &[0, 5]);
    let metrics = phase(&dyno.summary("model"), "measure")["metrics"].as_array().unwrap().clone();
    assert!(metrics.iter().all(|metric| metric["outcomes"]["server_error"].as_u64().unwrap_or(0) == 0));
    assert!(metrics.iter().any(|metric| metric["outcomes"]["ok"].as_u64() > Some(100)));
}
