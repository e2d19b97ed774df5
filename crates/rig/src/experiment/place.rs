//! What a run is applied to: a target that exists, or a server that is started for it.

use crate::spawn::{Spawned, find_server, spawn};
use crate::target::Target;
use dyno_plan::experiment::Experiment;
use std::collections::BTreeMap;
use std::path::Path;

/// Targets of a run, one for each server-client pair.
pub(super) struct Place {
    /// URIs, one for each pair.
    pub uris: Vec<String>,
    /// Cores that load threads keep off.
    pub taken: Vec<usize>,
    /// Whether it runs on this host.
    pub local: bool,
    server: Option<Spawned>,
}

/// Brings about what a cell asks for. `{dir}` in a target is `data` below the run's directory.
pub(super) fn provide(spec: &Experiment, run: &Path) -> Result<Place, String> {
    let uri = spec.target.clone().unwrap_or_else(|| "spawn:".into());
    if let Some(kind) = uri.strip_prefix("spawn:") {
        let found = find_server(Some(kind).filter(|kind| !kind.is_empty()));
        let Some((name, program)) = found else {
            return Err(format!("target: no server of kind {kind:?} on PATH"));
        };
        let server = spawn(name, &program).map_err(|e| format!("{name}: {e}"))?;
        let uris = vec![format!("redis://127.0.0.1:{}", server.port)];
        let taken = server.core.into_iter().collect();
        return Ok(Place { uris, taken, local: true, server: Some(server) });
    }
    let data = run.join("data");
    let uri = match uri.contains("{dir}") {
        true => {
            std::fs::create_dir_all(&data).map_err(|e| format!("{}: {e}", data.display()))?;
            uri.replace("{dir}", &data.display().to_string())
        }
        false => uri,
    };
    let local = Target::parse(&uri).is_ok_and(|target| target.is_local());
    Ok(Place { uris: vec![uri], taken: Vec::new(), local, server: None })
}

impl Place {
    /// Processes of the servers that were started, by name.
    pub fn processes(&self) -> Vec<(String, u32)> {
        self.server.iter().map(|server| ("server".to_owned(), server.pid())).collect()
    }

    /// Facts about the server that was started.
    pub fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::new();
        if let Some(server) = &self.server {
            facts.insert("server_pid".into(), server.pid().to_string());
            if let Some(core) = server.core {
                facts.insert("server_core".into(), core.to_string());
            }
        }
        facts
    }

    /// Why the server is no longer there, if it is not.
    pub fn died(&mut self) -> Option<String> {
        self.server.as_mut()?.died()
    }
}
