//! Commands that belong together: what a connection sends between two pauses, such as all that a page of a shop needs.

use dyno_types::rng::{below, mix_bits};
use std::collections::{BTreeMap, HashMap};

/// Commands whose pauses are looked at.
const LOOKED_AT: u64 = 2_000_000;

/// Steps of a sequence at most: a connection that sends more without a pause sends a stream.
const STEPS: usize = 16;

/// Keys of a sequence at most, of which each new one is compared with all.
const KEYS: usize = 64;

/// Forms that are told apart.
const FORMS: usize = 1 << 16;

/// Sequences of a form whose keys are kept, chosen at random.
const SAMPLE: u64 = 1_024;

/// Keys of such sequences in all.
const SAMPLED_KEYS: usize = 1 << 22;

/// A pause is at least so many doublings longer than what is between two commands that belong together. Times between events that
/// come by chance (of a Poisson process) fall into two halves that are 3 doublings apart.
const APART: f64 = 4.0;

/// Between the two there are at most so many times the less frequent of both.
const VALLEY: f64 = 0.25;

/// The least share that either kind has.
const LEAST_SHARE: f64 = 0.02;

/// Buckets of each doubling of a time.
const PARTS: usize = 2;

/// Times from a command's end to the next one of its connection, by their logarithm.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    ended: HashMap<u32, u64>,
    buckets: Vec<u64>,
    count: u64,
}

impl Pauses {
    /// Notes a command from its begin to its reply, nanoseconds; false once enough were noted.
    pub fn note(&mut self, connection: u32, at_ns: u64, end_ns: u64) -> bool {
        if let Some(before) = self.ended.insert(connection, end_ns) {
            // Below a microsecond clocks tell nothing.
            let pause_us = (at_ns.saturating_sub(before) / 1_000).max(1) as f64;
            let bucket = (pause_us.log2() * PARTS as f64) as usize;
            if self.buckets.len() <= bucket {
                self.buckets.resize(bucket + 1, 0);
            }
            self.buckets[bucket] += 1;
            self.count += 1;
        }
        self.count < LOOKED_AT
    }

    /// The shortest pause between two sequences, nanoseconds; `None` where times are of one kind. It is the limit that sets both
    /// kinds the farthest apart (Otsu, IEEE Transactions on Systems, Man, and Cybernetics 9, 1979).
    pub fn limit_ns(&self) -> Option<u64> {
        let all = self.count as f64;
        let place = |bucket: usize| (bucket as f64 + 0.5) / PARTS as f64;
        let sum: f64 =
            self.buckets.iter().enumerate().map(|(bucket, count)| place(bucket) * *count as f64).sum();
        let (mut below, mut below_sum) = (0.0, 0.0);
        let mut best = (0.0, 0, 0.0);
        for (bucket, count) in self.buckets.iter().enumerate() {
            below += *count as f64;
            below_sum += place(bucket) * *count as f64;
            let above = all - below;
            if below < all * LEAST_SHARE || above < all * LEAST_SHARE {
                continue;
            }
            let apart = (sum - below_sum) / above - below_sum / below;
            let between = below * above * apart * apart;
            if between > best.0 {
                best = (between, bucket + 1, apart);
            }
        }
        let (_, limit, apart) = best;
        let most = |part: &[u64]| part.iter().copied().max().unwrap_or(0);
        let (short, long) = self.buckets.split_at(limit);
        // Between both peaks times are rare.
        let peak = |part: &[u64]| part.iter().position(|count| *count == most(part)).unwrap_or(0);
        let between = &self.buckets[peak(short).min(self.buckets.len())..limit + peak(long)];
        let least = between.iter().copied().min().unwrap_or(0) as f64;
        let is_apart = apart >= APART && least <= VALLEY * most(short).min(most(long)) as f64;
        is_apart.then(|| (2f64.powf(limit as f64 / PARTS as f64) * 1e3) as u64)
    }
}

/// A step of a sequence.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SequenceStep {
    /// Number of the command's pattern.
    pub pattern: usize,
    /// Places of its keys, and which of the sequence's keys each is.
    pub keys: Vec<(u16, u16)>,
}

/// What sequences have in common: the same commands, of the same key where they had the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SequenceForm {
    /// The commands.
    pub steps: Vec<SequenceStep>,
    /// The key space of each key.
    pub spaces: Vec<usize>,
    /// True if no command waited for the reply to the one before.
    pub pipelined: bool,
}

/// What a connection has sent since its last pause.
#[derive(Debug, Default)]
struct OpenSequence {
    form: SequenceForm,
    /// Hashes of the keys.
    keys: Vec<u64>,
    end_ns: u64,
    overlapping: usize,
    /// True if it has too many steps to be one.
    is_stream: bool,
}

/// Sequences of a form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FoundSequence {
    /// What they have in common.
    pub form: SequenceForm,
    /// Their number.
    pub count: u64,
    /// Hashes of the keys of some of them, one sequence after the other.
    pub sample: Vec<u64>,
}

/// The sequences of a recording.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    /// The shortest pause between two, nanoseconds; without one each command stands for itself.
    pub limit_ns: Option<u64>,
    open: HashMap<u32, OpenSequence>,
    found: HashMap<SequenceForm, (u64, Vec<u64>)>,
    /// Keys in samples.
    sampled: usize,
    /// Commands that stand for themselves, by pattern.
    pub alone: BTreeMap<usize, u64>,
}

/// A command of a connection.
pub(super) struct SentCommand<'a> {
    /// The connection.
    pub connection: u32,
    /// When it came, and when its reply had, nanoseconds.
    pub time_ns: (u64, u64),
    /// It came before the reply to the one before.
    pub overlaps: bool,
    /// Number of its pattern.
    pub pattern: usize,
    /// Its keys: place, key space and hash.
    pub keys: &'a [(usize, usize, u64)],
}

impl Sequences {
    /// None yet; see [`Sequences::limit_ns`].
    pub fn with_limit(limit_ns: Option<u64>) -> Self {
        Sequences { limit_ns, ..Sequences::default() }
    }

    /// Returns whether a command of a connection begins a sequence.
    pub fn is_begun_by(&self, connection: u32, at_ns: u64) -> bool {
        let open = self.open.get(&connection);
        match (self.limit_ns, open) {
            (Some(limit_ns), Some(open)) => at_ns.saturating_sub(open.end_ns) >= limit_ns || open.is_stream,
            _ => true,
        }
    }

    /// Notes a command.
    pub fn note(&mut self, command: &SentCommand<'_>) {
        let Some(limit_ns) = self.limit_ns else {
            *self.alone.entry(command.pattern).or_default() += 1;
            return;
        };
        let open = self.open.entry(command.connection).or_default();
        let begins = command.time_ns.0.saturating_sub(open.end_ns) >= limit_ns;
        let ended = begins.then(|| std::mem::take(open));
        let SequenceForm { steps, spaces, .. } = &mut open.form;
        let has_room = steps.len() < STEPS && spaces.len() + command.keys.len() <= KEYS && !open.is_stream;
        open.end_ns = command.time_ns.1;
        if has_room {
            let keys = command.keys.iter().map(|(place, space, hash)| {
                let known = open.keys.iter().zip(spaces.iter()).position(|known| known == (hash, space));
                let number = known.unwrap_or_else(|| {
                    open.keys.push(*hash);
                    spaces.push(*space);
                    spaces.len() - 1
                });
                (*place as u16, number as u16)
            });
            steps.push(SequenceStep { pattern: command.pattern, keys: keys.collect() });
            open.overlapping += usize::from(command.overlaps);
        } else {
            // A stream is counted away as it comes.
            open.is_stream = true;
            let stream = std::mem::take(&mut open.form);
            open.keys.clear();
            self.count_alone(&stream, 1);
            *self.alone.entry(command.pattern).or_default() += 1;
        }
        ended.into_iter().for_each(|ended| self.close(ended));
    }

    /// Operations that a workload of these forms and of the commands that stand for themselves makes.
    pub fn operations(&self, chosen: &[FoundSequence]) -> u64 {
        chosen.iter().map(|found| found.count).sum::<u64>() + self.alone.values().sum::<u64>()
    }

    fn count_alone(&mut self, form: &SequenceForm, count: u64) {
        for step in &form.steps {
            *self.alone.entry(step.pattern).or_default() += count;
        }
    }

    fn close(&mut self, ended: OpenSequence) {
        let mut form = ended.form;
        form.pipelined = form.steps.len() > 1 && ended.overlapping + 1 >= form.steps.len();
        let has_room = self.found.len() < FORMS || self.found.contains_key(&form);
        match form.steps.len() {
            0 => {}
            1 => self.count_alone(&form, 1),
            _ if has_room => {
                let (count, sample) = self.found.entry(form).or_default();
                *count += 1;
                // Of what comes once nothing is kept.
                let keys = if *count > 1 { ended.keys.len() } else { 0 };
                if *count <= SAMPLE + 1 && self.sampled + keys <= SAMPLED_KEYS {
                    sample.extend_from_slice(&ended.keys[..keys]);
                    self.sampled += keys;
                } else if keys > 0 {
                    let place = below(mix_bits(*count), *count) as usize * keys;
                    sample
                        .get_mut(place..place + keys)
                        .into_iter()
                        .for_each(|own| own.copy_from_slice(&ended.keys));
                }
            }
            _ => self.count_alone(&form, 1),
        }
    }

    /// The forms that have the most commands, at most so many, with the number of sequences of each; all other commands stand for
    /// themselves from now on.
    pub fn most_frequent(&mut self, limit: usize) -> Vec<FoundSequence> {
        let open: Vec<OpenSequence> = self.open.drain().map(|(_, open)| open).collect();
        open.into_iter().for_each(|open| self.close(open));
        let found = self.found.drain();
        let mut all: Vec<FoundSequence> =
            found.map(|(form, (count, sample))| FoundSequence { form, count, sample }).collect();
        all.sort_by(|a, b| {
            let commands = |found: &FoundSequence| found.form.steps.len() as u64 * found.count;
            commands(b).cmp(&commands(a)).then_with(|| a.form.cmp(&b.form))
        });
        // What came once is no form.
        let frequent = all.iter().take(limit).take_while(|found| found.count > 1).count();
        for found in all.split_off(frequent) {
            self.count_alone(&found.form, found.count);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::rng::{Purpose, Stream};

    fn limit(pauses: impl Iterator<Item = u64>) -> Option<u64> {
        let (mut all, mut at) = (Pauses::default(), 0);
        for pause in pauses {
            at += pause;
            all.note(1, at, at);
        }
        all.limit_ns()
    }

    #[test]
    fn pauses_are_told_from_what_belongs_together_and_chance_is_no_pause() {
        let mut stream = Stream::new(5, 0, Purpose::Key);
        let mut exponential = move |mean_us: f64| (-(1.0 - stream.next_unit()).ln() * mean_us * 1e3) as u64;
        // Five commands 80 µs apart, then 100 ms.
        let pages =
            (0..6_000).map(|n| if n % 6 == 5 { exponential(100_000.0) } else { 50_000 + exponential(30.0) });
        let found = limit(pages).unwrap();
        assert!((200_000..20_000_000).contains(&found), "{found}");
        let mut stream = Stream::new(6, 0, Purpose::Key);
        let chance = (0..6_000).map(|_| (-(1.0 - stream.next_unit()).ln() * 5e6) as u64);
        assert_eq!(limit(chance), None);
        assert_eq!(limit((0..6_000).map(|_| 1_000_000)), None);
        assert_eq!(limit((0..0).map(|_| 1)), None);
    }

    fn send(all: &mut Sequences, at_ms: u64, pattern: usize, keys: &[(usize, usize, u64)]) -> bool {
        let begins = all.is_begun_by(3, at_ms * 1_000_000);
        let time_ns = (at_ms * 1_000_000, at_ms * 1_000_000 + 1_000);
        all.note(&SentCommand { connection: 3, time_ns, overlaps: false, pattern, keys });
        begins
    }

    #[test]
    fn a_sequence_is_known_by_its_commands_and_by_which_keys_are_the_same() {
        let mut all = Sequences::with_limit(Some(10_000_000));
        for round in 0..3 {
            let (at, user) = (100 + round * 100, round);
            assert!(send(&mut all, at, 0, &[(1, 7, user)]));
            assert!(!send(&mut all, at + 1, 1, &[(1, 7, user)]));
            assert!(!send(&mut all, at + 2, 0, &[(1, 8, user + 5)]));
        }
        // Another key the second time: another form, which came once.
        send(&mut all, 900, 0, &[(1, 7, 1)]);
        send(&mut all, 901, 1, &[(1, 7, 2)]);
        send(&mut all, 1_000, 2, &[]);
        let step = |pattern, key| SequenceStep { pattern, keys: vec![(1, key)] };
        let form = SequenceForm {
            steps: vec![step(0, 0), step(1, 0), step(0, 1)],
            spaces: vec![7, 8],
            pipelined: false,
        };
        let found = all.most_frequent(10);
        assert_eq!((found.len(), &found[0].form, found[0].count), (1, &form, 3));
        // Keys of the second and the third one.
        assert_eq!(found[0].sample, [1, 6, 2, 7]);
        let mut alone: Vec<(usize, u64)> = all.alone.into_iter().collect();
        alone.sort_unstable();
        assert_eq!(alone, [(0, 1), (1, 1), (2, 1)]);
    }

    #[test]
    fn a_stream_is_no_sequence() {
        let mut all = Sequences::with_limit(Some(10_000_000));
        for n in 0..1_000 {
            send(&mut all, 100 + n, n as usize % 2, &[(1, 0, n)]);
        }
        assert_eq!(all.most_frequent(10), []);
        assert_eq!(all.alone.values().sum::<u64>(), 1_000);
        assert!(all.open.is_empty() && all.found.is_empty());
    }
}
