//! The part of a shell's grammar that configurations are written in. It is read, never executed.
//!
//! A line holds assignments, after `export` or not, and a comment. A value is a word: bare text, '...', "...", `\x`,
//! `$X`, `${X}`, `${X:-word}`, `$((...))`, `$[...]`; of commands only `$(date +%s)` is understood. Everything else is an error.
//! What no line has assigned is looked for in the environment.

use crate::plan::arithmetic;
use crate::plan::arithmetic::{ArithmeticError, Unassigned};
use dyno_types::limits::EXPRESSION_DEPTH;
use dyno_types::suggest;
use std::collections::BTreeSet;

/// Characters that a shell gives a meaning of their own when they are not quoted.
const META: [char; 4] = ['|', '&', '(', ')'];

/// An assignment, values filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptAssignment {
    /// Variable.
    pub name: String,
    /// Value.
    pub value: String,
    /// Line, from 1.
    pub line: u32,
}

/// A line that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct UnknownScriptLine {
    /// Line, from 1.
    pub line: u32,
    /// Problem of the line.
    #[source]
    pub problem: ScriptLineError,
}

/// Problem of a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptLineError {
    /// Something other than an assignment; its beginning.
    #[error(
        "{0:?} is no assignment: expected NAME=VALUE or export NAME=VALUE, or a comment that starts with #"
    )]
    NotAnAssignment(String),
    /// A command other than `date +%s`.
    #[error("a command: configurations are read, not executed; of commands only $(date +%s) is understood")]
    Command,
    /// A character outside of quotes that has a meaning for a shell.
    #[error("{0} has a meaning for a shell: put the value in quotes")]
    Meta(char),
    /// A quote without its other one.
    #[error("a {0} without its other one")]
    OpenQuote(char),
    /// A backslash at the end of the file.
    #[error("a backslash at the end")]
    Backslash,
    /// An expansion that is not closed.
    #[error("{open} without {close}")]
    Open {
        /// Opening characters.
        open: &'static str,
        /// Missing closing characters.
        close: &'static str,
    },
    /// Something other than a name between braces.
    #[error("${{{0}}}: expected the name of a variable between the braces, or ${{NAME:-word}}")]
    Braces(String),
    /// A `$` before something else.
    #[error("a $ without the name of a variable: expected $X, ${{X}}, $((...)) or $[...]")]
    Dollar,
    /// A variable that has no value.
    #[error(transparent)]
    Unassigned(#[from] Unassigned),
    /// Arithmetic that has no value.
    #[error(transparent)]
    Arithmetic(#[from] ArithmeticError),
}

/// Assignments that have been read, and the time that `$(date +%s)` stands for.
#[derive(Debug)]
pub struct Shell {
    /// Value of a variable of the environment.
    environment: fn(&str) -> Option<String>,
    /// Expansions inside each other that are being read.
    depth: usize,
    /// Seconds since 1970, the value of `$(date +%s)`.
    now_s: u64,
    /// All assignments in order.
    pub assignments: Vec<ScriptAssignment>,
    /// Variables whose value was asked for.
    pub used: BTreeSet<String>,
}

impl Shell {
    /// Nothing is assigned yet.
    pub fn new(now_s: u64, environment: fn(&str) -> Option<String>) -> Self {
        Shell { environment, depth: 0, now_s, assignments: Vec::new(), used: BTreeSet::new() }
    }

    /// Reads a file's text; what earlier files have assigned is known.
    pub fn read(&mut self, text: &str) -> Result<(), UnknownScriptLine> {
        let mut lines = text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let mut joined = line.to_owned();
            // A backslash at the end: the line goes on in the next one.
            while joined.ends_with('\\') && !joined.trim_start().starts_with('#') {
                joined.pop();
                joined.push_str(lines.next().map_or("", |(_, next)| next));
            }
            let line = number as u32 + 1;
            self.line(&joined, line).map_err(|problem| UnknownScriptLine { line, problem })?;
        }
        Ok(())
    }

    fn line(&mut self, text: &str, line: u32) -> Result<(), ScriptLineError> {
        let mut rest = text;
        let mut exports = false;
        loop {
            rest = rest.trim_start();
            if rest.is_empty() || rest.starts_with('#') {
                return Ok(());
            }
            if let Some(after) = rest.strip_prefix(';') {
                (rest, exports) = (after, false);
                continue;
            }
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            if name == "export" && after.starts_with([' ', '\t']) && !exports {
                (rest, exports) = (after, true);
                continue;
            }
            let named = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
            match after.strip_prefix('=') {
                Some(value) if named => {
                    let (value, after) = self.word(value)?;
                    self.assignments.push(ScriptAssignment { name: name.to_owned(), value, line });
                    rest = after;
                }
                // `export NAME` of what is assigned changes nothing here.
                _ if named && exports && after.trim_start_matches([' ', '\t']).is_empty() => {
                    self.value(name)?;
                    return Ok(());
                }
                _ => return Err(not_an_assignment(text)),
            }
        }
    }

    /// The latest value of a variable, if it has one.
    fn known(&mut self, name: &str) -> Option<String> {
        self.used.insert(name.to_owned());
        let found = self.assignments.iter().rev().find(|a| a.name == name);
        found.map(|a| a.value.clone()).or_else(|| (self.environment)(name))
    }

    /// The latest value of a variable.
    fn value(&mut self, name: &str) -> Result<String, Unassigned> {
        self.known(name).ok_or_else(|| {
            let names = self.assignments.iter().map(|a| a.name.as_str());
            Unassigned { name: name.to_owned(), hint: suggest::hint(name, names) }
        })
    }

    /// A word, and what follows it.
    fn word<'a>(&mut self, text: &'a str) -> Result<(String, &'a str), ScriptLineError> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let after = &rest[c.len_utf8()..];
            match c {
                ' ' | '\t' | ';' => break,
                '\'' => {
                    let end = after.find('\'').ok_or(ScriptLineError::OpenQuote('\''))?;
                    out.push_str(&after[..end]);
                    rest = &after[end + 1..];
                }
                '"' => rest = self.quoted(after, &mut out)?,
                '\\' => {
                    let next = after.chars().next().ok_or(ScriptLineError::Backslash)?;
                    out.push(next);
                    rest = &after[next.len_utf8()..];
                }
                '$' => rest = self.expansion(after, &mut out)?,
                '`' if is_date(after.split('`').next()) => rest = self.date(after, '`', &mut out),
                '`' => return Err(ScriptLineError::Command),
                c if META.contains(&c) => {
                    return Err(ScriptLineError::Meta(c));
                }
                c => {
                    out.push(c);
                    rest = after;
                }
            }
        }
        Ok((out, rest))
    }

    /// The rest of a text in double quotes; returns what follows it.
    fn quoted<'a>(&mut self, text: &'a str, out: &mut String) -> Result<&'a str, ScriptLineError> {
        let mut rest = text;
        loop {
            let c = rest.chars().next().ok_or(ScriptLineError::OpenQuote('"'))?;
            let after = &rest[c.len_utf8()..];
            match c {
                '"' => return Ok(after),
                '\\' if after.starts_with(['"', '\\', '$', '`']) => {
                    out.push_str(&after[..1]);
                    rest = &after[1..];
                }
                '$' => rest = self.expansion(after, out)?,
                '`' if is_date(after.split('`').next()) => rest = self.date(after, '`', out),
                '`' => return Err(ScriptLineError::Command),
                c => {
                    out.push(c);
                    rest = after;
                }
            }
        }
    }

    /// Reads the expansion after a `$`; returns the text behind it.
    fn expansion<'a>(&mut self, text: &'a str, out: &mut String) -> Result<&'a str, ScriptLineError> {
        if let Some(inner) = text.strip_prefix("((") {
            let end = closing(inner, "))").ok_or(ScriptLineError::Open { open: "$((", close: "))" })?;
            out.push_str(&self.arithmetic(&inner[..end])?);
            return Ok(&inner[end + 2..]);
        }
        if let Some(inner) = text.strip_prefix('[') {
            let end = inner.find(']').ok_or(ScriptLineError::Open { open: "$[", close: "]" })?;
            out.push_str(&self.arithmetic(&inner[..end])?);
            return Ok(&inner[end + 1..]);
        }
        if let Some(inner) = text.strip_prefix('(') {
            return if is_date(inner.split(')').next()) {
                Ok(self.date(inner, ')', out))
            } else {
                Err(ScriptLineError::Command)
            };
        }
        if let Some(inner) = text.strip_prefix('{') {
            let end = brace(inner).ok_or(ScriptLineError::Open { open: "${", close: "}" })?;
            out.push_str(&self.parameter(&inner[..end])?);
            return Ok(&inner[end + 1..]);
        }
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        if text[..end].is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(ScriptLineError::Dollar);
        }
        out.push_str(&self.value(&text[..end])?);
        Ok(&text[end..])
    }

    /// What stands between braces: a name, and behind `-` the word that stands for what is not assigned; with a colon before it
    /// also for what is empty.
    fn parameter(&mut self, text: &str) -> Result<String, ScriptLineError> {
        self.depth += 1;
        let value = if self.depth > EXPRESSION_DEPTH {
            Err(ScriptLineError::Braces(text.chars().take(60).collect()))
        } else {
            self.parameter_within(text)
        };
        self.depth -= 1;
        value
    }

    fn parameter_within(&mut self, text: &str) -> Result<String, ScriptLineError> {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        let (name, behind) = text.split_at(end);
        let other = || ScriptLineError::Braces(text.to_owned());
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(other());
        }
        if behind.is_empty() {
            return Ok(self.value(name)?);
        }
        let (behind, is_colon) = behind.strip_prefix(':').map_or((behind, false), |behind| (behind, true));
        let word = behind.strip_prefix('-').ok_or_else(other)?;
        match self.known(name).filter(|value| !(is_colon && value.is_empty())) {
            Some(value) => Ok(value),
            None => match self.word(word)? {
                (value, "") => Ok(value),
                _ => Err(other()),
            },
        }
    }

    fn arithmetic(&mut self, text: &str) -> Result<String, ScriptLineError> {
        // What stands between braces is put in its place first, as a shell does.
        let (mut whole, mut rest) = (String::new(), text);
        while let Some((before, inner)) = rest.split_once("${") {
            let end = brace(inner).ok_or(ScriptLineError::Open { open: "${", close: "}" })?;
            whole.push_str(before);
            whole.push_str(&self.parameter(&inner[..end])?);
            rest = &inner[end + 1..];
        }
        whole.push_str(rest);
        Ok(arithmetic::evaluate(&whole, &mut |name| self.value(name))?.to_string())
    }

    fn date<'a>(&self, text: &'a str, end: char, out: &mut String) -> &'a str {
        out.push_str(&self.now_s.to_string());
        text.split_once(end).map_or("", |(_, rest)| rest)
    }
}

/// Returns whether a command is the one that asks for the seconds since 1970.
fn is_date(command: Option<&str>) -> bool {
    let words: Vec<&str> = command.unwrap_or_default().split_whitespace().collect();
    matches!(words[..], ["date", "+%s" | "'+%s'" | "\"+%s\""])
}

/// Position of `end`, parentheses opened inside left out.
fn closing(text: &str, end: &str) -> Option<usize> {
    let mut open = 0usize;
    for (at, c) in text.char_indices() {
        if open == 0 && text[at..].starts_with(end) {
            return Some(at);
        }
        match c {
            '(' => open += 1,
            ')' => open = open.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// Position of the brace that closes an expansion; those of expansions within it are left out.
fn brace(text: &str) -> Option<usize> {
    let mut open = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => open += 1,
            '}' if open == 0 => return Some(at),
            '}' => open -= 1,
            _ => {}
        }
    }
    None
}

fn not_an_assignment(text: &str) -> ScriptLineError {
    ScriptLineError::NotAnAssignment(text.trim().chars().take(60).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, UnknownScriptLine> {
        let environment = |name: &str| (name == "FROM_OUTSIDE").then(|| "out side".to_owned());
        let mut shell = Shell::new(1_435_936_321, environment);
        shell.read(text)?;
        Ok(shell.assignments.into_iter().map(|a| (a.name, a.value)).collect())
    }

    #[test]
    fn what_configurations_are_made_of() {
        let text = concat!(
            "#!/bin/bash\n\n",
            "# a comment\n",
            "export A=1 # behind it\n",
            "  B=two\r\n",
            "export C=$[A*60]\n",
            "D=$(( (A + 2) * 3 ))x\n",
            "E=\"a b $A ${B} \\$A \\\"\"; F='$A'\n",
            "export G=$(date +%s) H=$( date +%s )\n",
            "I=`date +%s`\n",
            "J=\n",
            "K=<replace-with-proper-URI>\n",
            "L=a\\ b#c\n",
            "M=one\\\ntwo\n",
            "N=\"mongodb://h/?a=1&b=2\"\n",
            "export A\n",
            "A=$A$A\n",
            "O=${NONE:-4} P=${A:-5} Q=${J:-6} R=${J-7} S=${NONE-\"a b\"}\n",
            "T=${NONE:-${A:-x}}$FROM_OUTSIDE U=$((${NONE:-2} * 3))\n",
        );
        let pairs = read(text).unwrap();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let now = "1435936321";
        assert_eq!(
            pairs,
            [
                ("A", "1"),
                ("B", "two"),
                ("C", "60"),
                ("D", "9x"),
                ("E", "a b 1 two $A \""),
                ("F", "$A"),
                ("G", now),
                ("H", now),
                ("I", now),
                ("J", ""),
                ("K", "<replace-with-proper-URI>"),
                ("L", "a b#c"),
                ("M", "onetwo"),
                ("N", "mongodb://h/?a=1&b=2"),
                ("A", "11"),
                ("O", "4"),
                ("P", "11"),
                ("Q", "6"),
                ("R", ""),
                ("S", "a b"),
                ("T", "11out side"),
                ("U", "6"),
            ]
        );
    }

    #[test]
    fn everything_else_is_refused_with_its_line() {
        for (text, line, part) in [
            ("A=1\nrm -rf /", 2, "is no assignment"),
            ("A=$(rm -rf /)", 1, "not executed"),
            ("A=`ls`", 1, "not executed"),
            ("A=\"`ls`\"", 1, "not executed"),
            ("if [ -f x ]; then", 1, "is no assignment"),
            ("A=1 ls", 1, "is no assignment"),
            ("A=x&b=2", 1, "put the value in quotes"),
            ("\n\nA=\"x", 3, "without its other one"),
            ("A='x", 1, "without its other one"),
            ("NUM=1\nA=$NUN", 2, "did you mean NUM?"),
            ("A=${B:?no}", 1, "between the braces"),
            ("A=${B#x}", 1, "between the braces"),
            ("A=${B:=1}", 1, "between the braces"),
            (&format!("A={}1{}", "${B:-".repeat(2_000), "}".repeat(2_000)), 1, "between the braces"),
            ("A=${B:-1", 1, "without }"),
            ("A=$((1/0))", 1, "division by zero"),
            ("A=$((1)", 1, "without ))"),
            ("A=$[1", 1, "without ]"),
            ("A=$", 1, "without the name"),
            ("1A=2", 1, "is no assignment"),
            ("A+=2", 1, "is no assignment"),
            ("export", 1, "is no assignment"),
            ("export B", 1, "not assigned"),
            ("source other.bash", 1, "is no assignment"),
        ] {
            let bad = read(text).unwrap_err();
            assert_eq!(bad.line, line, "{text}: {bad}");
            assert!(bad.problem.to_string().contains(part), "{text}: {bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[A-C=$(){}\\[\\]'\"` #;+*/\\\\\n0-9é]{0,60}") {
            let _ = read(&text);
        }
    }
}
