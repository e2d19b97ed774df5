//! Commands of one's own in the text protocols: words on a line, and a value behind it where the command carries one. Its length
//! is put where the protocol wants it; the value is the last word of the command as a person writes it.

use super::traffic::CommandGroup;
use dyno_types::command::{CommandArgument, CommandForm, CommandTemplate, KeptReply, ReplyExpectation};
use dyno_types::{RefusalCode, Refused, suggest};
use dyno_workload::keys::push_decimal;

/// A template: commands that go out together.
#[derive(Clone, Debug)]
pub(super) struct OwnTemplate {
    pub(super) commands: Vec<OwnCommand>,
}

/// A command.
#[derive(Clone, Debug)]
pub(super) struct OwnCommand {
    pub(super) group: CommandGroup,
    pub(super) arguments: Vec<CommandArgument>,
    /// Number of keys.
    pub(super) keys: usize,
    /// A reply that has nothing stored is an error: `set` has no condition.
    pub(super) must_store: bool,
    /// These two are so by default, and mean an item that is missing alone: a condition that does not hold found one.
    pub(super) needs_item: bool,
    /// What is not there is made, empty, and told as if it had been there.
    pub(super) vivifies: bool,
    /// An answer without anything means that nothing was found.
    pub(super) misses: bool,
    /// That is the outcome, too.
    pub(super) not_found: bool,
    pub(super) expect: ReplyExpectation,
    pub(super) keeps: Vec<KeptReply>,
}

/// A word that cannot stand on a line of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadWord;

/// Longest key, bytes.
const KEY_BYTES: usize = super::meta::KEY_BYTES;

/// Names of the commands that are sent: those that may be a load. Others administer a server, end the connection, or turn it into
/// a listener.
const NAMES: [&str; 20] = [
    "get", "gets", "gat", "gats", "set", "add", "replace", "append", "prepend", "cas", "delete", "incr",
    "decr", "touch", "mg", "ms", "md", "ma", "mn", "version",
];

/// The place of the first key of a command, which follows its name or its time.
pub(crate) fn first_key(name: &[u8], group: CommandGroup) -> Option<usize> {
    match group {
        CommandGroup::Get if name.starts_with(b"gat") => Some(2),
        group => (group.key_count(name, 2) > 0).then_some(1),
    }
}

/// Words of a command at least and at most, the value among them.
fn word_counts(name: &[u8], group: CommandGroup) -> (usize, usize) {
    match group {
        CommandGroup::Store if name == b"cas" => (6, 6),
        CommandGroup::Store => (5, 5),
        CommandGroup::Get if name.starts_with(b"gat") => (3, usize::MAX),
        CommandGroup::Count | CommandGroup::Touch => (3, 3),
        CommandGroup::Delete => (2, 2),
        CommandGroup::MetaSet => (3, usize::MAX),
        CommandGroup::Get | CommandGroup::MetaGet | CommandGroup::MetaDelete | CommandGroup::MetaCount => {
            (2, usize::MAX)
        }
        CommandGroup::MetaDebug => (2, usize::MAX),
        _ => (1, usize::MAX),
    }
}

fn refused(message: String) -> Refused {
    Refused::new(RefusalCode::Unsupported, "workload.commands", format!("memcached: {message}"))
}

fn own(form: &CommandForm) -> Result<OwnCommand, Refused> {
    let (name, count) = (form.name(), form.arguments.len());
    let shown = String::from_utf8_lossy(name);
    let known = CommandGroup::of_name(name).filter(|_| NAMES.contains(&&*shown));
    let group = known.ok_or_else(|| {
        let hint = suggest::hint(&shown, NAMES);
        refused(format!("the command {shown:?} is not sent{hint}: expected one of {}", NAMES.join(", ")))
    })?;
    let is_silent = |(number, argument): (usize, &CommandArgument)| match argument {
        CommandArgument::Literal(word) => silences(group, number, word),
        _ => false,
    };
    let last = if group.length_place().is_some() { count.saturating_sub(1) } else { count };
    if form.arguments[..last].iter().enumerate().any(is_silent) {
        return Err(refused(format!(
            "{shown}: every command is answered, or its time is not known: expected no noreply and no q"
        )));
    }
    let (least, most) = word_counts(name, group);
    if !(least..=most).contains(&count) {
        let expected = if most == usize::MAX { format!("at least {least}") } else { least.to_string() };
        let value = match group.length_place() {
            Some(_) => "; the value is the last one, and its length is put before it",
            None => "",
        };
        return Err(refused(format!("{shown}: {count} words: expected {expected}{value}")));
    }
    if form.keeps.iter().any(|kept| !kept.path.is_empty()) {
        return Err(refused(format!("{shown}: as: its reply has no parts: expected a name alone")));
    }
    // They have done nothing where nothing was there: that is no success, as long as a template does not say so.
    let needs_item = matches!(group, CommandGroup::Count | CommandGroup::MetaCount | CommandGroup::Touch);
    let needs_item = needs_item && !form.misses;
    Ok(OwnCommand {
        group,
        arguments: form.arguments.clone(),
        keys: group.key_count(name, last),
        must_store: name == b"set",
        vivifies: group == CommandGroup::MetaGet && vivifies(&form.arguments),
        misses: form.misses || needs_item,
        not_found: form.not_found || needs_item,
        needs_item,
        expect: form.expect.clone(),
        keeps: form.keeps.clone(),
    })
}

/// Returns whether an `mg` has the server make what is not there, and its reply tells that. With `R` but without the value what
/// is there and grows old has the same reply.
fn vivifies(arguments: &[CommandArgument]) -> bool {
    let has = |flag: u8| {
        arguments
            .iter()
            .skip(2)
            .any(|argument| matches!(argument, CommandArgument::Literal(word) if word.first() == Some(&flag)))
    };
    has(b'N') && (has(b'v') || !has(b'R'))
}

/// Returns whether a word of a command that is no key has the server say nothing.
fn silences(group: CommandGroup, number: usize, word: &[u8]) -> bool {
    match group {
        CommandGroup::Get => false,
        // Of a flag the server looks at the first letter alone.
        group if group.is_meta() => number > 1 && word.first() == Some(&b'q'),
        _ => number > 1 && word == b"noreply",
    }
}

/// The commands of templates. Keys of one command are all on one of the `servers`.
pub(super) fn compile(templates: &[CommandTemplate], servers: usize) -> Result<Vec<OwnTemplate>, Refused> {
    let one = |template: &CommandTemplate| {
        if template.atomic {
            return Err(refused(format!("{:?} is a transaction, which it does not have", template.name)));
        }
        let commands = template.commands.iter().map(own).collect::<Result<Vec<OwnCommand>, Refused>>()?;
        if servers > 1 && commands.iter().any(|command| command.keys > 1) {
            return Err(refused(format!("a get of several keys goes to one server, not to {servers}")));
        }
        Ok(OwnTemplate { commands })
    };
    templates.iter().map(one).collect()
}

/// Appends a command as it goes over the wire; returns where its first key is in `out`. `put` appends an argument by its number,
/// `value` is room for the value.
///
/// # Errors
/// A word is empty, too long, or has spaces or control characters: it stands alone in `out`, where the command was to be.
pub(crate) fn put_command(
    group: CommandGroup,
    count: usize,
    put: &mut dyn FnMut(usize, &mut Vec<u8>),
    (value, out): (&mut Vec<u8>, &mut Vec<u8>),
) -> Result<std::ops::Range<usize>, BadWord> {
    let begin = out.len();
    let length_place = group.length_place();
    let words = match length_place {
        Some(_) => count - 1,
        None => count,
    };
    value.clear();
    if length_place.is_some() {
        put(words, value);
    }
    let (mut key, mut first) = (begin..begin, None);
    for number in 0..words {
        if number > 0 {
            out.push(b' ');
        }
        if length_place == Some(number) {
            push_decimal(value.len() as u64, out);
            out.push(b' ');
        }
        let from = out.len();
        put(number, out);
        if number == 0 {
            first = first_key(&out[from..], group);
        }
        let word = &out[from..];
        let is_key =
            first.is_some_and(|first| number >= first) && (number == 1 || group == CommandGroup::Get);
        let fits = !word.is_empty()
            && !word.iter().any(|byte| *byte <= b' ' || *byte == 0x7f)
            && (!is_key || word.len() <= KEY_BYTES)
            && !silences(group, number, word);
        if !fits {
            out.drain(begin..from);
            return Err(BadWord);
        }
        if Some(number) == first {
            key = from..out.len();
        }
    }
    if length_place == Some(words) {
        out.push(b' ');
        push_decimal(value.len() as u64, out);
    }
    out.extend_from_slice(b"\r\n");
    if length_place.is_some() {
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(words: &[&str]) -> CommandTemplate {
        let arguments = words.iter().map(|word| CommandArgument::Literal(word.as_bytes().to_vec())).collect();
        let form = CommandForm { arguments, key: Some(1), ..CommandForm::default() };
        CommandTemplate { name: words[0].to_owned(), commands: vec![form], atomic: false }
    }

    fn wire(words: &[&str]) -> Result<(String, String), String> {
        let group = CommandGroup::of_name(words[0].as_bytes()).unwrap();
        let mut put = |number: usize, out: &mut Vec<u8>| out.extend_from_slice(words[number].as_bytes());
        let (mut value, mut out) = (Vec::new(), b"before".to_vec());
        let key = put_command(group, words.len(), &mut put, (&mut value, &mut out));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(out.starts_with(b"before"));
        key.map(|key| (text(&out[6..]), text(&out[key]))).map_err(|BadWord| text(&out[6..]))
    }

    #[test]
    fn commands_that_are_answered_are_taken() {
        let keys =
            |words: &[&str], servers| compile(&[form(words)], servers).map(|all| all[0].commands[0].keys);
        for (words, expected) in [
            (&["set", "k", "0", "0", "v"][..], 1),
            (&["cas", "k", "0", "0", "7", "v"], 1),
            (&["get", "k"], 1),
            (&["incr", "k", "1"], 1),
            (&["mg", "k", "v", "t"], 1),
            (&["ms", "k", "T0", "q"], 1),
            (&["gat", "0", "k"], 1),
            (&["mn"], 0),
        ] {
            assert_eq!(keys(words, 2).unwrap(), expected, "{words:?}");
        }
        assert_eq!(keys(&["get", "k", "l"], 1).unwrap(), 2);
        for (words, servers) in [
            (&["get", "k", "l"][..], 2),
            (&["get"], 1),
            (&["set", "k", "v"], 1),
            (&["set", "k", "0", "0", "noreply", "v"], 1),
            (&["delete", "k", "noreply"], 1),
            (&["mg", "k", "v", "q"], 1),
            (&["mg", "k", "v", "qx"], 1),
            (&["flush_all"], 1),
            (&["GET", "k"], 1),
            (&["watch", "fetchers"], 1),
            (&["quit"], 1),
        ] {
            assert!(keys(words, servers).is_err(), "{words:?}");
        }
        let said = compile(&[form(&["GET", "k"])], 1).unwrap_err().to_string();
        assert!(said.contains("did you mean get?"), "{said}");
        let mut two = form(&["get", "k"]);
        two.commands.push(two.commands[0].clone());
        assert_eq!(compile(std::slice::from_ref(&two), 1).unwrap()[0].commands.len(), 2);
        two.atomic = true;
        assert!(compile(&[two], 1).is_err());
    }

    #[test]
    fn lengths_stand_where_the_protocol_wants_them() {
        for (words, expected, key) in [
            (&["set", "k", "0", "60", "v w"][..], "set k 0 60 3\r\nv w\r\n", "k"),
            (&["cas", "k", "0", "0", "7", "ab"], "cas k 0 0 2 7\r\nab\r\n", "k"),
            (&["ms", "k", "v"], "ms k 1\r\nv\r\n", "k"),
            (&["ms", "k", "T9", "c", ""], "ms k 0 T9 c\r\n\r\n", "k"),
            (&["get", "k", "l"], "get k l\r\n", "k"),
            (&["gat", "9", "k"], "gat 9 k\r\n", "k"),
            (&["mn"], "mn\r\n", ""),
        ] {
            assert_eq!(wire(words), Ok((expected.to_owned(), key.to_owned())), "{words:?}");
        }
    }

    #[test]
    fn a_word_that_would_be_another_command_is_not_sent() {
        let long = "k".repeat(251);
        for (words, bad) in [
            (&["get", "k\r\nflush_all"][..], "k\r\nflush_all"),
            (&["set", "a b", "0", "0", "v"], "a b"),
            (&["incr", "k", ""], ""),
            (&["get", "k", &long], &long),
            (&["touch", "k", "noreply"], "noreply"),
            (&["mg", "k", "q"], "q"),
        ] {
            assert_eq!(wire(words), Err(bad.to_owned()), "{words:?}");
        }
        assert!(wire(&["get", "noreply", "q"]).is_ok());
    }
}
