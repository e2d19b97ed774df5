//! Commands by their form, and what each of their arguments is like.

use super::dialect::Dialect;
use super::numbers::{NumberParts, WrittenForm};
use super::spaces::KeySpaces;
use crate::entry::{Arguments, RecordedKind, RecordedReply};
use dyno_types::command::ReplyKind;
use std::collections::BTreeMap;

/// Different values of an argument that are told apart.
const VALUES: usize = 12;

/// What the values of an argument are like.
#[derive(Debug, Default)]
pub(super) struct ArgumentStats {
    pub count: u64,
    /// Values and how often each came, while there are few.
    pub values: Option<BTreeMap<Vec<u8>, u64>>,
    /// While all are whole numbers.
    pub numbers: Option<NumberParts<i64>>,
    /// While all are numbers.
    pub decimals: Option<NumberParts<f64>>,
    /// What stands before and behind a number, and these numbers, while all values are such.
    pub numbered: Option<(String, String, NumberParts<u64>)>,
    /// How often each length came, bytes.
    pub lengths: BTreeMap<u32, u64>,
    /// Key spaces and how often each came; of a key.
    pub spaces: BTreeMap<usize, u64>,
}

/// A length, rounded to about one in two hundred, so that there are few of them.
fn rounded(length: u64) -> u32 {
    let length = length.min(u64::from(u32::MAX)) as u32;
    let shift = (32 - length.leading_zeros()).saturating_sub(8);
    length >> shift << shift
}

/// A number with at most nine digits behind its point, as people write it.
fn decimal(word: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(word).ok().filter(|text| text.len() <= 24)?;
    let bare = text.strip_prefix('-').unwrap_or(text);
    let (whole, behind) = bare.split_once('.').unwrap_or((bare, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = !whole.is_empty() && digits(whole) && digits(behind) && behind.len() <= 9;
    is_plain.then(|| text.parse().ok()).flatten()
}

/// A whole number. What is written otherwise would come out otherwise.
fn whole(word: &[u8]) -> Option<i64> {
    let is_plain = match word {
        [b'0'] => true,
        [b'-', first, rest @ ..] | [first, rest @ ..] => {
            (b'1'..=b'9').contains(first) && rest.iter().all(u8::is_ascii_digit)
        }
        [] => false,
    };
    is_plain.then(|| std::str::from_utf8(word).ok()?.parse().ok()).flatten()
}

fn form_of(number: u64) -> WrittenForm {
    WrittenForm { whole: number.checked_ilog10().unwrap_or(0) as usize + 1, ..WrittenForm::default() }
}

/// A text with one number in it, which is written without leading zeros: what is before and behind it.
fn numbered(word: &[u8]) -> Option<(&str, &str, u64)> {
    let text = std::str::from_utf8(word).ok().filter(|text| text.len() <= 24)?;
    let from = text.find(|c: char| c.is_ascii_digit())?;
    let to = from + text[from..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - from);
    let (number, behind) = (&text[from..to], &text[to..]);
    // Behind a percent sign a generator cannot stand.
    let is_plain = !behind.contains(|c: char| c.is_ascii_digit() || c.is_control())
        && !text[..from].contains(char::is_control)
        && !text[..from].ends_with('%');
    let has_zeros = number.len() > 1 && number.starts_with('0');
    (is_plain && !has_zeros).then(|| Some((&text[..from], behind, number.parse().ok()?))).flatten()
}

impl ArgumentStats {
    /// What the first value may be, until others say that it is not.
    fn note_first(&mut self, word: &[u8]) {
        self.values = Some(BTreeMap::new());
        let form = WrittenForm::of_word(word);
        self.numbers = whole(word).map(|number| NumberParts::of_one(form, number));
        self.decimals = decimal(word).map(|value| NumberParts::of_one(form, value));
        self.numbered = numbered(word).map(|(before, behind, number)| {
            (before.to_owned(), behind.to_owned(), NumberParts::of_one(form_of(number), number))
        });
    }

    /// Notes a value where all before it were numbers, or texts with one.
    fn note_number(&mut self, word: &[u8]) {
        let form = WrittenForm::of_word(word);
        if let Some(parts) = &mut self.numbers {
            match whole(word) {
                Some(number) => parts.note(form, number),
                None => self.numbers = None,
            }
        }
        if let Some(parts) = &mut self.decimals {
            match decimal(word) {
                Some(value) => parts.note(form, value),
                None => self.decimals = None,
            }
        }
        if let Some((known, end, parts)) = &mut self.numbered {
            match numbered(word) {
                Some((before, behind, number)) if known == before && end == behind => {
                    parts.note(form_of(number), number);
                }
                _ => self.numbered = None,
            }
        }
    }

    fn note(&mut self, arguments: &Arguments, place: usize) {
        let word = arguments.word(place);
        let length = arguments.long_value(place).map_or(word.len() as u64, |value| value.length);
        if self.count == 0 {
            self.note_first(word);
        } else {
            self.note_number(word);
        }
        self.count += 1;
        *self.lengths.entry(rounded(length)).or_default() += 1;
        if let Some(values) = &mut self.values {
            match values.get_mut(word) {
                Some(count) => *count += 1,
                None => drop(values.insert(word.to_vec(), 1)),
            }
            if values.len() > VALUES || length > 1_000 {
                self.values = None;
            }
        }
    }
}

/// Forms that are told apart by their options: members that look like options would make a form each.
const FORMS: usize = 4_096;

/// What commands have in common whose arguments can be drawn one by one: the same options at the same places.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CommandPattern {
    pub name: String,
    /// Number of words.
    pub count: usize,
    /// Options with their places, or the letters of flags.
    pub options: String,
}

/// Commands of one form.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// Its number, from 0 on, in the order in which they came.
    pub number: usize,
    pub count: u64,
    /// By place; that of the name is empty.
    pub arguments: Vec<ArgumentStats>,
    /// Replies: all, and those that were nil.
    pub replies: u64,
    pub nils: u64,
    /// Lengths of replies that are texts, bytes.
    pub texts: BTreeMap<u32, u64>,
}

/// All of them, by form.
pub(super) type Shapes = BTreeMap<CommandPattern, Shape>;

/// A key of a command: its place, its key space and its hash.
pub(super) type NotedKey = (usize, usize, u64);

/// What is known of a command once its form is: all that its keys are noted with.
#[derive(Clone, Debug, Default)]
pub(super) struct NotedForm {
    /// Number of its form.
    pub pattern: usize,
    /// Numbers of the words that are keys.
    pub places: Vec<usize>,
    /// Whether its only key was there, where its reply tells.
    pub was_there: Option<bool>,
}

/// Key spaces of the keys of each form, by its number and the key's place.
#[derive(Debug, Default)]
pub(super) struct SpaceUses(BTreeMap<(usize, usize), BTreeMap<usize, u64>>);

impl SpaceUses {
    /// Puts them where arguments are told.
    pub fn add_to(self, shapes: &mut Shapes) {
        let mut by_number: Vec<&mut Shape> = shapes.values_mut().collect();
        by_number.sort_by_key(|shape| shape.number);
        for ((pattern, place), spaces) in self.0 {
            by_number[pattern].arguments[place].spaces = spaces;
        }
    }
}

/// Notes a command but for its keys, which are told in `noted`.
pub(super) fn note_form(
    dialect: Dialect,
    shapes: &mut Shapes,
    arguments: &Arguments,
    reply: Option<&RecordedReply>,
    noted: &mut NotedForm,
) {
    let (name, count) = (dialect.command_name(arguments), arguments.count());
    noted.places = dialect.key_places(&name, arguments);
    let mut form = CommandPattern { name, count, options: dialect.options(arguments) };
    if shapes.len() >= FORMS && !shapes.contains_key(&form) {
        form.options.clear();
    }
    let number = shapes.len();
    let shape = shapes.entry(form).or_default();
    if shape.count == 0 {
        shape.arguments.resize_with(arguments.count(), ArgumentStats::default);
        shape.number = number;
    }
    shape.count += 1;
    noted.pattern = shape.number;
    noted.was_there = match noted.places.len() {
        1 => reply.and_then(|reply| dialect.was_there(arguments, reply)),
        _ => None,
    };
    for place in (1..arguments.count()).filter(|place| !noted.places.contains(place)) {
        shape.arguments[place].note(arguments, place);
    }
    if let Some(reply) = reply {
        shape.replies += 1;
        match reply.kind {
            RecordedKind::Reply(ReplyKind::Nil) => shape.nils += 1,
            RecordedKind::Reply(ReplyKind::Text) => *shape.texts.entry(rounded(reply.size)).or_default() += 1,
            _ => {}
        }
    }
}

/// Notes the keys of a command; `noted` are those whose space is told apart.
pub(super) fn note_keys(
    (spaces, uses): (&mut KeySpaces, &mut SpaceUses),
    arguments: &Arguments,
    form: &NotedForm,
    noted: &mut Vec<NotedKey>,
) {
    noted.clear();
    for place in form.places.iter().copied().filter(|place| *place < arguments.count()) {
        let Some((space, hash, is_first)) = spaces.note(arguments.word(place)) else { continue };
        if let (Some(was_there), true) = (form.was_there, is_first) {
            let (found, all) = &mut spaces.all[space].first_reads;
            (*found, *all) = (*found + u64::from(was_there), *all + 1);
        }
        noted.push((place, space, hash));
        *uses.0.entry((form.pattern, place)).or_default().entry(space).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(
        dialect: Dialect,
        (shapes, spaces, uses): (&mut Shapes, &mut KeySpaces, &mut SpaceUses),
        arguments: &Arguments,
        reply: Option<&RecordedReply>,
        keys: &mut Vec<NotedKey>,
    ) {
        let mut form = NotedForm::default();
        note_form(dialect, shapes, arguments, reply, &mut form);
        note_keys((spaces, uses), arguments, &form, keys);
    }

    #[test]
    fn options_make_forms_and_their_order_is_kept() {
        let (mut shapes, mut spaces, mut uses) =
            (Shapes::default(), KeySpaces::default(), SpaceUses::default());
        for line in
            ["SET k v EX 60 NX", "set k v nx ex 60", "ZADD z GT CH 1 a", "ZADD z 1 a 2 b", "HSET h ex px"]
        {
            let command = Arguments::from_words(line.split(' '));
            note(Dialect::Redis, (&mut shapes, &mut spaces, &mut uses), &command, None, &mut Vec::new());
        }
        let found: Vec<&str> = shapes.keys().map(|form| form.options.as_str()).collect();
        assert_eq!(found, ["", "3 EX 5 NX ", "3 NX 4 EX ", "", "2 GT 3 CH "]);
        let (mut shapes, mut spaces, mut uses) =
            (Shapes::default(), KeySpaces::default(), SpaceUses::default());
        for line in ["mg k v t", "mg k t v", "mg k v k", "ms k T60 I value"] {
            let then = Arguments::from_words(line.split(' '));
            let command = Dialect::Memcached.timeless_words(&then, None);
            note(Dialect::Memcached, (&mut shapes, &mut spaces, &mut uses), &command, None, &mut Vec::new());
        }
        let found: Vec<(&str, u64)> =
            shapes.iter().map(|(form, shape)| (form.options.as_str(), shape.count)).collect();
        assert_eq!(found, [("kv", 1), ("tv", 2), ("IT", 1)]);
    }

    #[test]
    fn arguments_are_told_by_their_values() {
        let (mut shapes, mut spaces, mut uses) =
            (Shapes::default(), KeySpaces::default(), SpaceUses::default());
        for n in 0..100 {
            let line = format!("SET k{n} {} EX 60", "x".repeat(n % 20));
            note(
                Dialect::Redis,
                (&mut shapes, &mut spaces, &mut uses),
                &Arguments::from_words(line.split(' ')),
                None,
                &mut Vec::new(),
            );
            let zadd = Arguments::from_words(format!("zadd b {n} m").split(' '));
            note(Dialect::Redis, (&mut shapes, &mut spaces, &mut uses), &zadd, None, &mut Vec::new());
        }
        let form = |name: &str, count, options: &str| CommandPattern {
            name: name.to_owned(),
            count,
            options: options.to_owned(),
        };
        uses.add_to(&mut shapes);
        let set = &shapes[&form("SET", 5, "3 EX ")];
        assert_eq!(set.count, 100);
        assert_eq!(set.arguments[1].spaces.values().copied().collect::<Vec<_>>(), [100]);
        assert!(set.arguments[2].values.is_none() && set.arguments[2].lengths.len() == 20);
        assert_eq!(set.arguments[3].values.as_ref().unwrap().len(), 1);
        let numbers = shapes[&form("ZADD", 4, "3 M ")].arguments[2].numbers.as_ref().unwrap();
        let ranges = numbers.ranges(|number| number as f64);
        assert_eq!((ranges.len(), ranges[0].least, ranges[0].most), (1, 0, 99));
        assert_eq!([&b"0"[..], b"-5", b"17"].map(whole), [Some(0), Some(-5), Some(17)]);
        assert_eq!(
            [&b"-0"[..], b"05", b"", b"-", b"+1", b"1e3", b"9223372036854775808"].map(whole),
            [None; 7]
        );
        assert_eq!(numbered(b"u17:x"), Some(("u", ":x", 17)));
        assert_eq!([&b"u07"[..], b"u1v2", b"uv", b"u\n1", b"u%1"].map(numbered), [None; 5]);
        assert_eq!((decimal(b"-12.340"), decimal(b"7")), (Some(-12.34), Some(7.0)));
        assert_eq!([&b"1e5"[..], b".5", b"1.2.3", b"inf", b""].map(decimal), [None; 5]);
    }
}
