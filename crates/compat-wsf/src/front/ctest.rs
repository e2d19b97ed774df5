//! Abilities of `ctest.sh` beside running a case: tracers, the background, a prepared system; and what of it has no meaning on
//! one host.

use clap::Args;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Options of `ctest.sh`.
#[derive(Clone, Debug, Default, Args)]
pub struct CtestArgs {
    /// Tracers that run in the windows of EVENT_TRACE_PARAMS, as one text: --perf --sar --iostat --mpstat --vmstat
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub options: Option<String>,
    /// Any command that runs in these windows, such as "perf record -a -g"
    #[arg(long = "trace", value_name = "COMMAND")]
    pub traces: Vec<String>,
    /// Tests one after the other, as a file says them (YAML, `---` between them)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["case", "testcase", "include", "exclude"])]
    pub testset: Option<PathBuf>,
    /// Go on in the background when the terminal is closed; output goes to LOG (dyno-wsf.log)
    #[arg(long, value_name = "LOG", num_args = 0..=1, require_equals = true, default_missing_value = "dyno-wsf.log")]
    pub nohup: Option<PathBuf>,
    /// The same
    #[arg(long, value_name = "LOG", num_args = 0..=1, require_equals = true, default_missing_value = "dyno-wsf.log")]
    pub daemon: Option<PathBuf>,
    /// Check that this host has what the test needs, and note how it is set up in sut-logs-NAME; nothing is started
    #[arg(long)]
    pub prepare_sut: bool,
    /// Run on the host as it was prepared: says what has changed since
    #[arg(long, conflicts_with = "prepare_sut")]
    pub reuse_sut: bool,
    /// Remove sut-logs-NAME
    #[arg(long, conflicts_with_all = ["prepare_sut", "reuse_sut"])]
    pub cleanup_sut: bool,
    /// Bursts begin together: without effect on one host, where they follow each other
    #[arg(long, value_name = "STAGE", num_args = 0..=1, default_missing_value = "RunStage")]
    pub burst_align: Option<String>,
    #[arg(short = 'j', long = "parallel", hide = true, value_name = "N")]
    pub parallel: Option<u32>,
    #[arg(long, hide = true)]
    pub novalidate: bool,
    #[arg(long, hide = true)]
    pub reset_recent: bool,
    #[arg(long, hide = true)]
    pub check_docker_image: bool,
    #[arg(long, hide = true, value_name = "REGISTRY")]
    pub push_docker_image: Option<String>,
    #[arg(long, hide = true, value_name = "COMMAND")]
    pub inspect_docker_image: Option<String>,
    #[arg(long, hide = true, value_name = "FILE")]
    pub attach: Option<PathBuf>,
    #[arg(long, hide = true, value_name = "S")]
    pub timeout: Option<String>,
    #[arg(long, hide = true)]
    pub rerun_failed: bool,
}

/// Tracers by the framework's names, with its intervals.
const TRACERS: [(&str, &[&str]); 5] = [
    ("perf", &["perf", "stat", "-a", "-I", "500"]),
    ("sar", &["sar", "-A", "5"]),
    ("iostat", &["iostat", "-x", "-m", "-t", "5"]),
    ("mpstat", &["mpstat", "-P", "ALL", "5"]),
    ("vmstat", &["vmstat", "-t", "5"]),
];

/// Set for a dyno that was sent to the background.
const DETACHED: &str = "DYNO_WSF_DETACHED";

impl CtestArgs {
    /// Refuses what cannot be had here, and says what has no effect.
    pub fn check(&self) -> Result<(), Failure> {
        let images = "there are no images: servers are programs of this host";
        let refused = [
            ("--check-docker-image", self.check_docker_image, images),
            ("--push-docker-image", self.push_docker_image.is_some(), images),
            ("--inspect-docker-image", self.inspect_docker_image.is_some(), images),
            ("--attach", self.attach.is_some(), "logs are a folder: copy the file into it"),
            (
                "--timeout",
                self.timeout.is_some(),
                "MAX_EXECUTION_TIME limits the run phase (--set MAX_EXECUTION_TIME=600)",
            ),
            ("--rerun-failed", self.rerun_failed, "--continue goes on with what is not at its end"),
        ];
        if let Some((option, _, why)) = refused.iter().find(|(_, given, _)| *given) {
            return Err(Failure::usage(format!("{option}: is not offered; {why}")));
        }
        let silent = [
            (
                "--burst-align",
                self.burst_align.is_some(),
                "bursts follow each other on one host; clients of a \
              burst begin their run phase at one instant anyway",
            ),
            ("-j", self.parallel.is_some(), "tests follow each other on one host"),
            ("--novalidate", self.novalidate, "there is nothing to validate but the values"),
            ("--reset-recent", self.reset_recent, "list-kpi --recent takes the latest logs by their time"),
        ];
        for (option, _, why) in silent.iter().filter(|(_, given, _)| *given) {
            terminal::note(&format!("note: {option}: without effect; {why}"));
        }
        Ok(())
    }

    /// Commands that run in every window.
    pub fn tracers(&self) -> Result<Vec<Vec<String>>, Failure> {
        let mut all = Vec::new();
        for word in self.options.iter().flat_map(|text| text.split_whitespace()) {
            let name = word.trim_start_matches('-');
            let Some((_, command)) = TRACERS.iter().find(|(known, _)| *known == name) else {
                let known: Vec<&str> = TRACERS.iter().map(|(known, _)| *known).collect();
                return Err(Failure::usage(format!(
                    "--options {word}: expected --{}; monitors watch host, servers and clients every second anyway, \
                     and --trace runs any command",
                    known.join(", --")
                )));
            };
            all.push(command.iter().map(|word| (*word).to_owned()).collect());
        }
        for command in &self.traces {
            let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
            if words.is_empty() {
                return Err(Failure::usage("--trace: expected a command"));
            }
            all.push(words);
        }
        Ok(all)
    }

    /// Sends the whole thing to the background, if that is asked for; the exit code of the one that stays.
    pub fn detach(&self) -> Result<Option<Exit>, Failure> {
        let Some(log) = self.nohup.as_ref().or(self.daemon.as_ref()) else { return Ok(None) };
        if std::env::var_os(DETACHED).is_some() {
            return Ok(None);
        }
        let shown = log.display();
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
        let file = file.map_err(|e| Failure::usage(format!("--nohup={shown}: {e}")))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(std::env::args_os().skip(1)).env(DETACHED, "1").stdin(Stdio::null());
        command.stdout(file.try_clone()?).stderr(file);
        // The process makes its own session, see `detached`; dyno does not wait for it.
        let child = command.spawn()?;
        terminal::note(&format!(
            "process {} goes on in the background, output in {shown}; `dyno wsf --status`, `dyno wsf --stop`",
            child.id()
        ));
        Ok(Some(Exit::Ok))
    }
}

/// In the background: a session of its own, so that the terminal's end is not this one's.
pub fn detached() {
    if std::env::var_os(DETACHED).is_some() {
        // A process that leads a group already cannot; it then has no terminal to lose.
        let _ = rustix::process::setsid();
    }
}
