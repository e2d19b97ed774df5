//! `dyno record --listen ... --to ...`: records what clients and a server say to each other.

use crate::options::ProxyArgs;
use crate::record_totals::tell;
use dyno_db_memcached::protocol::MemcachedOptions;
use dyno_db_memcached::target::ask_endpoint;
use dyno_db_mongodb::protocol::MongoOptions;
use dyno_db_mongodb::target::ask_facts;
use dyno_db_redis::protocol::RedisOptions;
use dyno_db_redis::target::ask_mode;
use dyno_engine::files::raise_file_limit;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::{secret, signals, terminal};
use dyno_recording::anonymise::Anonymiser;
use dyno_recording::exchange::PairedProtocol;
use dyno_recording::proxy::{
    ListenerTls, ProxyError, ProxySettings, ProxyTotals, StreamTls, proxy_header, run_proxy,
};
use dyno_recording::{RecordingError, RecordingWriter};
use dyno_types::Endpoint;
use dyno_types::address::Tls;
use dyno_types::units::{Thousands, parse_duration_ns};
use signal_hook::iterator::Signals;
use std::fs::File;
use std::io::BufWriter;
use std::net::{TcpListener, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest value that can be kept, bytes: a command holds so much at most.
const VALUE_LIMIT: usize = 64 << 20;

/// Schemes of URIs whose servers speak memcached's text protocols.
const MEMCACHED_SCHEMES: [&str; 2] = ["memcached", "memcacheds"];

/// Schemes of URIs whose servers speak Redis' protocol.
const REDIS_SCHEMES: [&str; 3] = ["redis", "rediss", "unix"];

/// Those whose servers speak MongoDB's; names in DNS stand for sets of servers.
const MONGODB_SCHEMES: [&str; 1] = ["mongodb"];

/// Relays and records until interrupted, or for the time that is asked for.
pub fn record_proxy(
    args: &ProxyArgs,
    out: &Path,
    value_limit: Option<usize>,
    anonymiser: Option<Anonymiser>,
) -> Result<Exit, Failure> {
    let (Some(listen), Some(to)) = (&args.listen, &args.to) else {
        return Err(Failure::usage("a proxy needs --listen HOST:PORT and --to URI"));
    };
    let named = |option: &str, why: &dyn std::fmt::Display| Failure::usage(format!("{option}: {why}"));
    if value_limit.is_some_and(|limit| limit > VALUE_LIMIT) {
        return Err(named("--value-limit", &"above 64 MiB, which a command holds at most"));
    }
    let duration = args.duration.as_ref().map(|text| parse_duration_ns(text, 1_000_000_000)).transpose();
    let duration = duration.map_err(|why| named("--duration", &why))?.map(Duration::from_nanos);
    let server = ProxiedServer::read_uri(to, args)?;
    let protocol = server.paired_protocol();
    let value_limit = value_limit.unwrap_or_else(|| protocol.recorded_protocol().usual_value_limit());
    let clients = args.tls_cert.clone().zip(args.tls_key.clone()).map(|(cert, key)| ListenerTls {
        cert,
        key,
        client_ca: args.tls_client_ca.clone(),
    });
    let tls = StreamTls::load(clients.as_ref(), server.tls_settings())?;
    // A client and its connection to the server.
    raise_file_limit(2 * args.connections)?;
    // Signals are taken before a client is.
    let mut asked = Signals::new(signals::wanted())?;
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, first) = (stop.clone(), stop.clone());
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for _ in asked.forever() {
            if stopped.swap(true, Ordering::Relaxed) {
                std::process::exit(i32::from(Exit::Interrupted as u8));
            }
        }
    })?;
    let server = server.ask_endpoint(&|| first.load(Ordering::Relaxed))?;
    let bind = |why: std::io::Error| named(&format!("--listen {listen}"), &why);
    let address = listen.to_socket_addrs().map_err(bind)?.next();
    let address = address.ok_or_else(|| named("--listen", &"the name has no address"))?;
    let listener = TcpListener::bind(address).map_err(bind)?;
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() && args.tls_client_ca.is_none() {
        terminal::warn(&format!("--listen {listen}: others can reach the server through this address"));
    }
    let writer = if args.relay_only { None } else { Some(create_recording(out, protocol, value_limit)?) };
    let writer = match (writer, anonymiser) {
        (Some(writer), Some(anonymiser)) => {
            let refused = |why| {
                // Nothing is in it.
                let _ = std::fs::remove_file(out);
                named("--anonymise", &why)
            };
            Some(writer.anonymise_with(anonymiser).map_err(refused)?)
        }
        (writer, _) => writer,
    };
    let by_tls = if clients.is_some() { ", by TLS" } else { "" };
    let what = if args.relay_only { "relays (nothing is recorded)" } else { "records" };
    terminal::note(&format!("{what}: clients of {address}{by_tls} reach {server}; Ctrl-C ends it"));
    let connections = args.connections;
    let settings = ProxySettings { protocol, to: server, tls, connections, duration, value_limit };
    let ended = run_proxy(listener, &settings, writer, &stop);
    let totals = ended.map_err(|error| match error {
        ProxyError::Recording(why) => Failure::internal(format!(
            "{}: {why}; what was written before can be read, and clients were disconnected",
            out.display()
        )),
        other => Failure::internal(other),
    })?;
    show_totals(out, protocol, &totals);
    Ok(Exit::Ok)
}

/// The server behind the proxy.
enum ProxiedServer {
    Redis(RedisOptions),
    Memcached(MemcachedOptions),
    Mongodb(Arc<MongoOptions>),
}

impl ProxiedServer {
    fn read_uri(to: &str, args: &ProxyArgs) -> Result<Self, Failure> {
        let named = |why: &dyn std::fmt::Display| Failure::usage(format!("--to: {why}"));
        let uri = || secret::uri(to, args.password_from.as_ref());
        let scheme = to.split(':').next().unwrap_or_default();
        if REDIS_SCHEMES.contains(&scheme) {
            return Ok(ProxiedServer::Redis(RedisOptions::from_uri(&uri()?)?));
        }
        let several = || named(&"a proxy records one server: name the one that clients are to reach");
        if MEMCACHED_SCHEMES.contains(&scheme) {
            let options = MemcachedOptions::from_uri(&uri()?)?;
            return if options.addresses.len() > 1 {
                Err(several())
            } else {
                Ok(ProxiedServer::Memcached(options))
            };
        }
        if !MONGODB_SCHEMES.contains(&scheme) {
            let message = format!(
                "a proxy records redis://, rediss://, unix://, memcached://, memcacheds:// and mongodb://, not {scheme}:"
            );
            return Err(named(&message));
        }
        let options = MongoOptions::from_uri(&uri()?)?;
        if options.addresses.len() > 1 {
            Err(several())
        } else {
            Ok(ProxiedServer::Mongodb(Arc::new(options)))
        }
    }

    fn paired_protocol(&self) -> PairedProtocol {
        match self {
            ProxiedServer::Redis(_) => PairedProtocol::Redis,
            ProxiedServer::Memcached(_) => PairedProtocol::Memcached,
            ProxiedServer::Mongodb(_) => PairedProtocol::Mongodb,
        }
    }

    fn tls_settings(&self) -> Option<&Tls> {
        match self {
            ProxiedServer::Redis(options) => options.tls.as_ref(),
            ProxiedServer::Memcached(options) => options.tls.as_ref(),
            ProxiedServer::Mongodb(options) => options.tls.as_ref(),
        }
    }

    /// Asks the server what it is; its address.
    fn ask_endpoint(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<Endpoint, Failure> {
        let named = |why: &str| Failure::usage(format!("--to: {why}"));
        match self {
            ProxiedServer::Redis(options) => {
                let (endpoint, mode) = ask_mode(options, stop)?;
                if options.cluster || mode.as_deref() == Some("cluster") {
                    return Err(named(
                        "the server is a node of a cluster, which tells clients the addresses of its nodes: they would walk \
                         past the proxy. Capture the nodes' traffic with tcpdump instead, and record the captures",
                    ));
                }
                if mode.as_deref() == Some("sentinel") {
                    return Err(named(
                        "it is a sentinel, which tells clients the address of the primary: name the primary",
                    ));
                }
                Ok(endpoint)
            }
            ProxiedServer::Memcached(options) => Ok(ask_endpoint(options, stop)?),
            ProxiedServer::Mongodb(options) => {
                let (endpoint, facts) = ask_facts(options, stop)?;
                if let Some(set) = facts.get("replica_set").filter(|_| !facts.hosts.is_empty()) {
                    terminal::warn(&format!(
                        "the server is a member of replica set {set:?}, which tells clients the addresses of its members \
                         ({}): clients walk past the proxy unless their URI says directConnection=true",
                        facts.hosts.join(", ")
                    ));
                }
                Ok(endpoint)
            }
        }
    }
}

fn create_recording(
    path: &Path,
    protocol: PairedProtocol,
    value_limit: usize,
) -> Result<RecordingWriter<BufWriter<File>>, Failure> {
    RecordingWriter::create_file(path, &proxy_header(protocol, value_limit)).map_err(|why| {
        let text = format!("--out {}: {why}", path.display());
        match why {
            RecordingError::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                Failure::internal(text)
            }
            _ => Failure::usage(text),
        }
    })
}

fn show_totals(out: &Path, protocol: PairedProtocol, totals: &ProxyTotals) {
    let Some(recording) = &totals.recording else {
        terminal::line(&format!("relayed {} connections", Thousands(totals.accepted)));
        return;
    };
    tell(out, None, recording);
    if recording.commands == 0 {
        terminal::warn("no command has passed: do the clients connect to the proxy's address?");
    }
    if totals.redirections > 0 {
        let count = Thousands(totals.redirections);
        let what = match protocol {
            PairedProtocol::Redis => "sent clients to other nodes of a cluster (MOVED, ASK)",
            PairedProtocol::Memcached | PairedProtocol::Mongodb => {
                "named members of a replica set (hello), to which clients may have gone"
            }
        };
        terminal::warn(&format!("{count} replies {what}: what they said there is not recorded"));
    }
}
