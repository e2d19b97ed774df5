//! The lane of embedded stores: they block, so every user is an OS thread.
//!
//! Users of one core share one recorder behind a lock that is held for a few nanoseconds once an operation; a private
//! recorder for each of 64 users would be 166 MiB. The open loop's schedule is shared by all users: the next free one
//! takes the next arrival and sleeps until it is due.

mod batch;

use crate::affinity;
use crate::arrivals::Schedule;
use crate::claim::ClaimedBlock;
use crate::event_loop::clipped_ns;
use crate::job::{Clock, Job, Pacing};
use crate::merge::{Ending, Finished, Merger, Second, ThreadEvent, recorder};
use crate::net::monotonic_ns;
use crate::run_error::RunError;
use crate::shared::RunState;
use dyno_record::{RawSample, Recorder, ThreadInterval};
use dyno_types::{Executed, Outcome, RecordVerification, Request, Store, StoreSession, Verb};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
/// Longest sleep, so that a request to stop is seen.
const NAP_NS: u64 = 50_000_000;

/// State that all users of a run share beyond the engine's own.
struct Users {
    shared: Arc<RunState>,
    epoch_ns: u64,
    measure_ns: u64,
    end_ns: u64,
    /// When the measured phase is over at the latest, as far as that is known yet.
    bound_ns: AtomicU64,
    /// The arrivals not taken yet, and how many users have found none free to take them.
    schedule: Option<Mutex<Schedule>>,
    index_end: u64,
    recorders: Vec<Mutex<Option<Recorder>>>,
    measuring: AtomicBool,
    pinned: AtomicBool,
    left: AtomicUsize,
    /// What the histograms say of the users' times, set right at the phase's boundaries.
    clipped_ns: AtomicI64,
    /// When the ticking thread last ran, which never sleeps for longer than a nap; or a user came back while it had no core.
    ticked_ns: AtomicU64,
    /// The thread that swaps recorders; woken by the last user.
    ticker: OnceLock<Thread>,
}

/// An operation a user is to execute.
struct Task {
    index: u64,
    intended_ns: u64,
    /// When a user who is never late would begin it.
    ideal_ns: u64,
    warm: bool,
    /// Was due before the user was free.
    waited: bool,
    /// Is executed in a batch with another that stands for the time they take.
    rides: bool,
}

/// A request of an operation: how it ended, its service time and its response time in nanoseconds.
type TimedRequest = (Request, Executed, u64, u64);

/// Runs a job on a store.
pub(crate) fn run(
    shared: Arc<RunState>,
    store: &dyn Store,
    on_second: &mut dyn FnMut(Second),
) -> Result<Finished, RunError> {
    let begun = monotonic_ns();
    let count = shared.job.users;
    // Opened before any thread is pinned: the store's own threads inherit neither core nor slack.
    let sessions: Vec<_> =
        (0..count).map(|_| store.session_of(shared.job.workload.content())).collect::<Result<_, _>>()?;
    let cores = shared.job.cores.len();
    let (full, filled) = sync_channel(cores * 2);
    let (recorders, empties): (Vec<_>, Vec<_>) =
        (0..cores).map(|core| recorder(&shared, core, &full)).unzip();
    drop(full);
    let (report, events) = channel();
    let connected = monotonic_ns();
    let proposed = connected + 1_000_000;
    let start = shared.job.team.as_ref().map_or(proposed, |team| team.meet(proposed, &shared.control));
    let wall = shared.control.begins(start);
    let users = Users::new(shared.clone(), start, recorders);
    std::thread::scope(|scope| {
        for (user, session) in sessions.into_iter().enumerate() {
            let (users, report) = (&users, report.clone());
            scope.spawn(move || users.user(user, session, &report));
        }
        drop(report);
        scope.spawn(|| users.tick());
        let ending = Merger::new(&shared, empties).run(&filled, &events, count, on_second)?;
        Ok(Finished {
            epoch: wall,
            elapsed_ns: ending.ended_ns.saturating_sub(users.epoch_ns),
            measured_ns: ending.measured_ns(users.measure_ns),
            busy_rate: ending.busy_rate.filter(|_| ending.counted),
            errors: ending.errors,
            connecting_ns: connected - begun,
            pinned: users.pinned.load(Ordering::Relaxed),
        })
    })
}

/// Progress of a user of the closed loop.
#[derive(Default)]
struct Turn {
    block: ClaimedBlock,
    /// Operations, where they belong to users, and those that are measured.
    position: u64,
    measured: u64,
    /// Nothing has been done yet.
    first: bool,
    /// Not of the warm-up.
    late: bool,
}

impl Turn {
    /// The user's next index; `None` when its share is done. The warm-up uses up none.
    fn own(&mut self, user: u64, job: &Job, warm: bool) -> Option<u64> {
        let users = job.users as u64;
        if !warm {
            if user + self.measured * users >= job.end.operations.unwrap_or(u64::MAX) {
                return None;
            }
            self.measured += 1;
        }
        self.position += 1;
        debug_assert!(self.measured <= self.position, "operations that are measured are some of all");
        Some(user + (self.position - 1) * users)
    }
}

/// A user ends, by a panic of its store, too: the last one closes the recorders, or the run would wait for them for ever.
struct Leaving<'a>(&'a Users);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let users = self.0;
        let left = users.left.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(left > 0, "a user leaves once");
        if left != 1 {
            return;
        }
        for recorder in &users.recorders {
            if let Some(mut recorder) = recorder.lock().unwrap_or_else(PoisonError::into_inner).take() {
                recorder.now.clipped_ns += users.clipped_ns.swap(0, Ordering::Relaxed);
                recorder.finish();
            }
        }
        if let Some(ticker) = users.ticker.get() {
            ticker.unpark();
        }
    }
}

impl Users {
    fn new(shared: Arc<RunState>, epoch_ns: u64, recorders: Vec<Recorder>) -> Self {
        let job = &shared.job;
        let measure_ns = epoch_ns + job.warmup_ns;
        let mut index_end = u64::MAX;
        let schedule = match &job.pacing {
            Pacing::Closed { .. } | Pacing::Recorded => None,
            Pacing::Open { profile, process } => {
                let (stripe, stripes) = job.stripe;
                if let Some(operations) = job.end.operations {
                    let mut whole = Schedule::new(profile.clone(), *process, job.seed, 0, 1);
                    while whole.peek_arrival().1 < job.warmup_ns {
                        whole.advance_arrival();
                    }
                    index_end = whole.peek_arrival().0 + operations;
                }
                let mut own = Schedule::new(profile.clone(), *process, job.seed, stripe, stripes);
                if index_end != u64::MAX {
                    own.end_before(index_end);
                }
                Some(Mutex::new(own))
            }
        };
        let warmed = job.warmup_ns == 0;
        let mut recorders = recorders;
        for recorder in &mut recorders {
            recorder.begin_at(epoch_ns);
            recorder.now.warmup = !warmed;
        }
        let end_ns = job.end.duration_ns.map_or(u64::MAX, |d| measure_ns.saturating_add(d));
        Users {
            epoch_ns,
            measure_ns,
            end_ns,
            bound_ns: AtomicU64::new(end_ns),
            schedule,
            index_end,
            recorders: recorders.into_iter().map(|r| Mutex::new(Some(r))).collect(),
            measuring: AtomicBool::new(warmed),
            pinned: AtomicBool::new(true),
            left: AtomicUsize::new(job.users),
            clipped_ns: AtomicI64::new(0),
            ticked_ns: AtomicU64::new(epoch_ns),
            ticker: OnceLock::new(),
            shared,
        }
    }

    fn recorder(&self, user: usize) -> MutexGuard<'_, Option<Recorder>> {
        self.recorders[user % self.recorders.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts something of the warm-up, or of the measured part.
    fn count(&self, user: usize, warm: bool, note: impl FnOnce(&mut ThreadInterval)) {
        self.count_ended(user, warm, None, note);
    }

    /// Counts an operation that has `ended`: its outcome, when it began and when it was done.
    fn count_ended(
        &self,
        user: usize,
        warm: bool,
        ended: Option<(Outcome, u64, u64)>,
        note: impl FnOnce(&mut ThreadInterval),
    ) {
        if let Some((_, _, done)) = ended {
            // The first thread that comes back tells all recorders.
            self.note_pause(done);
        }
        if let Some(recorder) = self.recorder(user).as_mut() {
            if !warm {
                // The ticking thread may be late.
                recorder.end_warmup(self.first_interval());
            }
            match ended {
                Some((Outcome::Ok, begun, done)) => {
                    recorder.note_wake(done, done);
                    if recorder.ends_gap(done) {
                        recorder.end_gap(begun, done);
                    }
                    recorder.note_success(done);
                }
                Some((outcome, begun, _)) if outcome.is_unanswered() => recorder.note_unanswered(begun),
                _ => {}
            }
            note(&mut recorder.now);
        }
    }

    /// The interval in which the measured part begins.
    fn first_interval(&self) -> u64 {
        (self.measure_ns - self.epoch_ns) / self.shared.job.interval_ns
    }

    /// Swaps every recorder at the end of each interval and at the end of the warm-up, until all users have ended.
    fn tick(&self) {
        // Set once: only this thread does.
        let _ = self.ticker.set(std::thread::current());
        let interval_ns = self.shared.job.interval_ns;
        let mut next = self.epoch_ns + interval_ns;
        while self.left.load(Ordering::Acquire) > 0 {
            let now = monotonic_ns();
            self.note_pause(now);
            self.ticked_ns.fetch_max(now, Ordering::Relaxed);
            let warming = !self.measuring.load(Ordering::Relaxed);
            if warming && now >= self.measure_ns {
                // Swapped first: a user that sees the measured part begun finds its interval.
                self.each_recorder(|recorder| recorder.end_warmup(self.first_interval()));
                self.measuring.store(true, Ordering::Release);
            }
            if now >= next {
                let number = (now - self.epoch_ns) / interval_ns;
                let warmup = !self.measuring.load(Ordering::Relaxed);
                self.each_recorder(|recorder| recorder.swap_interval(number, warmup));
                next = self.epoch_ns + (number + 1) * interval_ns;
            }
            let until = if warming { next.min(self.measure_ns) } else { next };
            let nap_ns = until.min(now + NAP_NS).saturating_sub(monotonic_ns());
            std::thread::park_timeout(Duration::from_nanos(nap_ns));
        }
    }

    /// The last moment of which it is known that the process ran, or was to run.
    fn ran_ns(&self) -> u64 {
        self.ticked_ns.load(Ordering::Relaxed) + NAP_NS
    }

    /// Notes that the process runs. After a pause of it every recorder is told before the time is: a thread that comes back
    /// second would find a fresh time and count the pause as the store's.
    fn note_pause(&self, now_ns: u64) {
        let due_ns = self.ran_ns();
        if now_ns > due_ns {
            self.each_recorder(|recorder| recorder.note_wake(due_ns, now_ns));
            self.ticked_ns.fetch_max(now_ns, Ordering::Relaxed);
        }
    }

    fn each_recorder(&self, turn: impl Fn(&mut Recorder)) {
        for user in 0..self.recorders.len() {
            if let Some(recorder) = self.recorder(user).as_mut() {
                turn(recorder);
            }
        }
    }

    fn user(&self, user: usize, mut session: Box<dyn StoreSession>, report: &Sender<ThreadEvent>) {
        let _leaving = Leaving(self);
        if !affinity::pin_thread(self.shared.job.cores[user % self.recorders.len()]) {
            self.pinned.store(false, Ordering::Relaxed);
        }
        sleep_until(self.epoch_ns);
        self.shared.control.begun(monotonic_ns().saturating_sub(self.epoch_ns));
        let mut errors: Vec<(Outcome, String)> = Vec::new();
        let mut turn = Turn { first: true, ..Turn::default() };
        let job = &self.shared.job;
        let waits = matches!(job.pacing, Pacing::Closed { .. });
        let paced_ns = self.epoch_ns.saturating_add(if waits { job.workload.begin_ns() } else { 0 });
        turn.late = waits && job.warm_users.is_some_and(|warm| user >= warm);
        let mut free_ns = if turn.late { paced_ns.max(self.measure_ns) } else { paced_ns };
        let batch = if job.workload.only_inserts() { job.batch } else { 1 };
        let (mut tasks, mut requests, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        let mut ideal_free_ns = self.epoch_ns;
        let mut done_ns = 0;
        while let Some(mut task) = self.next_task(user, &mut turn, free_ns) {
            task.ideal_ns = task.ideal_ns.max(ideal_free_ns);
            free_ns = if batch > 1 {
                tasks.clear();
                tasks.push(task);
                self.fill(user, &mut turn, free_ns, &mut tasks, batch);
                ideal_free_ns =
                    self.operate_batch(user, session.as_mut(), &mut tasks, &mut requests, &mut errors);
                done_ns = monotonic_ns();
                done_ns
            } else {
                let index = self.shared.job.own_index(task.index, 1);
                let first = self.shared.job.workload.request(index, &self.shared.frontier);
                ideal_free_ns = self.operate(user, session.as_mut(), &task, first, &mut errors, &mut parts);
                done_ns = monotonic_ns();
                job.workload.resume_ns(&first, done_ns)
            };
        }
        let begun = monotonic_ns();
        let counted = waits && job.end.operations.is_some() && !self.stopping() && begun < self.end_ns;
        drop(session);
        if let Some(metric) = self.shared.own.cleanup {
            let now = monotonic_ns();
            let (service_ns, done_ns) = (now - begun, now - self.epoch_ns);
            let sample =
                RawSample { metric, outcome: Outcome::Ok, done_ns, service_ns, response_ns: service_ns };
            let warm = !self.measuring.load(Ordering::Acquire);
            self.count(user, warm, |interval| interval.record_sample(sample, self.shared.job.raw_samples));
        }
        // Told before the recorders close, so that the merging finds it.
        let bound_ns = self.bound_ns.load(Ordering::Relaxed);
        let ending = Ending { errors, ended_ns: begun, bound_ns, done_ns, counted, busy_rate: None };
        let _ = report.send(ThreadEvent::Ended(Ok(ending)));
    }

    fn next_task(&self, user: usize, turn: &mut Turn, free_ns: u64) -> Option<Task> {
        match &self.schedule {
            None => self.next_closed(user, turn, free_ns),
            Some(schedule) => self.next_arrival(user, schedule, free_ns),
        }
    }

    fn next_closed(&self, user: usize, turn: &mut Turn, free_ns: u64) -> Option<Task> {
        let job = &self.shared.job;
        (free_ns < u64::MAX).then_some(())?; // Or the user does nothing any more.
        let Pacing::Closed { think_ns } = job.pacing else { return None };
        let first = std::mem::take(&mut turn.first);
        let intended_ns = free_ns.saturating_add(if first { 0 } else { think_ns });
        let intended_ns = intended_ns.min(self.end_ns);
        if !self.sleep_to(intended_ns) || monotonic_ns() >= self.end_ns {
            return None;
        }
        // A user that begins with the measured part does not begin before it is counted.
        while first
            && turn.late
            && !self.measuring.load(Ordering::Acquire)
            && !self.shared.control.is_stopping()
        {
            std::thread::sleep(Duration::from_micros(50));
        }
        let warm = !self.measuring.load(Ordering::Acquire);
        let index = if job.workload.is_per_user() {
            turn.own(user as u64, job, warm)?
        } else if warm {
            turn.block.claim_warm(&self.shared.claims)
        } else {
            turn.block.claim_measured(&self.shared.claims)?
        };
        Some(Task { index, intended_ns, ideal_ns: intended_ns, warm, waited: false, rides: false })
    }

    fn next_arrival(&self, user: usize, schedule: &Mutex<Schedule>, free_ns: u64) -> Option<Task> {
        let queue = &self.shared.job.queue;
        loop {
            let (index, intended_ns) = {
                let mut schedule = schedule.lock().unwrap_or_else(PoisonError::into_inner);
                let (index, due) = schedule.peek_arrival();
                let intended = self.epoch_ns.saturating_add(due);
                let stopped = self.stopping() && intended > monotonic_ns();
                if index >= self.index_end || intended >= self.end_ns || stopped {
                    if let Some(end_ns) = schedule.end_due_ns() {
                        self.bound_ns.fetch_min(self.epoch_ns.saturating_add(end_ns), Ordering::Relaxed);
                    }
                    return None;
                }
                schedule.advance_arrival();
                (index, intended)
            };
            let warm = intended_ns < self.measure_ns;
            let now = monotonic_ns();
            let age_ns = now.saturating_sub(intended_ns);
            let late = queue.age_ns.is_some_and(|age| age_ns > age) || self.too_many_waiting(age_ns);
            let waited = intended_ns < free_ns;
            let over = self.shared.control.is_stopping() || (now >= self.end_ns && !queue.outlasts_end);
            let aborted = waited && over;
            let undrained = !aborted && !late && now > self.end_ns.saturating_add(self.shared.job.drain_ns);
            if aborted || late || undrained {
                let outcome = if aborted { Outcome::Aborted } else { Outcome::Dropped };
                self.drop_arrival(user, index, intended_ns, warm, outcome, undrained);
                continue;
            }
            if !self.sleep_to(intended_ns) {
                self.drop_arrival(user, index, intended_ns, warm, Outcome::Aborted, false);
                return None;
            }
            return Some(Task { index, intended_ns, ideal_ns: intended_ns, warm, waited, rides: false });
        }
    }

    /// Returns whether the queue behind an arrival of this age is longer than its bound.
    fn too_many_waiting(&self, age_ns: u64) -> bool {
        let Pacing::Open { profile, .. } = &self.shared.job.pacing else { return false };
        let now = monotonic_ns().saturating_sub(self.epoch_ns);
        let waiting = age_ns as f64 / 1e9 * profile.rate_at(now) / self.shared.job.stripe.1 as f64;
        waiting > self.shared.job.queue.length as f64
    }

    fn drop_arrival(
        &self,
        user: usize,
        index: u64,
        intended_ns: u64,
        warm: bool,
        outcome: Outcome,
        undrained: bool,
    ) {
        let kind = self.shared.job.workload.draw(index).kind as usize;
        let ended = Some((outcome, intended_ns, intended_ns));
        self.count_ended(user, warm, ended, |interval| {
            if warm && !interval.warmup {
                interval.carried += 1;
                interval.carried_arrivals += 1;
                return;
            }
            interval.outcomes[kind][outcome as usize] += 1;
            interval.undrained += u64::from(undrained);
            if outcome == Outcome::Dropped {
                interval.drop_at((intended_ns - self.epoch_ns) / SECOND_NS);
            } else {
                interval.arrivals += 1;
                interval.ended[outcome as usize] += 1;
            }
        });
    }

    /// Executes one operation: its first request and all that its script adds. Returns when a user who is never late would have
    /// ended it.
    fn operate(
        &self,
        user: usize,
        session: &mut dyn StoreSession,
        task: &Task,
        first: Request,
        errors: &mut Vec<(Outcome, String)>,
        parts: &mut Vec<TimedRequest>,
    ) -> u64 {
        let workload = &self.shared.job.workload;
        let begun = monotonic_ns();
        debug_assert!(task.intended_ns <= begun, "nothing begins before it is due");
        let (mut request, mut intended_ns, mut sent) = (first, task.intended_ns, begun);
        parts.clear();
        let (mut whole, mut attempts) = (Outcome::Ok, 0);
        let done = loop {
            let executed = session.execute(&request);
            let done = monotonic_ns();
            if self.waits_to_retry(&request, &executed, &mut attempts, done) {
                let (service_ns, response_ns) = (done - sent, done.saturating_sub(intended_ns));
                self.count(user, task.warm, |i| {
                    i.record_ended(request.metric, executed.outcome, service_ns, response_ns)
                });
                sent = monotonic_ns();
                continue;
            }
            if !executed.outcome.is_ok() && errors.iter().all(|(o, _)| *o != executed.outcome) {
                self.shared.control.note_error(executed.outcome, session.last_error());
                errors.push((executed.outcome, session.last_error().to_owned()));
            }
            if !executed.outcome.is_ok() && whole.is_ok() && workload.spoils(&request, executed.outcome) {
                whole = executed.outcome;
            }
            let checked = executed.verified.filter(|_| self.shared.own.verify.is_some());
            if let (Outcome::Ok, Some(RecordVerification { outcome: Outcome::Mismatch, .. })) =
                (whole, checked)
            {
                whole = Outcome::Mismatch;
            }
            parts.push((request, executed, done - sent, done.saturating_sub(intended_ns)));
            workload.answered(&request, executed.outcome, executed.records);
            workload.settled(&request, &self.shared.frontier);
            match workload.next(&request, executed.outcome) {
                Some(next) => (request, intended_ns, sent) = (next, done, done),
                None => break done,
            }
        };
        self.record(user, task, &first, whole, parts, (begun, done));
        task.ideal_ns + (done - begun)
    }

    /// Returns whether a failed insert is to be tried again; the pause before it has gone by then.
    fn waits_to_retry(&self, request: &Request, executed: &Executed, attempts: &mut u64, done: u64) -> bool {
        let Some(retry) = self.shared.job.retry.filter(|r| *attempts < r.limit) else { return false };
        if executed.outcome.is_ok() || request.verb != Verb::Insert {
            return false;
        }
        *attempts += 1;
        self.sleep_to(done + retry.pause_ns(request.seed, *attempts))
    }

    fn record(
        &self,
        user: usize,
        task: &Task,
        first: &Request,
        whole: Outcome,
        parts: &[TimedRequest],
        (begun, done): (u64, u64),
    ) {
        let own = &self.shared.own;
        let raw = self.shared.job.raw_samples;
        let open_loop = self.schedule.is_some();
        debug_assert!(begun <= done);
        debug_assert!(task.intended_ns <= task.ideal_ns, "no client could begin it before it is due");
        debug_assert!(!parts.is_empty(), "an operation has one request at least");
        let done_ns = done - self.epoch_ns;
        self.count_ended(user, task.warm, Some((whole, begun, done)), |interval| {
            let bound_ns = self.bound_ns.load(Ordering::Relaxed);
            if let Pacing::Closed { think_ns } = self.shared.job.pacing {
                let turn = (task.intended_ns, done.saturating_add(think_ns));
                let clipped_ns = clipped_ns((self.measure_ns, bound_ns), task.warm, turn);
                self.clipped_ns.fetch_add(clipped_ns, Ordering::Relaxed);
            }
            if task.warm && !interval.warmup {
                interval.carried += 1;
                interval.carried_arrivals += 1;
                interval.crossed += i64::from(whole.is_ok() && done >= self.measure_ns && done < bound_ns);
                return;
            }
            interval.arrivals += 1;
            interval.ended[whole as usize] += 1;
            interval.crossed -= i64::from(!task.warm && whole.is_ok() && done >= bound_ns);
            interval.busy_ns += if task.rides { 0 } else { done - begun };
            let lag_ns = begun.saturating_sub(task.intended_ns);
            match (open_loop, task.waited) {
                (false, _) => interval.turnaround.record(lag_ns),
                (true, false) => interval.lag.record(lag_ns),
                (true, true) => {}
            }
            if open_loop && whole.is_ok() {
                interval.ideal.record(task.ideal_ns + (done - begun) - task.intended_ns);
            }
            let sample = |metric, outcome, service_ns, response_ns| RawSample {
                metric,
                outcome,
                done_ns,
                service_ns,
                response_ns,
            };
            for (number, (request, executed, service_ns, response_ns)) in parts.iter().enumerate() {
                let outcome = executed.outcome;
                if open_loop && outcome.is_ok() {
                    let late_ns = if number == 0 { task.ideal_ns - task.intended_ns } else { 0 };
                    interval.record_server(request.metric, late_ns + service_ns);
                }
                interval.record_sample(sample(request.metric, outcome, *service_ns, *response_ns), raw);
                // No kernel sees a call into a library, nor what another driver has received.
                interval.stamps.client += u64::from(self.shared.job.stamps != Clock::Client);
                if let (Some(verify), Verb::Read) = (own.verify, request.verb) {
                    // A value that was not read cannot be what it should be, and one that was not looked at is not verified.
                    let unread = (!outcome.is_ok()).then_some((outcome, 0));
                    if let Some((outcome, ns)) = executed.verified.map(|v| (v.outcome, v.took_ns)).or(unread)
                    {
                        interval.record_sample(sample(verify, outcome, ns, ns), raw);
                    }
                }
                let records = u64::from(executed.records);
                if let (Some(per), Verb::Scan, true) = (own.scan_per_record, request.verb, records > 0) {
                    let (service_ns, response_ns) = (service_ns / records, response_ns / records);
                    interval.record_sample(sample(per, outcome, service_ns, response_ns), raw);
                }
            }
            if let Some(metric) = self.shared.job.workload.script(first) {
                let (service_ns, response_ns) = (done - begun, done.saturating_sub(task.intended_ns));
                interval.record_sample(sample(metric, whole, service_ns, response_ns), raw);
                if open_loop && whole.is_ok() {
                    interval.record_server(metric, task.ideal_ns + service_ns - task.intended_ns);
                }
            }
        });
    }

    /// Returns whether the run is to stop; the measured phase is over then.
    fn stopping(&self) -> bool {
        let stopping = self.shared.control.is_stopping();
        if stopping {
            self.bound_ns.fetch_min(monotonic_ns(), Ordering::Relaxed);
        }
        stopping
    }

    /// Sleeps until a time; false if the run is to stop.
    fn sleep_to(&self, until_ns: u64) -> bool {
        loop {
            if self.stopping() {
                return false;
            }
            let now = monotonic_ns();
            if now >= until_ns {
                return true;
            }
            sleep_until(until_ns.min(now + NAP_NS));
        }
    }
}

fn sleep_until(until_ns: u64) {
    let left = until_ns.saturating_sub(monotonic_ns());
    if left > 0 {
        std::thread::sleep(Duration::from_nanos(left));
    }
}

#[cfg(test)]
mod tests;
