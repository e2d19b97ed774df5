//! Routers behind a load balancer, which is a TCP proxy here; and servers that want every command to name the API's version.

use dyno_testkit::fake_mongo::{Script, cursor, error, hello, serve};
use dyno_testkit::{Dyno, assert_exit, outcome, phase, stderr};
use dyno_types::bson::{self, kind};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Gives each connection to the next of these servers; returns `host:port`.
fn balance(servers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().flatten().enumerate() {
            let server = TcpStream::connect(&servers[number % servers.len()]).unwrap();
            client.set_nodelay(true).unwrap();
            server.set_nodelay(true).unwrap();
            let ways = [(client.try_clone(), server.try_clone()), (Ok(server), Ok(client))];
            for (from, to) in ways {
                let (mut from, mut to) = (from.unwrap(), to.unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    name
}

/// Cursors are where their connection leads, which the load balancer alone decides.
#[test]
fn a_cursor_is_read_through_the_load_balancer_that_it_came_by() {
    let wrong = Arc::new(AtomicU64::new(0));
    let finds = Arc::new(Mutex::new([0u64; 2]));
    let routers = [0, 1].map(|router: usize| {
        let (wrong, finds) = (wrong.clone(), finds.clone());
        serve(move |_| -> Script {
            Arc::new(move |command, out| match command.name().as_str() {
                "hello" => {
                    let greets = bson::find_element(&command.document, "client").is_some();
                    let balanced =
                        bson::find_element(&command.document, "loadBalanced").is_some_and(|e| e.is_true());
                    assert!(balanced || !greets, "the greeting does not say that there is a load balancer");
                    bson::put_boolean(out, "isWritablePrimary", true);
                    bson::put_string(out, "msg", "isdbgrid");
                    bson::put_int32(out, "maxWireVersion", 21);
                    bson::put_int32(out, "logicalSessionTimeoutMinutes", 30);
                    bson::put_head(out, kind::OBJECT_ID, "serviceId");
                    out.extend_from_slice(&[router as u8; 12]);
                    bson::put_double(out, "ok", 1.0);
                }
                "find" => {
                    finds.lock().unwrap()[router] += 1;
                    let sessions = bson::find_element(&command.document, "lsid").is_some();
                    assert!(sessions, "a router behind a load balancer has sessions");
                    cursor(1_000 * (router as i64 + 1), "firstBatch", 101, out);
                }
                "getMore" => {
                    let id = bson::find_element(&command.document, "getMore").unwrap().as_i64().unwrap();
                    wrong.fetch_add(u64::from(id != 1_000 * (router as i64 + 1)), Ordering::Relaxed);
                    cursor(0, "nextBatch", 10, out);
                }
                name => error(59, &format!("no such command: '{name}'"), out),
            })
        })
    });
    let dyno = Dyno::new();
    let uri = format!(
        "mongodb://{}/t?loadBalanced=true&retryReads=true&retryWrites=true",
        balance(routers.to_vec())
    );
    let scans = ["-p", "readproportion=0", "-p", "updateproportion=0", "-p", "scanproportion=1"];
    let common = ["run", &uri, "--no-load", "--records", "100", "--ops", "200", "--users", "4", "--out", "d"];
    dyno.assert_ran_but(&dyno.run(&[&common[..], &scans].concat()), &["samples"]);
    assert_eq!(outcome(phase(&dyno.summary("d"), "measure"), "ok"), 200);
    let finds = *finds.lock().unwrap();
    assert_eq!((finds[0] + finds[1], wrong.load(Ordering::Relaxed)), (200, 0), "{finds:?}");
    assert!(finds[0] > 20 && finds[1] > 20, "{finds:?}");
}

#[test]
fn a_server_that_stands_behind_no_load_balancer_is_refused() {
    let alone = serve(|me| -> Script {
        Arc::new(move |command, out| match command.name().as_str() {
            "hello" => hello(&me, &[], &me, out),
            name => error(59, &format!("no such command: '{name}'"), out),
        })
    });
    let refused = Dyno::new().run(&["run", &format!("mongodb://{alone}/t?loadBalanced=true"), "--no-out"]);
    assert_exit(&refused, &[3]);
    assert!(stderr(&refused).contains("serviceId"), "{}", stderr(&refused));
}
