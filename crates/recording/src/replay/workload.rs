//! A recording as a workload.

use super::against::{AgainstReplies, ReplaySide};
use super::feed::{Feed, UserFeed};
use super::mongodb::cursors::CursorState;
use super::options::ReplayOptions;
use super::played_command::{Effect, PlayedCommand, RecordedPause};
use super::survey::RecordingSurvey;
use crate::entry::RecordedKind;
use crate::format::RecordingHeader;
use dyno_types::command::{RecordedPlace, ReplyFacts};
use dyno_types::metric::{HELD, MULTI_EXEC};
use dyno_types::request::FIRST_STEP;
use dyno_types::{Content, Outcome, Request, Verb};
use dyno_workload::{
    Draw, Frontier, Hooks, NextRecorded, OwnMetrics, RecordedDue, ReplayedReplies, Workload,
};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

/// Pause of a user whose connection cannot be brought into its state, first and longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// The error of a server that does not know a cursor, by name or number.
const CURSOR_NOT_FOUND: [&[u8]; 2] = [b"CursorNotFound", b"43"];

/// Commands of a recording, each due when it was then, by the user that its connection is.
pub struct Replay {
    metrics: Vec<String>,
    /// Number of the metric of whole transactions.
    whole: u16,
    feed: Arc<Feed>,
    content: Arc<ReplayContent>,
    began: Once,
    /// It is the same on another server, with which the measured one is compared.
    is_other: bool,
}

impl Replay {
    /// Of a file that was surveyed with the same options. The file is read when a load thread has been made. `against`: where the
    /// replies of two servers are compared, and which of them this is of.
    pub fn new(
        path: &Path,
        options: ReplayOptions,
        header: &RecordingHeader,
        survey: Arc<RecordingSurvey>,
        against: Option<(ReplaySide, Arc<AgainstReplies>)>,
    ) -> Self {
        let is_other = against.as_ref().is_some_and(|(side, _)| *side == ReplaySide::Other);
        let mut metrics = survey.metrics();
        metrics.push(HELD.into());
        let feed = Arc::new(Feed::new(path, options, header, survey, against));
        let whole = metrics.iter().position(|name| name == MULTI_EXEC).unwrap_or(0) as u16;
        Replay {
            metrics,
            whole,
            content: Arc::new(ReplayContent { feed: feed.clone() }),
            feed,
            began: Once::new(),
            is_other,
        }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.feed.stop();
    }
}

/// The cursor that a user's next command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FoundCursor {
    /// It is open, or none is needed.
    Ready,
    /// The command of another user that opens it is not answered yet.
    Awaited,
}

impl UserFeed {
    /// The next command, after those that are not sent are gone; their number.
    fn skip_cut(&mut self, feed: &Feed) -> u64 {
        let mut cut = 0;
        while self.skips {
            let Some(command) = self.waiting.pop_front() else { break };
            self.skips = command.effect != Effect::Ends;
            feed.forget(&command);
            cut += 1;
        }
        cut
    }

    fn take_next(&mut self) -> Option<(PlayedCommand, u32)> {
        let command = self.waiting.pop_front()?;
        match command.effect {
            Effect::Begins => self.in_transaction = true,
            Effect::Ends => self.in_transaction = false,
            Effect::State | Effect::None => {}
        }
        let place = self.free.pop().unwrap_or(self.under_way.len() as u32);
        Some((command, place))
    }

    /// A command has set the state of the connection: the next one is brought into it, too.
    fn keep_state(&mut self, command: &PlayedCommand) {
        let name = command.first_words().split(' ').next().unwrap_or_default().to_uppercase();
        self.state.retain(|(other, _)| *other != name);
        self.state.push((name, command.clone()));
    }

    /// The connection was lost: the next one is brought into its state, and the rest of a transaction is not sent.
    fn lose_connection(&mut self) {
        self.skips |= std::mem::take(&mut self.in_transaction);
        while self.waiting.front().is_some_and(|next| next.restores) {
            self.waiting.pop_front();
        }
        self.restores = !self.state.is_empty();
    }

    /// The state could not be restored. What comes next would go to another database: it waits until the server answers again.
    fn pause_restoring(&mut self) {
        self.lose_connection();
        let pause = self.pause.map_or(PAUSE.0, |(_, before)| (before * 2).min(PAUSE.1));
        self.pause = Some((Instant::now() + pause, pause));
    }

    /// Looks at the cursor that the next command needs. One that is not open, and never will be, is not sent: it is taken, and
    /// counted.
    fn find_cursor(&mut self, feed: &Feed) -> FoundCursor {
        let under_way = &self.under_way;
        let is_idle = || under_way.iter().all(Option::is_none);
        while let Some(next) = self.waiting.front_mut() {
            let Some(cursor) = next.document.as_mut().and_then(|document| document.cursor.as_mut()) else {
                return FoundCursor::Ready;
            };
            match feed.cursors.state_of(cursor.key) {
                CursorState::Live(number) => {
                    cursor.number = number;
                    return FoundCursor::Ready;
                }
                // What is under way may open it, or end it.
                _ if !is_idle() => return FoundCursor::Ready,
                CursorState::Awaited => return FoundCursor::Awaited,
                CursorState::Gone => {}
            }
            if let Some(command) = self.waiting.pop_front() {
                feed.without_cursor.fetch_add(1, Ordering::Relaxed);
                feed.forget(&command);
            }
        }
        FoundCursor::Ready
    }

    /// Puts the commands that restore the state of a lost connection before the next one; false if it is too early for that.
    fn restore_state(&mut self) -> bool {
        if !self.restores {
            return true;
        }
        if self.pause.is_some_and(|(until, _)| Instant::now() < until) {
            return false;
        }
        self.restores = false;
        // The first of them is due when the next command was to be, and each of the others behind the one before.
        let behind = |pause: Option<RecordedPause>| pause.map(|_| RecordedPause::AfterReply(0));
        let (mut at_ns, mut pause) = (0, None);
        if let Some(next) = self.waiting.front_mut() {
            (at_ns, pause) = (next.at_ns, next.pause);
            next.pause = behind(pause);
        }
        for (place, (_, command)) in self.state.iter().enumerate().rev() {
            let again = PlayedCommand {
                at_ns,
                waits: true,
                restores: true,
                pause: if place == 0 { pause } else { behind(pause) },
                number: None,
                then: None,
                ..command.clone()
            };
            self.waiting.push_front(again);
        }
        true
    }
}

impl Workload for Replay {
    fn metrics(&self) -> &[String] {
        &self.metrics
    }

    fn content(&self) -> Arc<dyn Content> {
        Arc::clone(&self.content) as Arc<dyn Content>
    }

    /// Takes a user's next command, which is not sent.
    fn draw(&self, index: u64) -> Draw {
        let mut user = self.feed.user(index);
        let metric = match user.waiting.pop_front() {
            None => 0,
            Some(command) => {
                self.feed.forget(&command);
                command.metric
            }
        };
        Draw { index, kind: metric, seed: 0 }
    }

    fn bind(&self, draw: &Draw, _frontier: &Frontier) -> Request {
        Request { verb: Verb::Recorded, metric: draw.kind, ..Request::default() }
    }

    fn request(&self, index: u64, _frontier: &Frontier) -> Request {
        let number = index % self.feed.user_count();
        let mut user = self.feed.user(number);
        let Some((command, place)) = user.take_next() else {
            debug_assert!(false, "only what is due is taken");
            return Request { verb: Verb::Recorded, key: u64::MAX, ..Request::default() };
        };
        let (metric, step, limit) = (command.metric, command.step, command.wait_ms);
        match user.under_way.get_mut(place as usize) {
            Some(free) => *free = Some(command),
            None => user.under_way.push(Some(command)),
        }
        Request {
            verb: Verb::Recorded,
            metric,
            collection: number as u32,
            key: u64::from(place),
            script: step.map_or(0, |_| self.whole + 1),
            step: step.unwrap_or(0),
            limit,
            ..Request::default()
        }
    }

    fn hooks(&self) -> Hooks {
        // Asked when a load thread is made, before it connects: by the time it begins, the first commands are there.
        let feed = &self.feed;
        self.began.call_once(|| {
            let feed = feed.clone();
            std::thread::spawn(move || feed.read());
        });
        Hooks { scripts: false, settled: false, answered: true, resume: false }
    }

    fn next_recorded(&self, user: u64) -> NextRecorded {
        let mut own = self.feed.user(user);
        if own.refused {
            let rest = own.waiting.iter().filter(|command| !command.restores).count() as u64;
            own.waiting.drain(..).for_each(|command| self.feed.forget(&command));
            self.feed.refused.fetch_add(rest, Ordering::Relaxed);
        }
        let cut = own.skip_cut(&self.feed);
        if cut > 0 {
            self.feed.cut.fetch_add(cut, Ordering::Relaxed);
        }
        if !own.waiting.is_empty() && !own.restore_state() {
            return NextRecorded::Unknown { not_before_ns: 0 };
        }
        if own.find_cursor(&self.feed) == FoundCursor::Awaited {
            let due = own.waiting.front().map(|next| self.feed.due_of(next));
            let at_ns = due.and_then(|due| if let RecordedDue::At(at_ns) = due { Some(at_ns) } else { None });
            return NextRecorded::Blocked { at_ns };
        }
        match own.waiting.front() {
            Some(next) => NextRecorded::Due { due: self.feed.due_of(next), waits: next.waits },
            // The reader cannot add one meanwhile: it needs the lock that is held here.
            None if self.feed.expects_more() => {
                NextRecorded::Unknown { not_before_ns: self.feed.not_before_ns() }
            }
            None => NextRecorded::Over,
        }
    }

    fn answered(&self, request: &Request, outcome: Outcome, _records: u32) {
        let mut user = self.feed.user(u64::from(request.collection));
        let place = request.key as usize;
        let Some(command) = user.under_way.get_mut(place).and_then(Option::take) else { return };
        user.free.push(place as u32);
        if command.restores {
            match outcome {
                Outcome::Ok => user.pause = None,
                // The server has answered, and does not do it.
                outcome if outcome.is_error_reply() => user.refused = true,
                _ => user.pause_restoring(),
            }
            return;
        }
        if command.step.is_some() && matches!(outcome, Outcome::Disconnected | Outcome::Unreachable) {
            // What follows would be sent outside of the transaction.
            user.skips |= std::mem::take(&mut user.in_transaction);
        }
        if command.wait_ms > 0 && outcome == Outcome::TimedOut {
            self.feed.cut_waits.fetch_add(1, Ordering::Relaxed);
        }
        if outcome.is_unanswered()
            && outcome != Outcome::Aborted
            && let Some((side, replies)) = &self.feed.against
            && let Some(number) = command.number
        {
            replies.note_reply(*side, number, None, &|| command.first_words());
        }
        match (outcome, &command.then) {
            // The run has ended before its reply.
            (Outcome::Aborted, _) => self.feed.divergence.skip(),
            (outcome, Some(then)) if outcome.is_unanswered() => {
                let is_first = !std::mem::replace(&mut user.has_differed, true);
                self.feed.divergence.compare(then, None, is_first, &|| command.first_words());
            }
            _ => {}
        }
        if command.effect == Effect::State {
            match outcome {
                // An error as it was then changes nothing.
                Outcome::Ok if command.then.as_ref().is_some_and(|then| then.kind == RecordedKind::Error) => {
                }
                Outcome::Ok => user.keep_state(&command),
                outcome if outcome.is_error_reply() => user.refused = true,
                _ => {}
            }
        }
        if let Some(after_ns) = command.after_ns {
            self.feed.note_then(u64::from(request.collection), command.metric, after_ns);
        }
        self.feed.forget(&command);
    }

    fn has_recorded_times(&self) -> bool {
        self.feed.options.has_times()
    }

    fn left_recorded(&self, user: u64) -> Option<u64> {
        let mut own = self.feed.user(user);
        // The rest of a transaction is none by itself, and what waits for a reply is not due.
        let is_none = |next: &PlayedCommand| {
            next.restores || next.wait_ms > 0 || next.step.is_some_and(|step| step != FIRST_STEP)
        };
        while own.waiting.front().is_some_and(is_none) {
            if let Some(command) = own.waiting.pop_front() {
                self.feed.forget(&command);
            }
        }
        own.waiting.front().and_then(|next| match self.feed.due_of(next) {
            RecordedDue::At(at_ns) => Some(at_ns),
            _ => None,
        })
    }

    fn connection_lost(&self, user: u64) {
        self.feed.user(user).lose_connection();
    }

    fn own_metrics(&self) -> OwnMetrics {
        let held = self.metrics.iter().position(|name| name == HELD).map(|number| number as u16);
        OwnMetrics { held, ..OwnMetrics::default() }
    }

    fn replayed(&self) -> Option<ReplayedReplies> {
        (!self.is_other).then(|| self.feed.replayed(&self.metrics))
    }

    fn is_beside(&self) -> bool {
        self.is_other
    }

    fn is_per_user(&self) -> bool {
        true
    }

    fn is_pure(&self) -> bool {
        false
    }
}

/// Renders the commands of a replay, and compares their replies.
struct ReplayContent {
    feed: Arc<Feed>,
}

impl Content for ReplayContent {
    fn table(&self) -> &str {
        ""
    }

    fn key(&self, _request: &Request, _out: &mut Vec<u8>) {}

    fn fields(&self, _request: &Request) -> usize {
        0
    }

    fn name(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn value_len(&self, _request: &Request, _field: usize) -> usize {
        0
    }

    fn value(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn writes(&self, _request: &Request) -> bool {
        true
    }

    fn recorded_commands(&self, request: &Request) -> u32 {
        let user = self.feed.user(u64::from(request.collection));
        let command = user.under_way.get(request.key as usize).and_then(Option::as_ref);
        command.map_or(1, |command| command.parts.len().max(1) as u32)
    }

    fn recorded_command(&self, request: &Request, number: u32, out: &mut Vec<u8>) {
        let user = self.feed.user(u64::from(request.collection));
        if let Some(Some(command)) = user.under_way.get(request.key as usize) {
            command.put_wire(number, out);
        }
    }

    fn recorded_place(&self, request: &Request, number: u32) -> RecordedPlace {
        let user = self.feed.user(u64::from(request.collection));
        let Some(Some(command)) = user.under_way.get(request.key as usize) else {
            return RecordedPlace::AnyNode;
        };
        command.parts.get(number as usize).map_or(command.place, |part| RecordedPlace::Slot(part.slot))
    }

    fn recorded_stays(&self, request: &Request) -> bool {
        let user = self.feed.user(u64::from(request.collection));
        user.under_way
            .get(request.key as usize)
            .and_then(Option::as_ref)
            .is_some_and(|command| command.step.is_some())
    }

    fn recorded_cursor(&self, request: &Request, number: i64) {
        let user = self.feed.user(u64::from(request.collection));
        let Some(Some(command)) = user.under_way.get(request.key as usize) else { return };
        let Some(document) = &command.document else { return };
        if let Some(key) = document.opens.or(document.cursor.map(|cursor| cursor.key)) {
            self.feed.cursors.note_cursor(key, number);
        }
    }

    fn compare_reply(&self, request: &Request, reply: &ReplyFacts<'_>) -> bool {
        let mut user = self.feed.user(u64::from(request.collection));
        let is_first = !user.has_differed;
        let Some(Some(command)) = user.under_way.get(request.key as usize) else { return false };
        if let Some(cursor) = command.document.as_ref().and_then(|document| document.cursor)
            && (cursor.ends || (reply.kind.is_none() && CURSOR_NOT_FOUND.contains(&reply.error)))
        {
            self.feed.cursors.note_cursor(cursor.key, 0);
        }
        if let Some((side, replies)) = &self.feed.against
            && let Some(number) = command.number
        {
            replies.note_reply(*side, number, Some(reply), &|| command.first_words());
        }
        let Some(then) = &command.then else {
            self.feed.divergence.skip();
            return false;
        };
        let differs = self.feed.divergence.compare(then, Some(reply), is_first, &|| command.first_words());
        user.has_differed |= differs;
        !differs
    }
}
