//! `jupyter`: the example notebook on the results, served on the loopback with a token of its own, until it is ended.

use crate::plan::flags::TypedFlags;
use dyno_engine::Control;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::{signals, terminal};
use dyno_localhost::process;
use dyno_rundir::files;
use dyno_types::child;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The notebook of the Python package.
const NOTEBOOK: &str = include_str!("../../../../python/dyno-results/examples/experiment.ipynb");
/// Name of the file in the folder of results.
const NAME: &str = "experiment.ipynb";
/// Time that it may take to end when asked to.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ends the child when it is dropped.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw) {
            // It may have ended by itself.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let end = Instant::now() + PATIENCE;
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program on PATH.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The command.
pub fn jupyter(typed: &TypedFlags) -> Result<Exit, Failure> {
    let Some(experiment) = super::folders::experiments(typed)?.pop() else {
        let message = format!("jupyter: no experiments in {}", typed.value("resultfolder"));
        return Err(Failure::usage(message));
    };
    let Some(program) = on_path("jupyter") else {
        let message = "jupyter: is not on PATH; `pip install ./python/dyno-results[notebook]` brings it and the package that the \
                     notebook reads with";
        return Err(Failure::usage(message));
    };
    let mut probe = child::clean_command("python3");
    probe
        .args([
            "-c",
            "import importlib.util as u, sys; sys.exit(not any(map(u.find_spec, ('dyno', 'dyno_results'))))",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        terminal::warn(
            "python3 has neither dyno nor dyno_results, which the notebook reads with: \
             `pip install ./python/dyno-results[notebook]`",
        );
    }
    serve(&program, Path::new(typed.value("resultfolder")), &experiment)
}

pub fn serve(program: &Path, results: &Path, experiment: &Path) -> Result<Exit, Failure> {
    let notebook = results.join(NAME);
    // A notebook that the user has changed stays.
    match files::read_to_string(&notebook) {
        Ok(own) if own == NOTEBOOK => {}
        Ok(_) => terminal::note(&format!(
            "{} is served as it is there; remove it to have the notebook of this dyno",
            notebook.display()
        )),
        Err(_) => files::put_file(&notebook, NOTEBOOK.as_bytes())?,
    }
    let mut random = [0; 24];
    getrandom::fill(&mut random).map_err(|e| Failure::internal(format!("no random numbers: {e}")))?;
    let token = hex::encode(random);
    let port = dyno_localhost::port::free_port()?;
    let control = Arc::new(Control::default());
    signals::listen(&control)?;
    let mut command = process::ending_with_dyno(program);
    command
        .args(["notebook", "--no-browser", "--ip=127.0.0.1", &format!("--port={port}")])
        .arg(format!("--notebook-dir={}", results.display()))
        .arg(&notebook)
        .env("DYNO_EXPERIMENT", experiment.canonicalize()?)
        // All users of the host can read command lines.
        .env("JUPYTER_TOKEN", &token)
        .stdin(Stdio::null());
    // Jupyter ends at once as root unless it is told to go on. The token and the loopback guard it as they do for any user.
    if rustix::process::geteuid().is_root() {
        command.arg("--allow-root");
    }
    let started = command.spawn().map_err(|e| Failure::usage(format!("{}: {e}", program.display())))?;
    let mut child = Ends(started);
    terminal::out(&format!("http://127.0.0.1:{port}/notebooks/{NAME}?token={token}\n"));
    terminal::note(&format!("the notebook reads {} (DYNO_EXPERIMENT); Ctrl-C ends it", experiment.display()));
    loop {
        if let Some(status) = child.0.try_wait()? {
            let message = format!(
                "jupyter has ended ({status}): it says above why; `pip install ./python/dyno-results[notebook]` where a part is \
                 missing"
            );
            return if status.success() { Ok(Exit::Ok) } else { Err(Failure::usage(message)) };
        }
        if control.is_stopping() {
            return Ok(Exit::Interrupted);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
