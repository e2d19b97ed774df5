//! The target of `dyno run`: what its positional asks for, and what is started for it.

use dyno_config::server::ServerKind;
use dyno_databases::registry;
use dyno_databases::spawn::{Spawned, find_server, meant, spawn_under};
use dyno_db::target::{ClientDriver, Target};
use dyno_engine::Control;
use dyno_frontend::exit::Failure;
use dyno_frontend::secret::{self, PasswordFrom};
use dyno_frontend::terminal;
use dyno_localhost::temporary::Temporary;
use dyno_types::secret::mask_value;

/// Target that a run is applied to, and what must be removed afterwards.
pub(super) struct ProvidedTarget {
    /// The target.
    pub target: Box<dyn Target>,
    /// The server that was started for it.
    pub server: Option<Spawned>,
    _folder: Option<Temporary>,
}

/// What the positional of `dyno run` asks for.
pub(super) enum RequestedTarget {
    /// The target that a URI names, and that URI, with its password.
    Target(Box<dyn Target>, String),
    /// A server of this kind that is started for the run; empty: of any.
    Spawn(String),
    /// A SQLite database of this run's own, for want of a server.
    Sqlite,
}

impl RequestedTarget {
    /// Reads the positional: a URI. Asks for its password where `password_from` says so.
    ///
    /// # Errors
    /// It is no target, or its password cannot be had.
    pub fn read(
        text: Option<&str>,
        password_from: Option<&PasswordFrom>,
        client: ClientDriver,
    ) -> Result<Self, Failure> {
        let Some(text) = text else {
            if password_from.is_some() {
                return Err(Failure::usage("--password-from: expected a target, such as redis://host"));
            }
            if client == ClientDriver::Official {
                return Err(Failure::usage("--client official: expected a target, such as mongodb://host"));
            }
            return Ok(match find_server(None) {
                Some((kind, _)) => RequestedTarget::Spawn(kind.to_string()),
                None => RequestedTarget::Sqlite,
            });
        };
        let text = &secret::uri(text, password_from)?;
        let scheme = text.split(':').next().unwrap_or_default();
        // A host and a port do not say how to speak to it; nor does a host alone.
        let has_port = registry::is_host_and_port(text);
        if text.contains(':')
            && !has_port
            && !scheme.is_empty()
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+')
        {
            let target = registry::parse_for(text, client)?;
            if target.has_password() && password_from.is_none() {
                terminal::warn("a password on the command line can be seen by every user of this host");
            }
            let kind = target.must_start().map(str::to_owned);
            return Ok(match kind {
                Some(kind) => RequestedTarget::Spawn(kind),
                None => RequestedTarget::Target(target, text.clone()),
            });
        }
        let presets = dyno_presets::PRESETS.iter().map(|preset| preset.name);
        if let Some(near) = dyno_types::suggest::nearest(text, presets.clone()) {
            let message = "is no target URI, no experiment and no preset";
            return Err(Failure::usage(format!(
                "{text:?} {message}; did you mean {near}? `dyno presets` lists them"
            )));
        }
        // A group of presets with another name in it: no target looks like that.
        let group = text.split_once('/').map(|(group, _)| group);
        if group.is_some() && presets.clone().any(|preset| preset.split('/').next() == group) {
            return Err(Failure::usage(format!("{text:?} is no preset; `dyno presets` lists them")));
        }
        let is_host = has_port || text.contains('.') || text == "localhost";
        let near = dyno_types::suggest::nearest(text, registry::schemes().map(|one| one.name));
        let hint = match (registry::meant_uri(text), near) {
            (Some(meant), _) => format!("; did you mean {}?", mask_value("target", &meant)),
            _ if is_host => registry::protocol_hint(text),
            (None, Some(near)) => format!("; did you mean {near}:?"),
            (None, None) => String::new(),
        };
        let forms: String = registry::schemes().map(|one| format!("\n  {}", one.form)).collect();
        let others = "Experiments are files that end in .yaml; `dyno presets` lists presets.";
        Err(Failure::usage(format!("{text:?} is no target{hint}\nTargets:{forms}\n{others}")))
    }

    /// Returns it as an experiment names it.
    pub fn as_uri(&self) -> String {
        match self {
            RequestedTarget::Sqlite => "sqlite:{dir}/bench.sqlite".to_owned(),
            RequestedTarget::Spawn(kind) => format!("spawn:{kind}"),
            RequestedTarget::Target(_, uri) => uri.clone(),
        }
    }

    /// Starts what must be started, after what a dyno that was killed has left of the same kind is gone.
    ///
    /// # Errors
    /// There is no such server on this host, or it does not start.
    pub fn provide(self, control: &Control) -> Result<ProvidedTarget, Failure> {
        if !matches!(self, RequestedTarget::Target(..)) {
            dyno_localhost::temporary::remove_abandoned().iter().for_each(|line| terminal::note(line));
        }
        match self {
            RequestedTarget::Spawn(kind) => {
                let wanted = Some(kind.as_str()).filter(|kind| !kind.is_empty());
                let Some((name, program)) = find_server(wanted) else {
                    let offered = match wanted {
                        Some(_) => ServerKind::ALL.to_vec(),
                        None => meant(None).collect(),
                    };
                    let known: Vec<String> =
                        offered.iter().map(|kind| format!("{kind} ({})", kind.program_name())).collect();
                    let of = if kind.is_empty() { String::new() } else { format!(" of kind {kind:?}") };
                    let text = format!("no server{of} on PATH; known kinds: {}", known.join(", "));
                    return Err(Failure::usage(text));
                };
                let server = spawn_under(name, &program, Some(control));
                let server = server.map_err(|e| match control.is_stopping() {
                    true => Failure::Interrupted,
                    false => Failure::usage(e),
                })?;
                let target = registry::parse(&server.uri())?;
                terminal::note(&format!(
                    "started a temporary {name} on port {}; it ends with this run",
                    server.port
                ));
                Ok(ProvidedTarget { target, server: Some(server), _folder: None })
            }
            RequestedTarget::Sqlite => {
                let folder = Temporary::for_store().map_err(Failure::internal)?;
                let path = folder.data_folder().join("bench.sqlite");
                terminal::note(
                    "no redis-server, valkey-server, dragonfly or keydb-server on PATH: measuring SQLite instead",
                );
                let target = registry::parse(&format!("sqlite:{}", path.display()))?;
                Ok(ProvidedTarget { target, server: None, _folder: Some(folder) })
            }
            RequestedTarget::Target(target, _) => Ok(ProvidedTarget { target, server: None, _folder: None }),
        }
    }
}
