//! Embedded stores: a process of its own writes, is killed at random moments (SIGKILL) and started again; in the end every
//! record that it had called written is looked up.
//!
//! The writer says `b WORKER FROM TO` before a batch and `a WORKER FROM TO` after it, a line each, so that whatever was on its
//! way when it was killed is known to be so. What a kill of the process cannot show is what a loss of power does.

use crate::drive::{BatchHistory, BatchSchedule, IngestResult};
use crate::verify::{Copy, CopyScan};
use dyno_db::copies::database::RecordSpan;
use dyno_db::copies::ledger::{Ledger, RecordStatus};
use dyno_db::copies::plan::IngestPlan;
use dyno_db::copies::records::Records;
use dyno_engine::{Control, RunError};
use dyno_types::child;
use dyno_types::rng::{Purpose, Stream};
use dyno_types::{Content, Executed, Fields, Outcome, Refused, Request, Store, StoreSession, Verb};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time that a writer may say nothing beyond the gaps that its rate makes: it opens a store that was left by a kill.
const OPENING: Duration = Duration::from_secs(120);

/// Time for which a batch is sent again that another writer keeps from the store.
const BUSY: Duration = Duration::from_secs(60);

/// Why a proof of an embedded store, or its writer, does not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// The store cannot be opened.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// An operation of the store failed.
    #[error("{}: {message}", outcome.name())]
    Operation {
        /// Outcome.
        outcome: Outcome,
        /// The store's words.
        message: String,
    },
    /// The writer cannot read what it is to do.
    #[error("the job: {0}")]
    Job(#[source] serde_json::Error),
    /// The program of the writer cannot be started, or takes no job.
    #[error("{}: {source}", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The two cannot speak to each other, or the writer cannot be waited for.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The writer has said what it cannot have done.
    #[error("the writer said {0:?}")]
    Garbled(String),
    /// The writer has written nothing for this long.
    #[error("the writer has written nothing in {} s", .0.as_secs())]
    Silent(Duration),
    /// The writer has ended by itself.
    #[error("the writer has failed; its words are above")]
    Failed,
    /// The engine does not run the writer's users.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Job of a writer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WriterJob {
    uri: String,
    records: Records,
    batch: u64,
    /// From a worker's batch to its next, at least.
    gap: Duration,
    /// Of each worker: the first record, and the one after the last.
    workers: Vec<(u64, u64)>,
    /// True if it waits at its end to be killed.
    waits: bool,
}

/// A kill.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kill {
    /// When, seconds after the first sending.
    pub at_s: f64,
    /// Records on their way then.
    pub under_way: u64,
    /// From the next start until its first acknowledgement, seconds; nothing after the last.
    pub back_s: Option<f64>,
}

/// Result of a proof.
#[derive(Clone, Debug)]
pub struct EmbeddedProof {
    /// Result of writing.
    pub written: IngestResult,
    /// The kills.
    pub kills: Vec<Kill>,
    /// Records on their way when writing ended for good.
    pub at_end: u64,
    /// Content of the store.
    pub copy: Copy,
    /// Name and version of the engine, and its durability.
    pub engine: String,
    /// The same in words.
    pub durability: String,
}

/// Records and the entries of their indexes as records of a key-value store; an entry's key begins with its index.
struct KeyValueLayout(Records);

/// An index in the upper eight bits (0: the record itself), worker, number.
const WORKER: u32 = 40;
const INDEX: u32 = 56;

impl KeyValueLayout {
    fn request(&self, verb: Verb, worker: u32, number: u64, index: Option<usize>) -> Request {
        let index = index.map_or(0, |index| index as u64 + 1);
        let key = index << INDEX | u64::from(worker) << WORKER | number;
        Request { verb, fields: Fields::All, key, seed: key, ..Request::default() }
    }

    fn parts(request: &Request) -> (Option<usize>, u32, u64) {
        let index = (request.key >> INDEX).checked_sub(1).map(|index| index as usize);
        let worker = (request.key >> WORKER & 0xffff) as u32;
        (index, worker, request.key & ((1 << WORKER) - 1))
    }

    fn text(&self, request: &Request) -> String {
        match Self::parts(request) {
            (None, worker, number) => self.0.record_value(worker, number),
            (Some(_), worker, number) => self.0.record_key(worker, number),
        }
    }
}

impl Content for KeyValueLayout {
    fn table(&self) -> &str {
        "proof"
    }

    fn key(&self, request: &Request, out: &mut Vec<u8>) {
        let key = match Self::parts(request) {
            (None, worker, number) => self.0.record_key(worker, number),
            (Some(index), worker, number) => {
                let score = self.0.index_score(worker, number, index);
                format!("{}:{score:020}:{worker}:{number}", self.0.index_name(index))
            }
        };
        out.extend_from_slice(key.as_bytes());
    }

    fn fields(&self, _request: &Request) -> usize {
        1
    }

    fn name(&self, _request: &Request, _field: usize, out: &mut Vec<u8>) {
        out.push(b'v');
    }

    fn value_len(&self, request: &Request, _field: usize) -> usize {
        self.text(request).len()
    }

    fn value(&self, request: &Request, _field: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text(request).as_bytes());
    }

    fn verifies(&self) -> bool {
        true
    }

    fn verify(&self, request: &Request, field: &[u8], value: &[u8]) -> bool {
        field == b"v" && value == self.text(request).as_bytes()
    }
}

fn open(uri: &str, records: &Records) -> Result<(Arc<dyn Store>, Arc<KeyValueLayout>), Refused> {
    let layout = Arc::new(KeyValueLayout(records.clone()));
    Ok((dyno_db_embedded::open(uri, layout.clone())?, layout))
}

/// The writer: does the job that `input` holds and says on `output` what it has done.
///
/// # Errors
/// The job cannot be read, the store refuses something, or the parent no longer reads what the writer says.
pub fn write_embedded(input: &mut dyn BufRead, output: Box<dyn Write + Send>) -> Result<(), EmbeddedError> {
    let job: WriterJob = serde_json::from_reader(input).map_err(EmbeddedError::Job)?;
    let (store, layout) = open(&job.uri, &job.records)?;
    let schedule = BatchSchedule {
        workers: job.workers,
        batch: job.batch,
        gap: job.gap,
        duration: None,
        control: Arc::new(Control::default()),
        begun: Instant::now(),
    };
    let writer = Arc::new(WriterStore {
        store,
        layout,
        schedule,
        output: Mutex::new(output),
        failed: Mutex::default(),
    });
    writer.say("r\n")?;
    writer.schedule.write_to(&SharedWriter(writer.clone()), &mut |_| ())?;
    if let Some(why) = lock(&writer.failed).take() {
        return Err(why);
    }
    if !job.waits {
        return Ok(());
    }
    loop {
        // Fails once the process that started it is gone and reads no more.
        writer.say("w\n")?;
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn lock<T: ?Sized>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The store of a writer, to which users of the engine write batches.
struct WriterStore {
    store: Arc<dyn Store>,
    layout: Arc<KeyValueLayout>,
    schedule: BatchSchedule,
    output: Mutex<Box<dyn Write + Send>>,
    /// What ended it.
    failed: Mutex<Option<EmbeddedError>>,
}

impl WriterStore {
    fn say(&self, line: &str) -> io::Result<()> {
        let mut output = lock(&self.output);
        output.write_all(line.as_bytes()).and_then(|()| output.flush())
    }

    /// One transaction, said before and after it: records and the entries of their indexes.
    fn write(&self, session: &mut dyn StoreSession, part: RecordSpan) -> Result<(), EmbeddedError> {
        let mut requests = Vec::new();
        for number in part.from..part.to {
            for index in 0..self.layout.0.indexes {
                requests.push(self.layout.request(Verb::Insert, part.worker, number, Some(index)));
            }
            requests.push(self.layout.request(Verb::Insert, part.worker, number, None));
        }
        let message = format!("{} {} {}\n", part.worker, part.from, part.to);
        self.say(&format!("b {message}"))?;
        let begun = Instant::now();
        loop {
            match session.execute_batch(&requests).outcome {
                outcome if outcome.is_ok() => break,
                // Nothing of the transaction is stored. The wait counts: the batch's time goes on.
                Outcome::Busy if begun.elapsed() < BUSY => std::thread::sleep(Duration::from_millis(1)),
                outcome => return Err(failed(outcome, session)),
            }
        }
        Ok(self.say(&format!("a {message}"))?)
    }
}

/// The same, as what the engine opens sessions of.
struct SharedWriter(Arc<WriterStore>);

impl Store for SharedWriter {
    fn engine(&self) -> String {
        self.0.store.engine()
    }
    fn durability(&self) -> String {
        self.0.store.durability()
    }
    fn session(&self) -> Result<Box<dyn StoreSession>, Refused> {
        Ok(Box::new(WriterSession { session: self.0.store.session()?, writer: self.0.clone() }))
    }
}

/// A user of a writer.
struct WriterSession {
    session: Box<dyn StoreSession>,
    writer: Arc<WriterStore>,
}

impl StoreSession for WriterSession {
    fn execute(&mut self, request: &Request) -> Executed {
        let writer = &self.writer;
        let Some(part) = writer.schedule.await_batch(request).filter(|_| !writer.schedule.is_over()) else {
            return Executed::new(Outcome::Ok, 0);
        };
        match writer.write(self.session.as_mut(), part) {
            Ok(()) => Executed::new(Outcome::Ok, (part.to - part.from) as u32),
            // The first that fails ends all: the proof ends with it.
            Err(why) => {
                lock(&writer.failed).get_or_insert(why);
                writer.schedule.control.stop();
                Executed::new(Outcome::ServerError, 0)
            }
        }
    }

    fn last_error(&self) -> &str {
        self.session.last_error()
    }
}

fn failed(outcome: Outcome, session: &dyn StoreSession) -> EmbeddedError {
    EmbeddedError::Operation { outcome, message: session.last_error().to_string() }
}

/// A writer that runs.
struct ProofWriter {
    child: Child,
    said: Receiver<(Instant, String)>,
}

impl ProofWriter {
    /// Starts `program`, dyno itself, as the writer of a job.
    fn start(program: &Path, job: &WriterJob) -> Result<Self, EmbeddedError> {
        let failed = |source| EmbeddedError::Program { program: program.to_owned(), source };
        let mut command = child::clean_command(program);
        // Ctrl-C of a terminal is for dyno, which ends the writer.
        command.args(["prove", "writer"]).process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(mut input), Some(output)) = (input, output) else {
            return Err(io::Error::other("no pipes").into());
        };
        let (tell, said) = channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output);
            let mut line = String::new();
            // A line without its end was cut off by a kill and says nothing.
            while lines.read_line(&mut line).is_ok_and(|n| n > 0) && line.ends_with('\n') {
                if tell.send((Instant::now(), line.trim_end().to_owned())).is_err() {
                    break;
                }
                line.clear();
            }
        });
        let text = serde_json::to_string(job).map_err(io::Error::from)?;
        let told = input.write_all(text.as_bytes());
        drop(input);
        let writer = ProofWriter { child, said };
        told.map_err(failed)?;
        Ok(writer)
    }
}

impl Drop for ProofWriter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Progress of writers, by their lines so far.
struct WriterProgress {
    begun: Option<Instant>,
    /// Of each worker: the next record, and the batch under way since when.
    next: Vec<u64>,
    under_way: Vec<Option<(RecordSpan, Instant)>>,
    ledger: Vec<Ledger>,
    history: BatchHistory,
    /// True if the writer has nothing left to write.
    waits: bool,
}

impl WriterProgress {
    fn new(workers: u32) -> Self {
        let workers = workers as usize;
        WriterProgress {
            begun: None,
            next: vec![0; workers],
            under_way: vec![None; workers],
            ledger: vec![Ledger::default(); workers],
            history: BatchHistory::default(),
            waits: false,
        }
    }

    fn take(&mut self, at: Instant, line: &str) -> Result<(), EmbeddedError> {
        let strange = || EmbeddedError::Garbled(line.to_owned());
        let mut words = line.split(' ');
        let what = words.next().unwrap_or_default();
        if matches!(what, "r" | "w") {
            self.waits |= what == "w";
            return Ok(());
        }
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).ok_or_else(strange);
        let (worker, from, to) = (number()? as usize, number()?, number()?);
        let begun = *self.begun.get_or_insert(at);
        let next = self.next.get_mut(worker).ok_or_else(strange)?;
        match what {
            "b" if from == *next => {
                *next = to;
                self.under_way[worker] = Some((RecordSpan { worker: worker as u32, from, to }, at));
            }
            "a" => {
                let (part, sent) = self.under_way[worker].take().ok_or_else(strange)?;
                self.ledger[worker].add_records(part.worker, part.from, part.to, RecordStatus::Acknowledged);
                let ns = |span: Duration| span.as_nanos() as u64;
                self.history.add_batch(ns(at - begun), part.to - part.from, ns(at - sent));
            }
            _ => return Err(strange()),
        }
        Ok(())
    }

    /// The writer is gone: what was under way may be there or not. How many records that is.
    fn gone(&mut self) -> u64 {
        let mut lost = 0;
        for (part, _) in self.under_way.iter_mut().filter_map(Option::take) {
            lost += part.to - part.from;
            self.ledger[part.worker as usize].add_records(
                part.worker,
                part.from,
                part.to,
                RecordStatus::Indeterminate,
            );
        }
        lost
    }

    /// Nothing more comes.
    fn end(&mut self) {
        self.history.end_ns = self.begun.map_or(0, |begun| begun.elapsed().as_nanos() as u64);
    }

    fn records(&self) -> u64 {
        self.history.acknowledged_records()
    }
}

/// Writes to the store of `uri` by processes of `program`, kills `kills` of them, and looks everything up.
///
/// # Errors
/// A writer does not start, fails or says nothing for too long, or the store cannot be opened or read in the end.
pub fn embedded(
    uri: &str,
    program: &Path,
    plan: &IngestPlan,
    kills: u32,
    control: &Control,
    on_second: &mut (dyn FnMut(f64, u64) + Send),
) -> Result<EmbeddedProof, EmbeddedError> {
    let mut run = ProofRun {
        uri,
        program,
        plan,
        control,
        heard: WriterProgress::new(plan.workers),
        kills: Vec::new(),
        at_end: 0,
    };
    // What cannot be opened is refused here, with its code: a writer could only say it in words.
    drop(open(uri, &plan.record_recipe())?);
    let mut moments = Stream::new(plan.seed, 0, Purpose::Key);
    let begun = Instant::now();
    let mut second = Duration::from_secs(1);
    let mut tick = |heard: &WriterProgress| {
        if begun.elapsed() >= second {
            on_second(begun.elapsed().as_secs_f64(), heard.records());
            second += Duration::from_secs(1);
        }
    };
    for kill in 0..=kills {
        let share = (kill < kills).then(|| (f64::from(kill) + moments.next_unit()) / f64::from(kills));
        run.heard.waits = false;
        run.round(begun, share, &mut tick)?;
        if control.is_stopping() {
            break;
        }
    }
    run.heard.end();
    let (store, layout) = open(uri, &plan.record_recipe())?;
    let mut ledger = Ledger::default();
    run.heard.ledger.drain(..).for_each(|own| ledger.merge(own));
    let copy = look(uri, store.as_ref(), &layout, &ledger)?;
    let written = IngestResult { ledger, history: run.heard.history, ..IngestResult::default() };
    Ok(EmbeddedProof {
        written,
        kills: run.kills,
        at_end: run.at_end,
        copy,
        engine: store.engine(),
        durability: store.durability(),
    })
}

struct ProofRun<'a> {
    uri: &'a str,
    program: &'a Path,
    plan: &'a IngestPlan,
    control: &'a Control,
    heard: WriterProgress,
    kills: Vec<Kill>,
    /// Records on their way when the writer was ended for good.
    at_end: u64,
}

impl ProofRun<'_> {
    /// The share of the work that is done.
    fn done(&self, begun: Instant) -> f64 {
        match (self.plan.records, self.plan.duration) {
            (Some(all), _) => self.heard.records() as f64 / all.max(1) as f64,
            (None, Some(all)) => begun.elapsed().as_secs_f64() / all.as_secs_f64().max(1e-9),
            (None, None) => 1.0,
        }
    }

    fn job(&self, waits: bool) -> WriterJob {
        let workers =
            self.heard.next.iter().zip(0u32..).map(|(next, worker)| (*next, self.plan.worker_share(worker)));
        WriterJob {
            uri: self.uri.to_owned(),
            records: self.plan.record_recipe(),
            batch: self.plan.batch,
            gap: self.plan.batch_gap(),
            workers: workers.collect(),
            waits,
        }
    }

    /// Runs a writer until `share` of the work is done and kills it; without one, to the end.
    fn round(
        &mut self,
        begun: Instant,
        share: Option<f64>,
        tick: &mut dyn FnMut(&WriterProgress),
    ) -> Result<(), EmbeddedError> {
        let mut writer = ProofWriter::start(self.program, &self.job(share.is_some()))?;
        let started = Instant::now();
        let before = self.heard.records();
        let mut heard = started;
        let silence = OPENING.saturating_add(self.plan.batch_gap());
        loop {
            match writer.said.recv_timeout(Duration::from_millis(20)) {
                Ok((at, line)) => (heard, ()) = (at, self.heard.take(at, &line)?),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            tick(&self.heard);
            let acknowledged = self.heard.records() > before;
            if acknowledged && let Some(last) = self.kills.last_mut().filter(|last| last.back_s.is_none()) {
                last.back_s = Some(started.elapsed().as_secs_f64());
            }
            if heard.elapsed() > silence && !self.heard.waits {
                return Err(EmbeddedError::Silent(silence));
            }
            // Each writer has shown that it can write before it is killed.
            let due =
                self.heard.waits || acknowledged && share.is_some_and(|share| self.done(begun) >= share);
            let over = self.plan.duration.is_some() && share.is_none() && self.done(begun) >= 1.0;
            if due || over || self.control.is_stopping() {
                return self.kill(writer, due);
            }
        }
        let ended = writer.child.wait()?;
        self.heard.gone();
        match ended.success() {
            true => Ok(()),
            false => Err(EmbeddedError::Failed),
        }
    }

    /// Ends a writer at once and hears what it had still said; `asked` if this is one of the kills that were asked for.
    fn kill(&mut self, mut writer: ProofWriter, asked: bool) -> Result<(), EmbeddedError> {
        writer.child.kill()?;
        writer.child.wait()?;
        let killed = Instant::now();
        while let Ok((at, line)) = writer.said.recv_timeout(Duration::from_secs(5)) {
            self.heard.take(at, &line)?;
        }
        let under_way = self.heard.gone();
        match asked {
            true => {
                let at_s = self.heard.begun.map_or(0.0, |begun| (killed - begun).as_secs_f64());
                self.kills.push(Kill { at_s, under_way, back_s: None });
            }
            false => self.at_end += under_way,
        }
        Ok(())
    }
}

/// Looks everything up in the store.
fn look(
    uri: &str,
    store: &dyn Store,
    layout: &KeyValueLayout,
    ledger: &Ledger,
) -> Result<Copy, EmbeddedError> {
    let mut session = store.session()?;
    let mut read = |worker, number, index| {
        let done = session.execute(&layout.request(Verb::Read, worker, number, index));
        match (done.outcome, done.verified.map(|verified| verified.outcome)) {
            (Outcome::Ok, Some(Outcome::Ok)) => Ok(Some(true)),
            (Outcome::Ok, _) => Ok(Some(false)),
            (Outcome::NotFound, _) => Ok(None),
            (outcome, _) => Err(failed(outcome, session.as_ref())),
        }
    };
    let records = &layout.0;
    let mut look = CopyScan::new(uri);
    look.copy.indexed = vec![0; records.indexes];
    for range in ledger.merged_ranges() {
        for number in range.from..range.to {
            let found = read(range.worker, number, None)?;
            let value = found.is_some_and(|right| right).then(|| records.record_value(range.worker, number));
            let (key, value) = (records.record_key(range.worker, number), value.unwrap_or_default());
            look.record(key, range.status, found, value.as_bytes());
            for index in 0..records.indexes {
                look.copy.indexed[index] += u64::from(read(range.worker, number, Some(index))? == Some(true));
            }
        }
    }
    look.copy.caught_up_s = Some(0.0);
    look.copy.primary = true;
    Ok(look.end())
}
