//! Servers and clients as child processes on their cores, and the CPU time they took.

use anyhow::{Context, Result, bail};
use dyno_databases::spawn::spawn;
use dyno_databases::spawn::{Spawned, find_server};
use dyno_engine::affinity::allowed_cores;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// What every row needs.
#[derive(Clone)]
pub struct Bench {
    /// The server: pinned to the first core.
    pub server: Arc<Spawned>,
    /// Core.
    pub server_core: usize,
    /// The client's core.
    pub client_core: usize,
    /// The cores that clients may use: the client's own, unless a row gives them more.
    client_cores: Vec<usize>,
    /// The dyno binary.
    pub dyno: PathBuf,
    /// This binary.
    me: PathBuf,
    /// True if strace counts the system calls of clients.
    trace: bool,
    /// What values consist of: `zero` (constant, as redis-benchmark's are), `pool` (cut from random bytes) or `random` (YCSB's).
    pub value: &'static str,
}

/// CPU seconds of a child.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// User time.
    pub user_s: f64,
    /// System time.
    pub system_s: f64,
}

impl Cpu {
    /// Both.
    pub fn total_s(&self) -> f64 {
        self.user_s + self.system_s
    }
}

/// The words of a command line that has no quotes.
pub fn split_words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Where strace writes its table.
fn trace_file() -> PathBuf {
    std::env::temp_dir().join(format!("dyno-bench-{}.strace", std::process::id()))
}

/// Records that GET and SET rows work on.
pub const RECORDS: u64 = 100_000;

impl Bench {
    /// Starts the server and fills it.
    pub fn prepare() -> Result<Self> {
        let cores = allowed_cores();
        let (server_core, client_core) = (cores[0], *cores.last().context("no core")?);
        let Some((kind, program)) = find_server(Some("redis")) else {
            bail!("redis-server is not installed")
        };
        let me = std::env::current_exe()?;
        let dyno = me.with_file_name("dyno");
        if !dyno.is_file() {
            let built =
                Command::new("cargo").args(["build", "--release", "--locked", "-p", "dyno-cli"]).status()?;
            if !built.success() {
                bail!("dyno could not be built");
            }
        }
        let server = spawn(kind, &program)?;
        let bench = Bench {
            server: Arc::new(server),
            server_core,
            client_core,
            client_cores: vec![client_core],
            dyno,
            me,
            trace: false,
            value: "zero",
        };
        bench.dyno_run(&["--ops", "1", "--reload", "--users", "16"], 1)?;
        Ok(bench)
    }

    /// The machine.
    pub fn describe(&self) -> String {
        let host = dyno_monitor_line();
        format!("{host}\nserver on core {}, client on core {}", self.server_core, self.client_core)
    }

    /// Runs a command on the client's core; its standard output and the CPU it took.
    pub fn timed(&self, program: &str, arguments: &[String]) -> Result<(String, Cpu)> {
        let before = children_cpu()?;
        let cores: Vec<String> = self.client_cores.iter().map(usize::to_string).collect();
        let cores = cores.join(",");
        let trace = trace_file().display().to_string();
        let mut pinned = vec!["-c", &cores];
        if self.trace {
            pinned.extend(["strace", "-f", "-c", "-U", "calls", "-o", &trace]);
        }
        pinned.push(program);
        let output = Command::new("taskset")
            .args(pinned)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("taskset {program}"))?;
        let after = children_cpu()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // A verdict other than valid is no failure of a benchmark.
        if !matches!(output.status.code(), Some(0 | 5)) {
            bail!("{program} {arguments:?} failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok((text, Cpu { user_s: after.user_s - before.user_s, system_s: after.system_s - before.system_s }))
    }

    /// Returns whether strace is installed.
    pub fn can_trace(&self) -> bool {
        Command::new("strace").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    }

    /// The same with strace before every client.
    pub fn tracing(&self) -> Bench {
        Bench { trace: true, ..self.clone() }
    }

    /// The same with clients on the last `count` cores; `None` where the server's would be one of them.
    pub fn on_cores(&self, count: usize) -> Option<Bench> {
        let cores = allowed_cores();
        let clients = cores.get(cores.len().checked_sub(count)?..)?.to_vec();
        let apart = !clients.is_empty() && !clients.contains(&self.server_core);
        apart.then(|| Bench { client_cores: clients, ..self.clone() })
    }

    /// How many system calls the clients make that `run` starts; the bench must be a tracing one.
    pub fn traced(&self, run: impl FnOnce(&Bench) -> Result<()>) -> Result<u64> {
        run(self)?;
        let text = std::fs::read_to_string(trace_file()).context("strace's table")?;
        std::fs::remove_file(trace_file())?;
        let total = text.lines().rfind(|l| l.trim_end().ends_with("total")).context("strace's table")?;
        Ok(total.split_whitespace().next().context("strace's total")?.parse()?)
    }

    /// dyno on the GET and SET workload; its summary and the CPU it took.
    pub fn dyno_run(&self, extra: &[&str], pipeline: usize) -> Result<(serde_json::Value, Cpu)> {
        let mut arguments = vec![
            "run".to_owned(),
            format!("redis://127.0.0.1:{}?layout=string", self.server.port),
            "--records".into(),
            RECORDS.to_string(),
            "--pipeline".into(),
            pipeline.to_string(),
        ];
        for (key, value) in crate::floor::PROPERTIES {
            arguments.extend(["-p".to_owned(), format!("{key}={value}")]);
        }
        arguments.extend(["-p".to_owned(), format!("dyno.value={}", self.value)]);
        arguments.extend(["--threads".to_owned(), self.client_cores.len().to_string()]);
        arguments.extend(["--no-pin", "--wait", "sleep", "--no-out", "--json", "--quiet"].map(str::to_owned));
        arguments.extend(extra.iter().map(|a| (*a).to_owned()));
        let (text, cpu) = self.timed(&self.dyno.display().to_string(), &arguments)?;
        Ok((serde_json::from_str(&text).context("dyno's summary")?, cpu))
    }

    /// The floor.
    pub fn floor(&self, operations: u64, connections: usize, pipeline: usize) -> Result<Cpu> {
        let numbers = [u64::from(self.server.port), operations, connections as u64, pipeline as u64, RECORDS];
        let mut arguments = vec!["floor".to_owned()];
        arguments.extend(numbers.map(|n| n.to_string()));
        arguments.push(self.value.to_owned());
        Ok(self.timed(&self.me.display().to_string(), &arguments)?.1)
    }

    /// Returns whether memtier is installed.
    pub fn has_memtier(&self) -> bool {
        let mut version = Command::new("memtier_benchmark");
        version
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// memtier: half SET, half GET, one thread.
    pub fn memtier(&self, operations: u64, connections: usize, pipeline: usize) -> Result<Cpu> {
        let random = if self.value == "zero" { "" } else { "--random-data" };
        let arguments = format!(
            "-s 127.0.0.1 -p {} -t 1 -c {connections} -n {} --pipeline {pipeline} --ratio 1:1 -d 1000 --key-minimum 1 \
             --key-maximum {RECORDS} --key-pattern R:R --hide-histogram {random}",
            self.server.port,
            operations / connections as u64
        );
        Ok(self.timed("memtier_benchmark", &split_words(&arguments))?.1)
    }

    /// redis-benchmark: half SET, half GET.
    pub fn redis_benchmark(&self, operations: u64, connections: usize, pipeline: usize) -> Result<Cpu> {
        let half = (operations / 2).to_string();
        let (port, c, p, r) = (
            self.server.port.to_string(),
            connections.to_string(),
            pipeline.to_string(),
            RECORDS.to_string(),
        );
        let arguments =
            ["-p", &port, "-t", "set,get", "-d", "1000", "-n", &half, "-c", &c, "-P", &p, "-r", &r, "-q"];
        Ok(self.timed("redis-benchmark", &arguments.map(str::to_owned))?.1)
    }
}

/// CPU of all children that have ended so far.
fn children_cpu() -> Result<Cpu> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<f64> = text
        .rsplit_once(')')
        .context("/proc/self/stat")?
        .1
        .split_whitespace()
        .skip(13)
        .take(2)
        .map(|f| f.parse().unwrap_or(0.0))
        .collect();
    // Ticks of 10 ms: rounds last seconds.
    Ok(Cpu { user_s: fields[0] / 100.0, system_s: fields[1] / 100.0 })
}

fn dyno_monitor_line() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find(|l| l.starts_with("model name")).and_then(|l| l.split_once(':'));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{}, kernel {}", model.map_or("unknown CPU", |(_, m)| m.trim()), kernel.trim())
}

/// Ticks of the host: all, and those the hypervisor took.
pub fn host_ticks() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<u64> = text
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|f| f.parse().ok())
        .collect();
    (fields.iter().take(8).sum(), fields.get(7).copied().unwrap_or(0))
}
