use super::*;
use crate::sample::SampleError;
use std::sync::atomic::AtomicBool;

#[derive(Default)]
struct RecordingSink {
    rows: Vec<(String, u64, Option<Sample>)>,
    events: Vec<(String, String)>,
}

impl SampleSink for RecordingSink {
    fn sample(&mut self, source: &str, at_ns: u64, sample: Option<&Sample>) {
        self.rows.push((source.to_owned(), at_ns, sample.cloned()));
    }

    fn event(&mut self, source: &str, message: &str) {
        self.events.push((source.to_owned(), message.to_owned()));
    }
}

/// Answers after a pause, or fails while it is told to.
struct Fake {
    name: &'static str,
    pause: Duration,
    fails: Arc<AtomicBool>,
    waits: bool,
}

impl Source for Fake {
    fn name(&self) -> &str {
        self.name
    }

    fn sample(&mut self, into: &mut Sample) -> Result<(), SampleError> {
        std::thread::sleep(self.pause);
        if self.fails.load(Ordering::SeqCst) {
            return Err(SampleError::Query("out of order".into()));
        }
        into.add_gauge("x", 1.0);
        Ok(())
    }

    fn waits(&self) -> bool {
        self.waits
    }
}

fn fake(name: &'static str, pause_ms: u64, waits: bool) -> (Box<dyn Source>, Arc<AtomicBool>) {
    let fails = Arc::new(AtomicBool::new(false));
    (Box::new(Fake { name, pause: Duration::from_millis(pause_ms), fails: fails.clone(), waits }), fails)
}

fn rows<'a>(kept: &'a RecordingSink, source: &str) -> Vec<(u64, &'a Option<Sample>)> {
    kept.rows.iter().filter(|(name, ..)| name == source).map(|(_, at, sample)| (*at, sample)).collect()
}

#[test]
fn a_slow_source_delays_no_other_and_its_ticks_are_missing() {
    let sink = Arc::new(Mutex::new(RecordingSink::default()));
    let (quick, _) = fake("quick", 0, false);
    let (slow, _) = fake("slow", 250, true);
    let interval = Duration::from_millis(50);
    let monitor = Monitor::start(vec![quick, slow], interval, &[], sink.clone()).unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    let cost = monitor.stop();
    assert!(cost.wall_s >= 1.1 && cost.cpu_s > 0.0);
    let kept = sink.lock().unwrap();
    let (quick, slow) = (rows(&kept, "quick"), rows(&kept, "slow"));
    let answered = |rows: &[(u64, &Option<Sample>)]| rows.iter().filter(|(_, s)| s.is_some()).count();
    assert!(answered(&quick) > 2 * answered(&slow), "{} and {}", quick.len(), slow.len());
    assert_eq!(answered(&quick), quick.len(), "a quick source misses nothing");
    assert!(answered(&slow) >= 2 && answered(&slow) < slow.len(), "what a slow source skips is missing");
    for rows in [&quick, &slow] {
        assert!(rows.windows(2).all(|w| w[0].0 < w[1].0), "time goes on: {rows:?}");
    }
    assert!(kept.events.is_empty(), "{:?}", kept.events);
    assert!(rows(&kept, OWN).iter().all(|(_, s)| s.as_ref().unwrap().get("cpu_s").is_some()));
}

#[test]
fn failures_are_missing_with_one_event_each_way() {
    let sink = Arc::new(Mutex::new(RecordingSink::default()));
    let (source, fails) = fake("f", 0, false);
    let monitor = Monitor::start(vec![source], Duration::from_secs(3_600), &[], sink.clone()).unwrap();
    for failing in [false, true, true, false, false] {
        fails.store(failing, Ordering::SeqCst);
        monitor.take_samples();
    }
    monitor.stop();
    let kept = sink.lock().unwrap();
    let seen: Vec<bool> = rows(&kept, "f").iter().map(|(_, s)| s.is_some()).collect();
    assert_eq!(seen, [true, false, false, true, true]);
    let words: Vec<&str> = kept.events.iter().map(|(_, message)| message.as_str()).collect();
    assert_eq!(words, ["out of order", "answers again"]);
}

#[test]
fn marks_are_taken_at_their_time() {
    let sink = Arc::new(Mutex::new(RecordingSink::default()));
    let (source, _) = fake("m", 0, false);
    let monitor = Monitor::start(vec![source], Duration::from_secs(3_600), &[], sink.clone()).unwrap();
    let at = SystemTime::now() + Duration::from_millis(120);
    monitor.make_marker().mark_at(at);
    monitor.make_marker().mark_at(at + Duration::from_millis(100));
    std::thread::sleep(Duration::from_millis(400));
    monitor.stop();
    let kept = sink.lock().unwrap();
    let times: Vec<u64> = rows(&kept, "m").iter().map(|(at, _)| *at).collect();
    assert_eq!(times.len(), 2);
    assert!(times[0] >= unix_ns(at) && times[1] >= unix_ns(at) + 100_000_000);
}
