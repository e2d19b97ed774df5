//! `dyno sysbench-mongodb [CONFIG] [OVERRIDES] [NAME=VALUE]`: loads and runs transactions as sysbench-mongodb does, prints
//! and writes what it prints and writes, and adds latencies of each command.
//!
//! ```text
//! words --compat-sysbench-mongodb--> SysbenchPlan --> collections and index k_1 --> load: batches in parallel --> transactions
//!                                                                      log: a line each ten seconds
//! ```

mod args;
mod log;

pub use args::SysbenchArgs;

use crate::plan::resolve::{BenchmarkPhase, SysbenchPlan};
use crate::plan::{SysbenchError, parse};
use crate::report::average::{AverageWindow, average};
use crate::report::console::{ReportedStage, Reporter, Wording, finish, thread_line};
use crate::report::header::{ExecuteHeader, LoadHeader};
use crate::work::{SysbenchWork, same_collections};
use dyno_config::experiment::{Experiment, Stamps, When};
use dyno_config::settings::Provenance;
use dyno_config::values::Span;
use dyno_databases::registry;
use dyno_db::target::Target;
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_engine::{Control, Job};
use dyno_frontend::conductor::{self, AppliedPhases, RunPlan, choose_cores};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::run_directory::check_new;
use dyno_frontend::{signals, summary, terminal};
use dyno_record::Scale;
use dyno_report::summary::SummaryExtras;
use dyno_rundir::schema::{Setting, Status, Summary, Trust};
use dyno_session::conductor::Conductor;
use dyno_session::load_generator::LocalGenerator;
use dyno_session::session::{EndedPhase, RunSession};
use dyno_session::work::{Work, jobs_of_workers};
use dyno_types::secret::mask_value;
use dyno_workload::Workload;
use dyno_workload::sysbench_mongodb::{Dialect, INDEX, SysbenchLoad};
use log::{LogLayout, PhaseLog};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

dyno_frontend::usage_errors!(SysbenchError);

/// State that all phases need.
struct SysbenchCommand<'a> {
    args: &'a SysbenchArgs,
    plan: SysbenchPlan,
    work: SysbenchWork,
    target: Box<dyn Target>,
    opened: LocalGenerator,
    control: Arc<Control>,
}

/// The command.
pub fn sysbench_mongodb(args: &SysbenchArgs) -> Result<Exit, Failure> {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut plan = parse(&args.words, &args.overrides(), now_s)?;
    plan.config.first_writer = args.first_writer;
    plan.notes.iter().for_each(|note| terminal::warn(note));
    let uri = args.target.as_deref().unwrap_or(&plan.uri);
    let mut target = registry::parse_for(uri, args.client).map_err(Failure::from)?;
    target.set_database(&plan.database);
    let work = SysbenchWork::of(&experiment(&plan), plan.clone())?;
    let (workers, users) = (args.workers as usize, work.measure()?.users);
    if workers == 0 || workers > users {
        let expected = format!("expected 1 to {users}, the number of users");
        return Err(Failure::usage(format!("--workers {workers}: {expected}")));
    }
    check_new(args.out.as_ref())?;
    let control = Arc::new(Control::default());
    signals::listen(&control).map_err(Failure::from)?;
    let opened = conductor::open(target.as_ref(), &work.content(), &[], 1)?;
    SysbenchCommand { args, plan, work, target, opened, control }.phases()
}

/// Experiment of this plan: no time-outs, and times by the client's clock, as the original takes them.
fn experiment(plan: &SysbenchPlan) -> Experiment {
    let mut spec = Experiment { seed: plan.config.seed as u64, ..Experiment::default() };
    spec.client.stamps = Stamps::Client;
    spec.phases.measure.timeout = Span(0);
    spec.phases.load.when = When::Always;
    spec
}

fn refused(bad: dyno_workload::ycsb::BadProperty) -> Failure {
    Failure::usage(format!("{} {}: expected {}", bad.key, bad.value, bad.expected))
}

impl SysbenchCommand<'_> {
    fn wording(&self) -> Wording {
        if self.plan.config.dialect == Dialect::Y2015 { Wording::Y2015 } else { Wording::Head }
    }

    /// A job on this host's cores.
    fn on_cores(&self, job: Job) -> Result<Job, Failure> {
        let cores = choose_cores(self.args.load_threads, job.users, self.target.is_local(), None)?;
        let job = Job { cores: cores.into_iter().map(Some).collect(), ..job };
        job.check().map_err(Failure::from)?;
        Ok(job)
    }

    fn log(
        &self,
        stage: ReportedStage,
        workload: &dyn Workload,
        load: Option<Arc<SysbenchLoad>>,
    ) -> Result<PhaseLog, Failure> {
        let config = &self.plan.config;
        let (phase, users) = match stage {
            ReportedStage::Load => (BenchmarkPhase::Load, config.loaders),
            ReportedStage::Execute => (BenchmarkPhase::Execute, config.writers),
        };
        let layout = LogLayout {
            reporter: Reporter::new(self.wording(), stage, u64::from(users), config.faithful),
            stage,
            path: &self.args.logs.join(self.plan.log_name(phase)),
            aside: self.args.json,
            every_s: self.plan.feedback_seconds,
            every_documents: self.plan.feedback_inserts.filter(|_| stage == ReportedStage::Load),
        };
        PhaseLog::new(layout, &log::metrics(workload), load)
    }

    /// Plan of a run whose directory, if one is kept, has both phases.
    fn run_plan(&self, job: &Job) -> RunPlan {
        let setting = |one: &Provenance| Setting {
            key: one.key.clone(),
            value: mask_value(&one.key, &one.value),
            source: one.source.clone(),
        };
        RunPlan {
            title: "sysbench-mongodb".to_owned(),
            target: self.target.redacted(),
            conditions: Vec::new(),
            strict: false,
            claims: Vec::new(),
            out: self.args.out.clone(),
            settings: self.plan.provenance.iter().map(setting).collect(),
            scale: Scale::Ns64,
            watch: (self.args.out.is_some() && !self.args.no_monitor).then(conductor::every_second),
            busy: conductor::busy(std::slice::from_ref(job)),
        }
    }

    /// Runs what is asked for of load and transactions.
    fn phases(&self) -> Result<Exit, Failure> {
        let plan = &self.plan;
        if !plan.load && !plan.query {
            return Ok(Exit::Ok);
        }
        // Collections that are there are used, as by the original, if they look like what these settings load.
        let ways = "drop them to have them loaded again, or name another DB_NAME";
        same_collections(self.opened.as_ref(), &plan.config, ways)?;
        let job = self.on_cores(self.work.measure()?)?;
        let phases = |conductor: &mut Conductor<'_>| {
            let session = &mut conductor.session;
            let ended = match (plan.load, plan.query) {
                (true, false) => self.load(session),
                (true, true) => match self.load(session) {
                    Ok(_) if !signals::interrupted() => self.execute(&job, session),
                    ended => ended,
                },
                (false, _) => self.execute(&job, session),
            };
            Ok(AppliedPhases { ended: ended?, pacing: job.pacing.clone(), rest: () })
        };
        let is_load = |ended: &EndedPhase| ended.phase.name == "load";
        let exit = |summary: &Summary, applied: &AppliedPhases<()>| match summary.status {
            // A load has to bring the records in, however short it is.
            Status::Complete if is_load(&applied.ended) && applied.ended.totals.count_failed() == 0 => {
                Exit::Ok
            }
            Status::Complete if is_load(&applied.ended) => Exit::Invalid,
            _ => exit(summary),
        };
        let executed =
            conductor::execute(self.run_plan(&job), &self.opened, self.control.clone(), phases, exit)?;
        let (summary, closed, is_load) = (executed.summary, executed.closed, is_load(&executed.ended));
        let known = SummaryExtras { findings: closed.findings.as_deref(), page: closed.page.as_deref() };
        if self.args.json || !(plan.config.faithful || is_load) {
            summary::show(&summary, known, self.args.json)?;
        } else {
            // The original's text has no place for the verdict, and an exit code needs words.
            summary.verdict.reasons.iter().filter(|reason| summary.verdict.is_asked(reason)).for_each(
                |reason| {
                    let word = reason.trust.trust_word();
                    terminal::warn(&format!("the run is {word} ({}): {}", reason.check, reason.text));
                },
            );
        }
        Ok(closed.exit)
    }

    /// Prints what the original prints; beside a JSON document it goes to stderr.
    fn print(&self, text: &str) {
        if self.args.json { terminal::note(text.trim_end()) } else { terminal::out(text) }
    }

    fn load(&self, session: &mut RunSession<'_>) -> Result<EndedPhase, Failure> {
        let config = &self.plan.config;
        let workload = Arc::new(SysbenchLoad::new(config).map_err(refused)?);
        let mut log = self.log(ReportedStage::Load, workload.as_ref(), Some(workload.clone()))?;
        log.say(&self.load_header());
        if let Some(admin) = MongoAdmin::from_target(self.opened.as_ref()) {
            for number in 1..=config.collections {
                let name = format!("sbtest{number}");
                // The original starts a thread for each collection, as many at once as there are slots.
                let slot = (number - 1) % config.loaders.max(1);
                let mut say = |what: &str| {
                    let text = format!("Writer thread {slot} : {what}");
                    log.say(&thread_line(&format!("Thread-{number}"), &text));
                };
                say(&format!("creating collection {name}"));
                say(&format!("creating collection {name} secondary index"));
                admin.create_index(&name, INDEX.0, INDEX.1)?;
                say(&format!("started to load collection {name}"));
            }
        }
        let Some(job) = self.work.load()? else {
            return Err(Failure::internal("there is nothing to load"));
        };
        let job = self.on_cores(Job { workload, ..job })?;
        let begun = Instant::now();
        // Workers share the collections' batches: any of them may load the next one.
        let jobs = jobs_of_workers(&self.work, &job, (self.args.workers as usize).min(job.users))?;
        let ended = session.run_workers("load", &jobs, &mut log).map_err(Failure::from)?;
        log.finish(&ended.totals);
        log.say(&thread_line("main", "Done!"));
        self.print(&finish(ReportedStage::Load, &date(), begun.elapsed().as_secs()));
        self.complain(&ended);
        Ok(ended)
    }

    /// Batches that failed, with the server's words.
    fn complain(&self, ended: &EndedPhase) {
        let failed = ended.totals.count_failed();
        if failed > 0 {
            let words: Vec<&str> = ended.phase.errors.values().map(String::as_str).collect();
            terminal::warn(&format!(
                "{failed} of {} inserts failed: {}",
                ended.totals.ended_total(),
                words.first().unwrap_or(&"no words")
            ));
        }
    }

    fn execute(&self, job: &Job, session: &mut RunSession<'_>) -> Result<EndedPhase, Failure> {
        let config = &self.plan.config;
        let mut log = self.log(ReportedStage::Execute, job.workload.as_ref(), None)?;
        log.say(&self.execute_header());
        for writer in 0..config.writers {
            log.say(&thread_line(&format!("Thread-{writer}"), &format!("Writer thread {writer} : started")));
        }
        let begun = Instant::now();
        let ended = session.run_workers(
            "measure",
            &jobs_of_workers(&self.work, job, self.args.workers as usize)?,
            &mut log,
        )?;
        log.say(&thread_line("main", "Done!"));
        self.print(&finish(ReportedStage::Execute, &date(), begun.elapsed().as_secs()));
        self.average();
        Ok(ended)
    }

    /// The average that results are published with, if the run was long enough to have one.
    fn average(&self) {
        let path = self.args.logs.join(self.plan.log_name(BenchmarkPhase::Execute)).with_extension("txt.tsv");
        let table = std::fs::read_to_string(path).unwrap_or_default();
        if let Ok(found) = average(&table, AverageWindow::SECOND_HOUR) {
            terminal::note(&format!(
                "mean of {} lines of the second hour (3600 < t <= 7200 s): {:.2}/s; as it is quoted, cut off: {}/s",
                found.lines,
                found.mean,
                found.truncated()
            ));
        }
    }

    fn load_header(&self) -> String {
        let (plan, config) = (&self.plan, &self.plan.config);
        LoadHeader {
            wording: self.wording(),
            collections: config.collections,
            database: plan.database.clone(),
            loaders: config.loaders,
            documents: config.documents,
            batch: config.batch,
            feedback_seconds: plan.feedback_seconds.map_or(-1, |s| s as i64),
            feedback_inserts: plan.feedback_inserts.map_or(-1, |n| n as i64),
            table: format!("{}.tsv", plan.log_name(BenchmarkPhase::Load)),
            old: [plan.write_concern.clone(), plan.server.clone(), plan.user.clone()],
            uri: self.target.redacted(),
        }
        .text()
    }

    fn execute_header(&self) -> String {
        let (plan, config) = (&self.plan, &self.plan.config);
        let c = &config.counts;
        let each = config.max_tps / config.writers + u32::from(config.dialect == Dialect::Y2015);
        ExecuteHeader {
            wording: self.wording(),
            collections: config.collections,
            database: plan.database.clone(),
            writers: config.writers,
            documents: config.documents,
            feedback_seconds: plan.feedback_seconds.map_or(-1, |s| s as i64),
            table: format!("{}.tsv", plan.log_name(BenchmarkPhase::Execute)),
            run_seconds: plan.run_seconds,
            counts: [
                config.range_size,
                c.point_selects,
                c.simple_ranges,
                c.sum_ranges,
                c.order_ranges,
                c.distinct_ranges,
                c.index_updates,
                c.non_index_updates,
                c.inserts,
            ],
            tps: [config.max_tps, each],
            seed: config.seed,
            old: [
                plan.auto_commit.clone(),
                plan.write_concern.clone(),
                plan.server.clone(),
                plan.user.clone(),
            ],
            uri: self.target.redacted(),
        }
        .text()
    }
}

/// As `date` prints it.
fn date() -> String {
    jiff::Zoned::now().strftime("%a %b %e %H:%M:%S %Z %Y").to_string()
}

fn exit(summary: &Summary) -> Exit {
    match (summary.status, summary.verdict.trust) {
        (Status::Interrupted, _) => Exit::Interrupted,
        (_, Trust::Invalid) => Exit::Invalid,
        _ => Exit::Ok,
    }
}
