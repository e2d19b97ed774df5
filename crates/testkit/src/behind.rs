//! A server in a network namespace of its own, and the way to it: two devices, each with a queue that can be shaped.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Redis behind a pair of devices. Ends with its namespace.
pub struct Behind {
    name: String,
    /// This side's device.
    device: String,
    server: Option<Child>,
}

fn succeeds(program: &str, text: &str) -> bool {
    let made = Command::new(program).args(text.split(' ')).output();
    made.is_ok_and(|made| made.status.success())
}

impl Behind {
    /// Starts it. `own` and `other` say how this side's and the server's device are shaped, as `tc` takes it
    /// (`netem delay 5ms`); nothing where they are empty. `None` where the kernel does not let us.
    pub fn start(own: &str, other: &str) -> Option<Behind> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = format!("{}n{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let (name, devices) = (format!("dyno{number}"), [format!("dv{number}"), format!("dw{number}")]);
        let [ours, theirs] = &devices;
        let mut behind = Behind { name: name.clone(), device: ours.clone(), server: None };
        let ip = |message: &str| succeeds("ip", message);
        let ready = ip(&format!("netns add {name}"))
            && ip(&format!("link add {ours} type veth peer name {theirs} netns {name}"))
            && ip(&format!("addr add 10.213.77.1/30 dev {ours}"))
            && ip(&format!("link set {ours} up"))
            && ip(&format!("-n {name} addr add 10.213.77.2/30 dev {theirs}"))
            && ip(&format!("-n {name} link set {theirs} up"))
            && ip(&format!("-n {name} link set lo up"));
        let inside = format!("netns exec {name} tc qdisc add dev {theirs} root {other}");
        let shaped = (own.is_empty() || succeeds("tc", &format!("qdisc add dev {ours} root {own}")))
            && (other.is_empty() || ip(&inside));
        if !ready || !shaped {
            return None;
        }
        behind.server = Command::new("ip")
            .args(["netns", "exec", &name, "redis-server", "--port", "6379", "--save", ""])
            .args(["--bind", "10.213.77.2", "--protected-mode", "no"])
            .stdout(Stdio::null())
            .spawn()
            .ok();
        let answers = |_: &u32| {
            std::thread::sleep(Duration::from_millis(50));
            std::net::TcpStream::connect("10.213.77.2:6379").is_ok()
        };
        (0..100u32).find(answers)?;
        Some(behind)
    }

    pub fn uri(&self) -> String {
        "redis://10.213.77.2:6379".into()
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            // It may have ended by itself.
            let _ = server.kill();
            let _ = server.wait();
        }
        // The pair of devices goes with the namespace, a moment later: the next one has the same addresses.
        let _ = Command::new("ip").args(["netns", "del", &self.name]).output();
        let device = format!("/sys/class/net/{}", self.device);
        let gone = |_: &u32| {
            std::thread::sleep(Duration::from_millis(20));
            !std::path::Path::new(&device).exists()
        };
        let _ = (0..250).find(gone);
    }
}
