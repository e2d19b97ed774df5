//! The Ansible collection on hosts made of network namespaces, as far as it can be run for real: `scripts/test-ansible.sh`.

use dyno_testkit::lab;
use dyno_testkit::skip_because;
use lab::Lab;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn collection() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ansible")
}

/// A device made of a file, which goes when this is dropped.
struct Loop(String);

impl Loop {
    fn new(file: &Path) -> Option<Loop> {
        let made = std::fs::File::create(file).and_then(|file| file.set_len(400 << 20));
        let told = Command::new("losetup").args(["--find", "--show"]).arg(file).output().ok()?;
        (made.is_ok() && told.status.success())
            .then(|| Loop(String::from_utf8_lossy(&told.stdout).trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // It goes with its last user otherwise.
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

struct Fixture {
    lab: Lab,
    /// Whether root becomes root by sudo, too, as others do.
    by_sudo: bool,
}

impl Fixture {
    fn new() -> Option<Fixture> {
        let lab = Lab::new(&["db", "load", "watch"])?;
        let host = |name: &str| {
            let arguments = format!("-F {}", lab.path("ssh_config").display());
            format!(
                "{name} ansible_host={} ansible_user=root ansible_ssh_common_args='{arguments}'\n",
                lab.address(name)
            )
        };
        // ssh's configuration knows hosts by their names; by their addresses, too.
        let config = std::fs::read_to_string(lab.path("ssh_config")).unwrap();
        let both = ["db", "load", "watch"].iter().fold(config, |text, name| {
            text.replace(&format!("Host {name}\n"), &format!("Host {name} {}\n", lab.address(name)))
        });
        std::fs::write(lab.path("ssh_config"), both).unwrap();
        // The laboratory's tests are begun on this host; what watches its hosts has one of its own.
        let here = "localhost ansible_connection=local\n".to_owned();
        for (name, master) in [("hosts.ini", here), ("watched.ini", host("watch"))] {
            let inventory = format!(
                "[master]\n{master}[mongodb]\n{}[ycsb]\n{}[all:vars]\ndyno_server=redis\n\
                 ansible_python_interpreter=/usr/bin/python3\n",
                host("db"),
                host("load")
            );
            std::fs::write(lab.path(name), inventory).unwrap();
        }
        Some(Fixture { lab, by_sudo: false })
    }

    fn play(&self, playbook: &Path, more: &[&str]) -> Output {
        self.play_on("hosts.ini", playbook, more)
    }

    fn play_on(&self, inventory: &str, playbook: &Path, more: &[&str]) -> Output {
        let mut command = Command::new("ansible-playbook");
        command.current_dir(self.lab.path("")).env("ANSIBLE_CONFIG", collection().join("ansible.cfg"));
        command.env("ANSIBLE_HOST_KEY_CHECKING", "True").env("ANSIBLE_NOCOLOR", "1");
        command.env("ANSIBLE_BECOME_ALLOW_SAME_USER", self.by_sudo.to_string());
        command.arg("-i").arg(self.lab.path(inventory)).arg(playbook).args(more);
        command.output().unwrap()
    }

    fn on_db(&self, words: &[&str]) -> String {
        let mut command = Command::new("ssh");
        command.arg("-F").arg(self.lab.path("ssh_config")).arg("db").args(words);
        let told = command.output().unwrap();
        String::from_utf8_lossy(&told.stdout).into_owned() + &String::from_utf8_lossy(&told.stderr)
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
#[ignore = "needs ansible-core"]
fn hosts_are_deployed_and_the_lab_s_tests_run() {
    let Some(fixture) = Fixture::new() else {
        return skip_because("Ansible", "no network namespaces, or no sshd");
    };
    let processes =
        "redis_manage_service=false node_exporter_manage_service=false prometheus_manage_service=false";
    let deploy = collection().join("playbooks/deploy.yml");
    let variables = ["-e", "dyno_password=hush-for-tests", "-e", processes, "--limit", "mongodb:ycsb"];
    let first = fixture.play(&deploy, &variables);
    assert!(first.status.success(), "{}", text(&first));
    assert!(!text(&first).contains("hush-for-tests"), "the password is not shown");
    let address = fixture.lab.address("db");
    let ping = |password: &str| {
        let words = ["-h", &address, "-a", password, "--no-auth-warning", "ping"];
        String::from_utf8_lossy(&Command::new("redis-cli").args(words).output().unwrap().stdout)
            .trim()
            .to_owned()
    };
    assert_eq!(ping("hush-for-tests"), "PONG");
    assert_ne!(ping("wrong"), "PONG");
    assert!(fixture.on_db(&["cat", "/etc/security/limits.d/90-dyno.conf"]).contains("nofile 64000"));
    assert!(
        !Path::new("/etc/security/limits.d/90-dyno.conf").exists(),
        "the lab's hosts have an /etc of their own"
    );
    let url = format!("http://{address}:9100/metrics");
    let metrics = |_: &u32| {
        std::thread::sleep(std::time::Duration::from_millis(200));
        got(&url).contains("node_cpu_seconds_total")
    };
    let exporters = fixture.lab.processes("db", "node-exporter");
    assert!((0..50u32).any(|n| metrics(&n)), "{url} says nothing; processes {exporters:?}: {}", text(&first));
    let again = fixture.play(&deploy, &variables);
    assert!(text(&again).contains("changed=0"), "a second time changes nothing: {}", text(&again));
    // The lab's tests, shortened, from the client host.
    let dyno = format!("dyno_program={}", env!("CARGO_BIN_EXE_dyno"));
    let config = format!("dyno_ssh_config={}", fixture.lab.path("ssh_config").display());
    let results = format!("dyno_results={}", fixture.lab.path("").display());
    let directory = format!("ssh.directory={}", fixture.lab.path("far").display());
    let sets = format!("{{\"dyno_sets\": [\"duration=1s\", \"records=1000\", \"{directory}\"]}}");
    let tests =
        ["-e", "dyno_password=hush-for-tests", "-e", &dyno, "-e", &config, "-e", &results, "-e", &sets];
    let run = fixture.play(&collection().join("playbooks/run_tests.yml"), &tests);
    assert!(run.status.success(), "{}", text(&run));
    let log = std::fs::read_to_string(fixture.lab.path("test_log.txt")).unwrap();
    assert!(log.contains("x-max") && log.contains("users-100"), "{log}");
    let runs: Vec<PathBuf> = std::fs::read_dir(fixture.lab.path("test_log/runs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(runs.len(), 20);
    // What is said of the server's host was read there.
    for run in runs {
        for source in ["host-db", "server-db-redis-server"] {
            assert!(run.join(format!("monitor/{source}.csv")).is_file(), "{source}: {}", run.display());
        }
        let record = std::fs::read_to_string(run.join("run.json")).unwrap();
        assert!(record.contains("\"target.hosts\": \"db\""), "{record}");
    }
}

/// The laboratory's storage variants, on a device that is erased for each.
#[test]
#[ignore = "needs ansible-core"]
fn the_lab_s_tests_run_on_xfs_and_on_ext4() {
    let Some(fixture) = Fixture::new() else {
        return skip_because("Ansible", "no network namespaces, or no sshd");
    };
    let Some(device) = Loop::new(&fixture.lab.path("disk")) else {
        return skip_because("Ansible", "loop devices are not permitted");
    };
    let mount = fixture.lab.path("mounted").display().to_string();
    let vars = serde_json::json!({
        "storage_devices": [device.0], "storage_mount": mount, "storage_manage_service": false,
        "redis_manage_service": false, "node_exporter_manage_service": false, "prometheus_manage_service": false,
        "dyno_password": "hush-for-tests", "dyno_program": env!("CARGO_BIN_EXE_dyno"),
        "dyno_ssh_config": fixture.lab.path("ssh_config"), "dyno_results": fixture.lab.path(""),
        "dyno_sets": [
            "duration=1s", "records=1000",
            format!("ssh.directory={}", fixture.lab.path("far").display()),
        ],
    });
    let vars = vars.to_string();
    let deployed =
        fixture.play(&collection().join("playbooks/deploy.yml"), &["-e", &vars, "--limit", "mongodb:ycsb"]);
    assert!(deployed.status.success(), "{}", text(&deployed));
    for (playbook, log, filesystem) in
        [("run_tests_noraid.yml", "test_noraid_log", "xfs"), ("run_tests_ext4.yml", "test_ext4_log", "ext4")]
    {
        let playbook = collection().join("playbooks").join(playbook);
        let refused = fixture.play(&playbook, &["-e", &vars]);
        assert!(
            !refused.status.success() && text(&refused).contains("Nothing was done"),
            "{}",
            text(&refused)
        );
        let run = fixture.play(&playbook, &["-e", &vars, "-e", "storage_confirm=erase"]);
        assert!(run.status.success(), "{}", text(&run));
        let found = fixture.on_db(&["findmnt", "-n", "-o", "FSTYPE,SOURCE", &mount]);
        assert!(found.contains(filesystem) && found.contains(&device.0), "{found}");
        let told = std::fs::read_to_string(fixture.lab.path(&format!("{log}.txt"))).unwrap();
        assert!(told.contains("x-max") && told.contains("users-100"), "{told}");
        let runs = std::fs::read_dir(fixture.lab.path(&format!("{log}/runs"))).unwrap().count();
        assert_eq!(runs, 20, "{log}");
    }
}

/// Who may not become root there is told so, and nothing is changed.
#[test]
#[ignore = "needs ansible-core"]
fn a_host_without_sudo_says_so() {
    let Some(fixture) = Fixture::new() else {
        return skip_because("Ansible", "no network namespaces, or no sshd");
    };
    let fixture = Fixture { by_sudo: true, ..fixture };
    fixture.lab.program("sudo", "echo 'sudo: a password is required' >&2\nexit 1");
    let words = ["-e", "redis_manage_service=false", "--limit", "mongodb"];
    let told = fixture.play(&collection().join("playbooks/deploy.yml"), &words);
    assert!(!told.status.success(), "{}", text(&told));
    assert!(text(&told).contains("Missing sudo password"), "{}", text(&told));
    assert!(fixture.on_db(&["cat", "/etc/security/limits.d/90-dyno.conf"]).contains("No such file"));
    assert_eq!(fixture.lab.processes("db", "redis-server"), Vec::<u32>::new());
}

/// What a page of the lab says.
fn got(url: &str) -> String {
    let told = Command::new("curl").args(["-s", "--noproxy", "*", url]).output().unwrap();
    String::from_utf8_lossy(&told.stdout).into_owned()
}

#[test]
#[ignore = "needs ansible-core"]
fn prometheus_watches_the_hosts() {
    let Some(fixture) = Fixture::new() else {
        return skip_because("Ansible", "no network namespaces, or no sshd");
    };
    let deploy = collection().join("playbooks/deploy.yml");
    let listen = format!("{}:9090", fixture.lab.address("watch"));
    let message = format!(
        "redis_manage_service=false node_exporter_manage_service=false prometheus_manage_service=false \
         prometheus_listen={listen}"
    );
    let variables = ["-e", "dyno_password=hush-for-tests", "-e", &message];
    let first = fixture.play_on("watched.ini", &deploy, &variables);
    assert!(first.status.success(), "{}", text(&first));
    // Every host is asked, and answers, under its own name.
    let url = format!("http://{listen}/api/v1/query?query=up%7Bjob%3D%22node%22%7D");
    let answers = |_: &u32| {
        std::thread::sleep(std::time::Duration::from_millis(500));
        let told: serde_json::Value = serde_json::from_str(&got(&url)).unwrap_or_default();
        let all = told["data"]["result"].as_array().cloned().unwrap_or_default();
        let up =
            |name: &str| all.iter().any(|one| one["metric"]["instance"] == name && one["value"][1] == "1");
        all.len() == 2 && up("db") && up("load")
    };
    let begun = fixture.lab.processes("watch", "prometheus");
    assert!((0..60u32).any(|n| answers(&n)), "{}; processes {begun:?}: {}", got(&url), text(&first));
    let again = fixture.play_on("watched.ini", &deploy, &variables);
    assert!(text(&again).contains("changed=0"), "a second time changes nothing: {}", text(&again));
    assert!(!text(&again).contains("changed=1"), "{}", text(&again));
}

#[test]
#[ignore = "needs ansible-core"]
fn storage_is_made_anew_only_on_what_is_listed() {
    let Some(fixture) = Fixture::new() else {
        return skip_because("Ansible", "no network namespaces, or no sshd");
    };
    let Some(device) = Loop::new(&fixture.lab.path("disk")) else {
        return skip_because("Ansible", "loop devices are not permitted");
    };
    let playbook = fixture.lab.path("storage.yml");
    std::fs::write(&playbook, "- hosts: mongodb\n  roles: [storage]\n").unwrap();
    let mount = fixture.lab.path("mounted").display().to_string();
    let listed = format!("{{\"storage_devices\": [\"{}\"], \"storage_mount\": \"{mount}\"}}", device.0);
    let own = ["-e", "storage_manage_service=false", "-e", &listed];
    for missing in [&own[..2], &own[..]] {
        let refused = fixture.play(&playbook, missing);
        assert!(
            !refused.status.success() && text(&refused).contains("Nothing was done"),
            "{}",
            text(&refused)
        );
    }
    for filesystem in ["xfs", "ext4"] {
        let kind = format!("storage_filesystem={filesystem}");
        let made =
            fixture.play(&playbook, &[&own[..], &["-e", "storage_confirm=erase", "-e", &kind]].concat());
        assert!(made.status.success(), "{}", text(&made));
        let found = fixture.on_db(&["findmnt", "-n", "-o", "FSTYPE,SOURCE,OPTIONS", &mount]);
        assert!(
            found.contains(filesystem) && found.contains(&device.0) && found.contains("noatime"),
            "{found}"
        );
    }
}
