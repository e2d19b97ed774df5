//! Lines of the console and of the table.

use dyno_compat_ycsb::report::java::fixed;
use dyno_types::units::Thousands;

/// Version whose words are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// February 2015.
    Y2015,
    /// The last version.
    Head,
}

/// Phase that is reported on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedStage {
    /// Loading.
    Load,
    /// Transactions.
    Execute,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tick {
    /// Time since the start, milliseconds.
    pub elapsed_ms: u64,
    /// Documents inserted, or transactions completed.
    pub done: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Sum of the latencies of batches or transactions that went well, milliseconds.
    pub latency_ms: f64,
    /// Number of latencies in this sum.
    pub latencies: u64,
}

/// Makes lines of ticks.
#[derive(Debug)]
pub struct Reporter {
    wording: Wording,
    stage: ReportedStage,
    faithful: bool,
    writers: u64,
    last: Tick,
}

/// `Thread[NAME,5,main]TEXT`, as everything is printed.
pub fn thread_line(name: &str, text: &str) -> String {
    format!("Thread[{name},5,main]{text}\n")
}

/// The script's last line: what has ended and how long it took.
pub fn finish(stage: ReportedStage, date: &str, seconds: u64) -> String {
    let what = if stage == ReportedStage::Load { "loader" } else { "benchmark" };
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    format!("{date} | sysbench {what} duration = {days:02}:{hours:02}:{minutes:02}:{seconds:02}\n")
}

/// `%,.2f`
fn grouped(x: f64) -> String {
    let plain = fixed(x);
    match plain.split_once('.') {
        Some((whole, decimals)) => match whole.parse() {
            Ok(whole) => format!("{}.{decimals}", Thousands(whole)),
            Err(_) => plain,
        },
        None => plain,
    }
}

/// Events per second; 0 where no time has gone by.
fn rate(events: u64, ms: u64) -> f64 {
    if ms == 0 { 0.0 } else { events as f64 / (ms as f64 / 1_000.0) }
}

impl Reporter {
    /// Nothing has been reported yet. `faithful` leaves out of the load's table what the original forgets.
    pub fn new(wording: Wording, stage: ReportedStage, writers: u64, faithful: bool) -> Self {
        Reporter { wording, stage, faithful, writers, last: Tick::default() }
    }

    /// The name of the thread that reports.
    pub fn thread(&self) -> String {
        match self.stage {
            ReportedStage::Load => "Thread-0".into(),
            ReportedStage::Execute => format!("Thread-{}", self.writers),
        }
    }

    /// The table's first line.
    pub fn table_header(&self) -> &'static str {
        match (self.stage, self.wording) {
            (ReportedStage::Load, Wording::Y2015) => "tot_inserts\telap_secs\tcum_ips\tint_ips\n",
            (ReportedStage::Load, Wording::Head) => "tot_inserts\telap_secs\tcum_ips\tint_ips\tint_lat\n",
            (ReportedStage::Execute, Wording::Y2015) => "elap_secs\tcum_tps\tint_tps\tcum_ips\tint_ips\n",
            (ReportedStage::Execute, Wording::Head) => {
                "elap_secs\tcum_tps\tint_tps\tcum_ips\tint_ips\tcum_excp\tint_excp\tint_lat\n"
            }
        }
    }

    /// The console's and the table's line of an interval, with the mean latency since the last one.
    pub fn line(&mut self, tick: &Tick) -> (String, String) {
        self.make(tick, true)
    }

    /// The two last lines of a load, which the original ends without a latency.
    pub fn last_line(&mut self, tick: &Tick) -> (String, String) {
        self.make(tick, false)
    }

    fn make(&mut self, tick: &Tick, with_latency: bool) -> (String, String) {
        let last = std::mem::replace(&mut self.last, *tick);
        let seconds = tick.elapsed_ms / 1_000;
        let cumulative = rate(tick.done, tick.elapsed_ms);
        let interval = rate(tick.done.saturating_sub(last.done), tick.elapsed_ms - last.elapsed_ms);
        let count = tick.latencies.saturating_sub(last.latencies);
        let latency = if count == 0 { 0.0 } else { (tick.latency_ms - last.latency_ms) / count as f64 };
        let latency_shown = self.wording == Wording::Head && with_latency;
        let (text, row) = match self.stage {
            ReportedStage::Load => {
                let text = format!(
                    "{} inserts : {} seconds : cum ips={} : int ips={}",
                    Thousands(tick.done),
                    Thousands(seconds),
                    grouped(cumulative),
                    grouped(interval)
                );
                (text, format!("{}\t{seconds}\t{}\t{}", tick.done, fixed(cumulative), fixed(interval)))
            }
            ReportedStage::Execute => self.transactions(tick, &last, cumulative, interval),
        };
        let mut text = text;
        if latency_shown {
            text.push_str(&format!(" : int lat={}", grouped(latency)));
        }
        // The original names the column of the load's latency and leaves it empty.
        let empty = self.stage == ReportedStage::Load && self.faithful;
        let row = if self.wording == Wording::Head && !empty {
            format!("{row}\t{}\n", fixed(latency))
        } else {
            format!("{row}\n")
        };
        (thread_line(&self.thread(), &text), row)
    }

    /// Inserts a second are 0 in both versions: their counter is never touched.
    fn transactions(&self, tick: &Tick, last: &Tick, cumulative: f64, interval: f64) -> (String, String) {
        let seconds = tick.elapsed_ms / 1_000;
        let mut text = format!(
            "{} seconds : cum tps={} : int tps={} : cum ips=0.00 : int ips=0.00",
            Thousands(seconds),
            grouped(cumulative),
            grouped(interval)
        );
        let mut row = format!("{seconds}\t{}\t{}\t0.00\t0.00", fixed(cumulative), fixed(interval));
        if self.wording == Wording::Head {
            let failed = tick.failed.saturating_sub(last.failed);
            text.push_str(&format!(
                " : cum excp={} : int excpt={}",
                Thousands(tick.failed),
                Thousands(failed)
            ));
            row.push_str(&format!("\t{}\t{failed}", tick.failed));
        }
        text.push_str(&format!(" : writers={}", self.writers));
        (text, row)
    }
}
