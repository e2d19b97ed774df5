//! `dyno serve`: a local page that lists runs and experiments, follows those under way, and opens and compares reports.

mod auth;
mod follow;
mod http;
mod latest_share;
mod listing;
mod pending_pages;
mod served_directory;

use crate::compare;
use auth::AuthRules;
use clap::Args;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::{pages, signals, terminal};
use dyno_report::html::experiment::experiment_page;
use dyno_report::html::served::{ListedKind, encode_path, list_page, list_rows, live_page, message_page};
use dyno_rundir::ExperimentDir;
use dyno_types::bounded;
use dyno_types::child;
use dyno_types::limits::SECRET_BYTES;
use dyno_types::percent::{self, AsciiSet, RESERVED};
use http::{Request, Response};
pub use listing::listed;
use pending_pages::{NotMade, PageQuery, PendingPages};
use served_directory::{ServedDirectory, SurveyError};
use signal_hook::iterator::Signals;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Reports that are kept.
const KEPT: usize = 32;

/// Longest wait for a page.
const DEADLINE: Duration = Duration::from_secs(20);

/// Directories that are compared at once, at most.
const SIDES: usize = 20;

/// `dyno serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// Folder of runs and experiments, or one of these itself
    #[arg(default_value = "dyno-runs")]
    pub dir: PathBuf,
    /// Where to listen; port 0 takes a free one. Another address than the loopback wants a token
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    pub listen: String,
    /// A further name under which browsers reach this server; may be given several times
    #[arg(long, value_name = "NAME")]
    pub name: Vec<String>,
    /// File with a token of 16 characters or more, which everything then wants; with it experiments can be stopped
    #[arg(long, value_name = "FILE", conflicts_with = "allow_write")]
    pub token_file: Option<PathBuf>,
    /// As --token-file, with a token made here and printed
    #[arg(long)]
    pub allow_write: bool,
}

/// Everything that answers are made of.
struct Site {
    directory: ServedDirectory,
    auth: AuthRules,
    shown: String,
    /// Reports by directory, with the state of its files when they were made; the last used one last.
    reports: Mutex<Vec<(PathBuf, u64, Arc<str>)>>,
    /// Pages under way: a few at once, so that memory is that of a few.
    pending_pages: Arc<PendingPages>,
    /// The same of lists of what there is: no report keeps them from being made.
    pending_lists: Arc<PendingPages>,
    followed: Followed,
}

fn token_of(path: &Path) -> Result<String, Failure> {
    let named = |message: String| Failure::usage(format!("--token-file {}: {message}", path.display()));
    let text = bounded::text_file(path, SECRET_BYTES).map_err(|error| named(error.to_string()))?;
    let token = text.trim();
    let plain = token.chars().all(|c| c.is_ascii_graphic());
    if token.len() < auth::SHORTEST || !plain {
        return Err(named(format!("expected {} visible ASCII characters or more", auth::SHORTEST)));
    }
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(path).map_err(|error| named(error.to_string()))?.permissions().mode();
    if mode & 0o077 != 0 {
        terminal::warn(&format!("{}: others may read the token (mode {:o})", path.display(), mode & 0o777));
    }
    Ok(token.to_owned())
}

/// Returns the addresses to listen on, and the host as it was written.
fn addresses(listen: &str) -> Result<(SocketAddr, String), Failure> {
    let bad = |message: &str| Failure::usage(format!("--listen {listen}: {message}"));
    let (host, _) = listen.rsplit_once(':').ok_or_else(|| bad("expected HOST:PORT"))?;
    let mut found = listen.to_socket_addrs().map_err(|error| bad(&error.to_string()))?;
    let address = found.next().ok_or_else(|| bad("the name has no address"))?;
    Ok((address, host.trim_matches(['[', ']']).to_owned()))
}

/// `dyno serve`.
pub fn serve(args: &ServeArgs) -> Result<Exit, Failure> {
    let named = |error: std::io::Error| Failure::usage(format!("{}: {error}", args.dir.display()));
    let directory = ServedDirectory::open(&args.dir).map_err(named)?;
    let token = match (&args.token_file, args.allow_write) {
        (Some(path), _) => Some(token_of(path)?),
        (None, true) => Some(auth::random()?),
        (None, false) => None,
    };
    let (address, host) = addresses(&args.listen)?;
    if !address.ip().is_loopback() && token.is_none() {
        let message = "others can reach this address: it wants --token-file FILE or --allow-write";
        return Err(Failure::usage(format!("--listen {}: {message}", args.listen)));
    }
    let mut names = args.name.clone();
    if host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified()) {
        if names.is_empty() {
            let message = "every address of this host: name those that browsers use, with --name";
            return Err(Failure::usage(format!("--listen {}: {message}", args.listen)));
        }
    } else {
        names.push(host);
    }
    // Signals are taken before anything is answered.
    let mut signals = Signals::new(signals::wanted())?;
    let auth = AuthRules::new(&names, token.as_deref())?;
    let (shown, pending_pages) = (args.dir.display().to_string(), PendingPages::new(DEADLINE));
    let pending_lists = PendingPages::new(DEADLINE);
    let site = Arc::new(Site {
        directory,
        auth,
        shown,
        reports: Mutex::default(),
        pending_pages,
        pending_lists,
        followed: Followed::default(),
    });
    let listening = http::listen(address, Arc::new(move |request: &Request| site.answer(request)))
        .map_err(|error| Failure::usage(format!("--listen {}: {error}", args.listen)))?;
    let login = token.filter(|_| args.allow_write).map_or(String::new(), |token| format!("?token={token}"));
    terminal::out(&format!("http://{listening}/{login}\n"));
    terminal::note("Ctrl-C ends it");
    signals.forever().next();
    Ok(Exit::Interrupted)
}

/// Serves the live page of a run or experiment of this process, on a free port of the loopback, until the process ends; its
/// address.
///
/// # Errors
/// The directory cannot be read, or nothing can listen.
fn live_page_of(directory: &Path) -> Result<LivePage, Failure> {
    let named = |error: std::io::Error| Failure::usage(format!("--web: {}: {error}", directory.display()));
    let served = ServedDirectory::open(directory).map_err(named)?;
    let inside = directory.canonicalize().map_err(named)?;
    let name =
        served.name(&inside).ok_or_else(|| Failure::usage("--web: the directory's name is no text"))?;
    let auth = AuthRules::new(&["127.0.0.1".to_owned()], None)?;
    let (shown, pending_pages) = (directory.display().to_string(), PendingPages::new(DEADLINE));
    let pending_lists = PendingPages::new(DEADLINE);
    let site = Arc::new(Site {
        directory: served,
        auth,
        shown,
        reports: Mutex::default(),
        pending_pages,
        pending_lists,
        followed: Followed::default(),
    });
    let own = site.clone();
    let listening =
        http::listen(([127, 0, 0, 1], 0).into(), Arc::new(move |request: &Request| own.answer(request)))
            .map_err(|error| Failure::usage(format!("--web: {error}")))?;
    const SET: &AsciiSet = &RESERVED.remove(b'/');
    Ok(LivePage { address: format!("http://{listening}/live/{}", percent::percent_encode(&name, SET)), site })
}

/// A live page of a run of this process, for as long as the process lives.
pub struct LivePage {
    address: String,
    site: Arc<Site>,
}

/// Whether a browser follows, and whether it has what it follows to.
#[derive(Debug, Default)]
struct Followed {
    last: Mutex<Option<Instant>>,
    has_report: AtomicBool,
}

/// A browser that has asked since then still follows.
const FOLLOWS: Duration = Duration::from_secs(3);

/// Time that a browser gets to take the report, and the time that sending it takes.
const TAKES: Duration = Duration::from_secs(10);
const SENDS: Duration = Duration::from_secs(2);

impl LivePage {
    /// Waits until a browser that has followed the run has its report: what it shows then needs this process no more. Waits for
    /// nothing where none has followed.
    pub fn hand_over_report(&self) {
        let followed = &self.site.followed;
        let last = *followed.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() > FOLLOWS) {
            return;
        }
        followed.has_report.store(false, Ordering::Relaxed);
        let until = Instant::now() + TAKES;
        while Instant::now() < until
            && !followed.has_report.load(Ordering::Relaxed)
            && !signals::interrupted()
        {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(SENDS);
    }
}

/// Says where the live page is, and opens it where that is wanted.
pub fn show_live_page(directory: &Path, open: bool) -> Result<LivePage, Failure> {
    let page = live_page_of(directory)?;
    let address = &page.address;
    terminal::note(&format!("live page: {address}"));
    if open {
        let mut opener = child::clean_command("xdg-open");
        opener.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Err(error) = opener.spawn() {
            terminal::warn(&format!("--open: xdg-open: {error}: open the address in a browser"));
        }
    }
    Ok(page)
}

/// Bytes of a run's files from which on its page takes long.
const LONG: u64 = 64 << 20;

/// Returns whether a page takes long to be made: that of an experiment may have any number of runs.
fn is_long(path: &Path) -> bool {
    let files =
        ["intervals.jsonl", "totals.hlog", "events.jsonl", "journal.jsonl"].map(|name| path.join(name));
    let monitored = std::fs::read_dir(path.join("monitor")).into_iter().flatten().flatten();
    let all = files.into_iter().chain(monitored.map(|entry| entry.path()));
    let bytes: u64 =
        all.filter_map(|file| Some(file.symlink_metadata().ok()?.len())).fold(0, u64::saturating_add);
    bytes > LONG || path.join("experiment.json").is_file()
}

fn missing() -> Response {
    Response::html(404, message_page("Not here", "There is no such run, experiment or page."))
}

fn failed(status: u16, message: &str) -> Response {
    Response::html(status, message_page("This page cannot be made", message))
}

/// Reasons for which a page is not there.
#[derive(Debug, thiserror::Error)]
enum PageError {
    /// The page's folder is not read.
    #[error(transparent)]
    Survey(#[from] SurveyError),
    /// The page's subject cannot be read, or not be compared.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl Site {
    fn answer(self: &Arc<Self>, request: &Request) -> Response {
        if let Some(refused) = self.auth.check(request) {
            return refused;
        }
        let path = request.path.as_str();
        let after = |prefix: &str| path.strip_prefix(prefix);
        if request.method == "POST" {
            return after("/stop/").map_or_else(missing, |name| self.stop(name));
        }
        match path {
            "/" => self.list(),
            "/rows" => self.rows(),
            "/compare" => self.compare(request),
            _ => {
                if let Some(name) = after("/dir/").and_then(|rest| rest.strip_suffix("/report.html")) {
                    self.report(name)
                } else if let Some(name) = after("/live/") {
                    self.live(name)
                } else if let Some(name) = after("/tail/") {
                    self.tail(name, request)
                } else {
                    missing()
                }
            }
        }
    }

    /// The page that `make` gives, or why it is not there.
    fn page(
        self: &Arc<Self>,
        pages: &Arc<PendingPages>,
        asked: PageQuery<'_>,
        make: impl FnOnce(&Site) -> Result<Arc<str>, PageError> + Send + 'static,
    ) -> Response {
        let site = self.clone();
        match pages.wait(asked, move || make(&site)) {
            Ok(Ok(page)) => Response::html(200, page),
            Ok(Err(error)) => failed(422, &error.to_string()),
            Err(NotMade::Late) => {
                let seconds = pages.deadline().as_secs();
                failed(
                    503,
                    &format!("It takes longer than {seconds} s. It is still being made: ask again later."),
                )
            }
            Err(error) => failed(422, &error.to_string()),
        }
    }

    fn list(self: &Arc<Self>) -> Response {
        self.page(&self.pending_lists, ("/", false), |site| {
            let (all, left_out) = listing::list(&site.directory);
            Ok(list_page(&site.shown, &all, left_out, site.auth.writes()).into())
        })
    }

    fn rows(self: &Arc<Self>) -> Response {
        self.page(&self.pending_lists, ("/rows", false), |site| {
            Ok(list_rows(&listing::list(&site.directory).0, site.auth.writes()).into())
        })
    }

    /// The directory of a run or an experiment, its name, and which of them it is.
    fn found(&self, sent: &str) -> Option<(PathBuf, String, ListedKind)> {
        let path = self.directory.folder_at(sent)?;
        let name = self.directory.name(&path)?;
        let kind = match (path.join("experiment.json").is_file(), path.join("run.json").is_file()) {
            (true, _) => ListedKind::Experiment,
            (_, true) => ListedKind::Run,
            _ => return None,
        };
        Some((path, name, kind))
    }

    fn report(self: &Arc<Self>, sent: &str) -> Response {
        let Some((path, _, kind)) = self.found(sent) else { return missing() };
        let asked = (&*path.display().to_string(), is_long(&path));
        self.page(&self.pending_pages, asked, move |site| site.made(&path, kind))
    }

    /// A report, from those that are kept if nothing has changed since.
    fn made(&self, path: &Path, kind: ListedKind) -> Result<Arc<str>, PageError> {
        let page = self.page_of(path, kind);
        self.followed.has_report.store(true, Ordering::Relaxed);
        page
    }

    fn page_of(&self, path: &Path, kind: ListedKind) -> Result<Arc<str>, PageError> {
        let state = self.directory.survey(path)?;
        let reports = || self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = reports();
        if let Some(at) = kept.iter().position(|(of, then, _)| of == path && *then == state) {
            let one = kept.remove(at);
            kept.push(one.clone());
            return Ok(one.2);
        }
        drop(kept);
        let page: Arc<str> = match kind {
            ListedKind::Experiment => {
                let dir = ExperimentDir::open(path).map_err(Failure::from)?;
                experiment_page(&dir, None, &dyno_frontend::highest_rate::searched(path))
            }
            ListedKind::Run => pages::Material::read(path)?.html(None),
        }
        .into();
        let mut kept = reports();
        kept.retain(|(of, ..)| of != path);
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((path.to_owned(), state, page.clone()));
        Ok(page)
    }

    fn live(&self, sent: &str) -> Response {
        let Some((_, name, kind)) = self.found(sent) else { return missing() };
        Response::html(200, live_page(&name, kind, self.auth.writes()))
    }

    fn tail(&self, sent: &str, request: &Request) -> Response {
        let Some((path, ..)) = self.found(sent) else { return missing() };
        *self.followed.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let next = request.one("from").and_then(|text| text.parse().ok()).unwrap_or(0);
        let (run, metric) = (request.one("run").unwrap_or(""), request.one("metric").unwrap_or(""));
        let told = follow::tail(&self.directory, &path, &follow::FollowQuery { run, next, metric });
        match told.map(|told| serde_json::to_string(&told)) {
            Ok(Ok(text)) => Response::new(200, "application/json", text),
            Ok(Err(error)) => Response::plain_text(500, &error.to_string()),
            Err(error) => Response::plain_text(422, &error.to_string()),
        }
    }

    fn compare(self: &Arc<Self>, request: &Request) -> Response {
        let mut names: Vec<&str> = request.all("dir").collect();
        let baseline = request.one("baseline").filter(|name| !name.is_empty());
        names.dedup();
        if names.len() < 2 || names.len() > SIDES {
            return failed(422, &format!("Choose 2 to {SIDES} runs or experiments to compare."));
        }
        let mut sides = Vec::new();
        for name in names {
            let Some(path) = self.directory.folder(name) else { return missing() };
            let kind =
                if path.join("experiment.json").is_file() { ListedKind::Experiment } else { ListedKind::Run };
            let Some(entry) = listing::entry(&self.directory, &path, kind) else { return missing() };
            if let Err(error) = self.directory.survey(&path) {
                return failed(422, &error.to_string());
            }
            sides.push((baseline != Some(name), entry.started, name.to_owned(), path));
        }
        // The baseline first, then in the order of their beginning.
        sides.sort();
        self.page(&self.pending_pages, ("/compare", true), move |site| {
            let read = |(_, _, name, path): &(bool, String, String, PathBuf)| {
                let mut side = compare::gather::side(path, compare::gather::Take::Usable)?;
                side.call(name);
                Ok(side)
            };
            let sides: Result<Vec<_>, Failure> = sides.iter().map(read).collect();
            let report = |run: &Path| Some(encode_path("dir", &site.directory.name(run)?) + "/report.html");
            let page = sides.and_then(|mut sides| compare::page(&mut sides, &report));
            Ok(page?.into())
        })
    }

    fn stop(&self, sent: &str) -> Response {
        let Some((path, name, ListedKind::Experiment)) = self.found(sent) else { return missing() };
        if let Err(error) = self.directory.survey(&path) {
            return failed(422, &error.to_string());
        }
        match dyno_frontend::experiment::ask_to_stop(&path) {
            Ok(true) => {
                terminal::note(&format!("{name}: asked to stop"));
                Response::see("/")
            }
            Ok(false) => failed(409, "No dyno is at work on it."),
            Err(error) => failed(500, &error.to_string()),
        }
    }
}
