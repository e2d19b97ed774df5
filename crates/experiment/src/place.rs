//! What a run is applied to: a target that exists, a folder for an embedded store, or a server that is started.
//!
//! A server lives for a run, or (`server_lifetime: shared`) until a run describes it in other words.

use crate::elsewhere::elsewhere;
use crate::faults::{Reach, by_proxies, on_workers};
use crate::hosts::{Hosts, Reached};
use crate::one::Failed;
use crate::pods::in_pods;
use crate::proxy::Proxy;
use crate::standing::Standing;
use crate::victims::Victims;
use crate::volumes;
use crate::volumes::Volume;
use dyno_config::experiment::fault::FaultKind;
use dyno_config::experiment::{Experiment, Lifetime, When};
use dyno_config::server::{ServerSpec, Setting};
use dyno_databases::registry;
use dyno_databases::spawn::{Spawned, find_server, spawn_under};
use dyno_engine::Control;
use dyno_kubernetes::place::InPods;
use dyno_localhost::error::{Cause, LocalError};
use dyno_localhost::machine::Machine;
use dyno_localhost::temporary::remove_abandoned;
use dyno_monitor::Pid;
use dyno_remote::far::{Far, FarServer};
use dyno_rundir::monitor::{WATCHED, WATCHED_BETWEEN};
use dyno_servers::server::Server;
use dyno_servers::server::faults::Room;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Targets of a run, one for each server-client pair.
pub(super) struct Place {
    /// URIs, one for each pair.
    pub uris: Vec<String>,
    /// Cores that load threads keep off.
    pub taken: Vec<usize>,
    /// Whether it runs on this host.
    pub local: bool,
    /// Other hosts that workers run on; none: this one.
    pub clients: Vec<Reached>,
    /// Hosts that the target runs on and that are only watched, by name.
    pub watched: Vec<String>,
    /// Agents on both that start nothing, for monitors and faults there.
    pub beside: Vec<Far>,
    /// In front of each instance, where there are faults that they do.
    pub(super) proxies: Vec<Proxy>,
    /// The kinds of faults that they do.
    pub(super) by_proxies: Vec<FaultKind>,
    /// Loaded data that outlive the run.
    pub(super) volume: Option<Volume>,
    /// Servers that another command has started, and that stay.
    pub(super) standing: Option<Box<Standing>>,
    pub(super) held: Held,
}

pub(super) enum Held {
    /// Nothing of ours.
    Nothing,
    /// A temporary server with nothing said about it.
    Temporary(Box<Spawned>),
    /// A server as the file describes it.
    Server(Box<Described>),
    /// Servers on other hosts.
    Far(Vec<FarServer>),
    /// Servers, as they are described, and workers in pods.
    Pods(Option<Box<ServerSpec>>, Box<InPods>),
}

/// A server and the words that describe it.
pub(super) struct Described {
    pub spec: ServerSpec,
    /// The same with a password, where it has one.
    pub own: ServerSpec,
    /// What it was made ready for.
    pub room: Room,
    pub server: Server,
    /// Whether a copy of loaded data is there.
    pub copied: bool,
}

/// A server that outlives its run.
#[derive(Default)]
pub(super) struct Shared {
    kept: Option<Box<Described>>,
    /// Folders made so far.
    made: usize,
    /// Hosts that are reached by ssh.
    hosts: Hosts,
    /// The experiment whose servers are used instead of new ones.
    standing: Option<PathBuf>,
}

impl Shared {
    /// Uses the servers that an experiment has left running, if one is named.
    pub fn on(standing: Option<&Path>) -> Self {
        Shared { standing: standing.map(Path::to_owned), ..Shared::default() }
    }

    /// Ends the server that is kept, if there is one.
    pub fn end(&mut self) -> Result<(), LocalError> {
        self.kept.take().map_or(Ok(()), |kept| kept.server.stop().map(drop))
    }
}

/// Brings about what a cell asks for. `home` is a folder of the run, `below` the experiment's.
pub(super) fn provide(
    spec: &Experiment,
    home: &Path,
    below: &Path,
    shared: &mut Shared,
    (machine, control, program): (&Machine, &Arc<Control>, &Path),
) -> Result<Place, Failed> {
    if let Some(standing) = &shared.standing {
        let found = Standing::of(standing)?;
        let found = found
            .ok_or_else(|| Failed::other(format!("{}: its servers have been stopped", standing.display())))?;
        return found.place(spec, (home, below), (machine, control));
    }
    if let Some(kubernetes) = &spec.kubernetes {
        return in_pods(spec, kubernetes, home, (below, false), control);
    }
    let clients = shared.hosts.reach(&spec.ssh, &spec.ssh.clients, (program, control))?;
    let servers = shared.hosts.reach(&spec.ssh, &spec.ssh.servers, (program, control))?;
    let watched = shared.hosts.reach(&spec.ssh, &spec.ssh.watched, (program, control))?;
    let mut place = match &spec.server {
        Some(server) if !servers.is_empty() => elsewhere(spec, server, &servers, (home, below), control)?,
        _ => here(spec, home, below, shared, (machine, control))?,
    };
    if spec.monitors.enabled || on_workers(&spec.faults) {
        // A host has one agent.
        let mut known: Vec<&str> = servers.iter().map(|server| server.way.name()).collect();
        for host in watched.iter().chain(&clients) {
            if !known.contains(&host.way.name()) {
                place.beside.push(host.agent(home)?);
                known.push(host.way.name());
            }
        }
    }
    let watched = watched.iter().map(|host| host.way.name().to_owned()).collect();
    Ok(Place { clients, watched, ..place })
}

/// An error of a server, which says that it is one.
pub(super) fn of_server(error: impl Into<Cause>) -> LocalError {
    LocalError::failed("server", error)
}

/// So many random bytes as hexadecimal digits.
pub(super) fn random(count: usize) -> Result<String, Failed> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes).map_err(|e| LocalError::failed("no random numbers", e))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// With a password, where anybody who reaches the address could come in without one.
pub(super) fn secured(server: &ServerSpec) -> Result<ServerSpec, Failed> {
    let mut own = server.clone();
    if let Some(option) = server.lacks_password() {
        own.options.insert(option.into(), Setting::Text(random(16)?));
    }
    Ok(own)
}

fn here(
    spec: &Experiment,
    home: &Path,
    below: &Path,
    shared: &mut Shared,
    (machine, control): (&Machine, &Arc<Control>),
) -> Result<Place, Failed> {
    if let Some(server) = &spec.server {
        return described(spec, server, home, below, shared, (machine, control));
    }
    let uri = spec.target.clone().unwrap_or_else(|| "spawn:".into());
    if let Some(kind) = uri.strip_prefix("spawn:") {
        let found = find_server(Some(kind).filter(|kind| !kind.is_empty()));
        let Some((server, program)) = found else {
            return Err(Failed::other(format!("target: no server of kind {kind:?} on PATH")));
        };
        // What could not be removed is told by `dyno stop`.
        let _ = remove_abandoned();
        let kind = server.kind;
        let server = spawn_under(server, &program, Some(control)).map_err(|e| LocalError::failed(kind, e))?;
        let uris = vec![server.uri()];
        let taken = server.core.into_iter().collect();
        return Ok(Place::new(uris, taken, true, Held::Temporary(Box::new(server))));
    }
    let uri = match uri.contains("{dir}") {
        true => {
            let data = home.join("data");
            std::fs::create_dir_all(&data).map_err(|e| LocalError::failed(data.display(), e))?;
            uri.replace("{dir}", &data.display().to_string())
        }
        false => uri,
    };
    let local = registry::parse(&uri).is_ok_and(|target| target.is_local());
    Ok(Place::new(vec![uri], Vec::new(), local, Held::Nothing))
}

fn described(
    spec: &Experiment,
    server: &ServerSpec,
    home: &Path,
    below: &Path,
    shared: &mut Shared,
    (machine, control): (&Machine, &Arc<Control>),
) -> Result<Place, Failed> {
    let mut kept = shared.kept.take();
    let proxied = by_proxies(spec, machine);
    let room = Room::of(&spec.faults, &proxied);
    let other = |kept: &Described| kept.spec != *server || kept.room != room;
    if kept.as_ref().is_some_and(|kept| other(kept) || spec.server_lifetime == Lifetime::Run) {
        // The run describes another server: this one's time is over.
        if let Some(old) = kept.take() {
            old.server.stop().map_err(of_server)?;
        }
    }
    let mut volume = Volume::here(spec, server, below, machine)?;
    let described = match kept {
        Some(mut kept) => {
            if let Some(died) = kept.server.died() {
                return Err(Failed::other(format!("server: {died}")));
            }
            if kept.copied {
                kept.server.restore().map_err(of_server)?;
            }
            if server.drop_caches {
                kept.server.drop_caches().map_err(of_server)?;
            }
            kept
        }
        None => {
            let folder = match spec.server_lifetime {
                Lifetime::Run => home.to_owned(),
                Lifetime::Shared => {
                    shared.made += 1;
                    fresh(below, shared.made)
                }
            };
            std::fs::create_dir_all(&folder).map_err(|e| LocalError::failed(folder.display(), e))?;
            let own = secured(server)?;
            let loads = own.data.snapshot && spec.phases.load.when != When::Never;
            let begin = (&room, false, loads);
            let started = volumes::start(&own, begin, &folder, (machine, control), &mut volume)?;
            Box::new(Described { spec: server.clone(), own, room, server: started, copied: false })
        }
    };
    let (uris, taken) = (described.server.uris(), described.server.cores());
    let mut place = Place { volume, ..Place::new(uris, taken, true, Held::Server(described)) };
    if !proxied.is_empty() {
        place.stand_between()?;
        place.by_proxies = proxied;
    }
    Ok(place)
}

/// A folder for a shared server that does not exist yet.
fn fresh(below: &Path, number: usize) -> PathBuf {
    let all = (number..number + 10_000).map(|n| below.join(format!("server-{n:03}")));
    all.into_iter().find(|path| !path.exists()).unwrap_or_else(|| below.join("server"))
}

impl Place {
    pub(super) fn new(uris: Vec<String>, taken: Vec<usize>, local: bool, held: Held) -> Self {
        Place {
            uris,
            taken,
            local,
            clients: Vec::new(),
            watched: Vec::new(),
            beside: Vec::new(),
            proxies: Vec::new(),
            by_proxies: Vec::new(),
            volume: None,
            standing: None,
            held,
        }
    }

    /// Whether there are data to begin with, or may be.
    pub fn is_filled(&self) -> Result<bool, Failed> {
        match &self.volume {
            Some(volume) if volume.is_full() => volume.note().map(|()| true),
            _ => Ok(self.standing.is_some()),
        }
    }

    /// Puts a proxy in front of every instance.
    fn stand_between(&mut self) -> Result<(), LocalError> {
        let Held::Server(held) = &self.held else { return Ok(()) };
        for (uri, socket) in self.uris.iter().zip(held.server.sockets()) {
            if !uri.contains(&socket.to_string()) {
                let words = format!("faults: a target is not at {socket}, where its server is");
                return Err(LocalError::Failed(words));
            }
            let proxy = Proxy::start(socket);
            let step = || format!("a proxy in front of {socket}");
            let proxy = proxy.map_err(|e| LocalError::failed(step(), e))?;
            self.proxies.push(proxy);
        }
        Ok(())
    }

    /// What workers connect to: the targets, or the proxies in front of them.
    pub fn ways(&self) -> Vec<String> {
        let Held::Server(held) = &self.held else { return self.uris.clone() };
        let mut uris = self.uris.clone();
        for ((uri, proxy), socket) in uris.iter_mut().zip(&self.proxies).zip(held.server.sockets()) {
            *uri = uri.replacen(&socket.to_string(), &proxy.address().to_string(), 1);
        }
        uris
    }

    /// What faults can be done to.
    pub fn reach<'a>(
        &'a mut self,
        workers: Vec<(u32, Option<String>)>,
        logs: &Path,
        control: &'a Control,
    ) -> Reach<'a> {
        let servers = match &mut self.held {
            Held::Server(held) => Victims::Near(&mut held.server),
            Held::Far(all) => Victims::Far(all),
            Held::Pods(_, pods) => Victims::Pods(pods.server_pods(), control),
            _ => Victims::Nobody,
        };
        let (proxies, by_proxies) = (&self.proxies[..], &self.by_proxies[..]);
        Reach { servers, proxies, by_proxies, workers, beside: &mut self.beside, logs: logs.to_owned() }
    }

    /// Whether targets are reached from the workers alone.
    pub fn is_in_pods(&self) -> bool {
        matches!(self.held, Held::Pods(..))
    }

    /// The pods of the run.
    pub fn pods(&self) -> Option<&InPods> {
        match &self.held {
            Held::Pods(_, pods) => Some(pods),
            _ => None,
        }
    }

    /// Servers on other hosts.
    pub fn far(&self) -> &[FarServer] {
        match &self.held {
            Held::Far(all) => all,
            _ => &[],
        }
    }

    /// Facts about the server that was started, and about its volume.
    pub fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = self.facts_of_server();
        facts.extend(self.standing.iter().flat_map(|standing| standing.facts()));
        facts.extend(self.volume.iter().flat_map(Volume::facts));
        if !self.watched.is_empty() {
            facts.insert(WATCHED.into(), self.watched.join(WATCHED_BETWEEN));
        }
        facts
    }

    /// Its volume.
    pub fn volume(&mut self) -> Option<&mut Volume> {
        self.volume.as_mut()
    }

    /// Keys or documents of servers in pods, which have written them to their claims first where `save` says so.
    pub(super) fn counted_in_pods(&self, save: bool, control: &Control) -> Result<Option<u64>, Failed> {
        match (&self.held, self.beside.first()) {
            (Held::Pods(Some(server), pods), Some(agent)) => {
                Ok(Some(agent.count(server, &pods.servers, save, control)?))
            }
            _ => Ok(None),
        }
    }

    fn facts_of_server(&self) -> BTreeMap<String, String> {
        match &self.held {
            Held::Nothing => BTreeMap::new(),
            Held::Temporary(server) => {
                let mut facts = BTreeMap::from([("server.pid".to_owned(), server.pid().to_string())]);
                facts.extend(server.core.map(|core| ("server.core".to_owned(), core.to_string())));
                facts
            }
            Held::Server(held) => {
                let proxies = self.proxies.iter().enumerate();
                let proxies = proxies.map(|(i, proxy)| (format!("proxy.{}", i + 1), proxy.words()));
                let facts = held.server.facts().into_iter();
                facts.map(|(key, value)| (format!("server.{key}"), value)).chain(proxies).collect()
            }
            Held::Pods(_, pods) => pods.facts(),
            Held::Far(all) => {
                let mut facts = BTreeMap::new();
                for one in all {
                    // A host that is lost says nothing any more.
                    let (told, _) = one.facts().unwrap_or_default();
                    let name = one.far().name();
                    facts
                        .extend(told.into_iter().map(|(key, value)| (format!("server-{name}.{key}"), value)));
                }
                facts
            }
        }
    }

    /// Names and numbers of the server's processes, as they change.
    pub fn processes(&self) -> Vec<(String, Pid)> {
        if let Some(standing) = &self.standing {
            return standing.processes().into_iter().map(|(name, pid)| (name, pid.into())).collect();
        }
        match &self.held {
            // Those of other hosts are watched there.
            Held::Nothing | Held::Far(_) | Held::Pods(..) => Vec::new(),
            Held::Temporary(server) => vec![(server.kind().to_owned(), server.pid().into())],
            Held::Server(held) => held.server.watched(),
        }
    }

    /// Why the server is no longer there, if it is not.
    pub fn died(&mut self) -> Option<String> {
        if let Some(died) = self.standing.as_ref().and_then(|standing| standing.died()) {
            return Some(died);
        }
        match &mut self.held {
            Held::Nothing => None,
            Held::Temporary(server) => server.died(),
            Held::Server(held) => held.server.died(),
            Held::Pods(_, pods) => pods.server_pods().died(),
            Held::Far(all) => all.iter().find_map(|one| match one.facts() {
                Ok((_, died)) => died.map(|why| format!("{}: {why}", one.far().name())),
                Err(error) => Some(error.to_string()),
            }),
        }
    }

    /// Why the server is no longer there, after something has failed.
    pub fn cause(&mut self) -> Option<String> {
        match &self.held {
            Held::Pods(_, pods) => pods.server_pods().cause(),
            _ => self.died(),
        }
    }

    /// After a load of so many seconds: keeps the data where the file asks for that, for the next cells, or for later runs
    /// than `run`.
    pub fn loaded(
        &mut self,
        spec: &Experiment,
        (run, seconds): (&Path, f64),
        control: &Control,
    ) -> Result<(), Failed> {
        if self.standing.is_some() {
            let counted = self.counted_in_pods(false, control)?;
            return self
                .standing
                .as_mut()
                .map_or(Ok(()), |standing| standing.filled(spec, counted, run, seconds));
        }
        let count = if self.volume.is_some() { self.counted_in_pods(true, control)? } else { None };
        if let Some(volume) = &mut self.volume {
            return match (&mut self.held, count) {
                (Held::Server(held), _) => volume.fill_here(&mut held.server, run, seconds),
                (Held::Far(all), _) => volume.fill_far(all, (run, seconds), control),
                (_, Some(count)) => volume.fill_claims(count, run, seconds),
                _ => Ok(()),
            };
        }
        Ok(self.copied(control)?)
    }

    /// Without anything to load: what waits for the end of the load begins.
    pub fn not_loaded(&mut self, control: &Control) -> Result<(), LocalError> {
        match &self.held {
            Held::Server(held) if held.server.is_loading() => self.copied(control),
            _ => Ok(()),
        }
    }

    fn copied(&mut self, control: &Control) -> Result<(), LocalError> {
        match &mut self.held {
            Held::Server(held) if held.spec.data.snapshot => {
                held.copied = true;
                held.server.snapshot().map_err(of_server)
            }
            Held::Far(all) => all.iter().try_for_each(|one| one.loaded(control).map_err(of_server)),
            _ => Ok(()),
        }
    }

    /// The end of the run: the server ends with it, or is kept for the next.
    pub fn end(self, spec: &Experiment, shared: &mut Shared) -> Result<(), LocalError> {
        // Agents end before what they watch, and the way to pods before the pods.
        drop((self.beside, self.clients));
        match self.held {
            Held::Pods(_, pods) => pods.remove().map_err(|e| LocalError::failed("kubernetes", e)),
            Held::Nothing | Held::Temporary(_) => Ok(()),
            Held::Far(all) => {
                let ended: Vec<_> = all.into_iter().map(FarServer::stop).collect();
                ended.into_iter().collect::<Result<Vec<()>, _>>().map(drop).map_err(of_server)
            }
            Held::Server(mut held) => match spec.server_lifetime {
                Lifetime::Shared if held.server.died().is_none() => {
                    shared.kept = Some(held);
                    Ok(())
                }
                _ => held.server.stop().map(drop).map_err(of_server),
            },
        }
    }
}
