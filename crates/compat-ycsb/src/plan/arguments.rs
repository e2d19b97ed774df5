//! One pass over the arguments, and the conclusions drawn at its end: phase, binding, workload.

use crate::bindings::Binding;
use crate::plan::command::{Extras, Mode, YcsbCommand};
use crate::plan::error::YcsbError;
use crate::plan::files;
use crate::plan::flags::{FLAGS, YcsbFlag};
use dyno_config::settings::{PropertySettings, Source};
use dyno_types::limits::{CONNECTIONS, OPERATIONS_PER_S};
use dyno_types::units::parse_count;
use dyno_workload::ycsb::workload_class;

const HELP: [&str; 6] = ["-h", "-help", "--help", "-?", "--?", "help"];

/// Everything that the pass has gathered.
#[derive(Debug, Default)]
pub(super) struct Taken {
    mode: Option<Mode>,
    binding: Option<String>,
    /// The phase asked for by `-load` or `-t`.
    phase: Option<Mode>,
    /// Flags seen, for the check against the mode, which may stand behind them.
    seen: Vec<&'static str>,
    settings: PropertySettings,
    notes: Vec<String>,
    extras: Extras,
}

/// Goes through the arguments; `None` if help is asked for.
pub(super) fn take(arguments: &[String]) -> Result<Option<Taken>, YcsbError> {
    let mut taken = Taken::default();
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        let word = taken.binding.is_none() && !argument.starts_with('-');
        if HELP.contains(&argument) && (argument.starts_with('-') || taken.mode.is_none()) {
            return Ok(None);
        } else if word {
            taken.word(argument)?;
        } else if !argument.starts_with('-') {
            return Err(YcsbError::Stray { given: argument.to_owned() });
        } else {
            taken.flag(argument, &mut rest)?;
        }
    }
    Ok(Some(taken))
}

/// The flag that `argument` names, and the value behind its `=`, which only the flags of our own and of the wrapper
/// (`bin/ycsb`) take there.
fn find(argument: &str) -> Option<(&'static YcsbFlag, Option<&str>)> {
    let exact = FLAGS.iter().find(|flag| flag.name == argument);
    if let Some(flag) = exact {
        return Some((flag, None));
    }
    let (name, value) = argument.split_once('=')?;
    let flag = FLAGS.iter().find(|flag| flag.name == name && !flag.value.is_empty())?;
    (name.starts_with("--") || matches!(name, "-cp" | "-jvm-args")).then_some((flag, Some(value)))
}

impl Taken {
    /// A word that is no flag: the command, then the binding.
    fn word(&mut self, word: &str) -> Result<(), YcsbError> {
        if self.mode.is_some() {
            self.binding = Some(word.to_owned());
            return Ok(());
        }
        let mode = Mode::ALL.into_iter().find(|mode| mode.name() == word);
        self.mode = Some(mode.ok_or_else(|| YcsbError::UnknownCommand { given: word.to_owned() })?);
        Ok(())
    }

    fn flag<'a>(
        &mut self,
        argument: &'a str,
        rest: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), YcsbError> {
        let unknown = || YcsbError::UnknownOption { given: argument.to_owned() };
        let (flag, inline) = find(argument).ok_or_else(unknown)?;
        let name = flag.name;
        self.seen.push(name);
        if flag.value.is_empty() {
            self.switch(name);
            return Ok(());
        }
        let value = inline.or_else(|| rest.next()).ok_or(YcsbError::NoValue { flag: name })?;
        let source = Source::Option { flag: name.to_owned() };
        match name {
            "-P" => files::add(value, &mut self.settings, &mut self.notes)?,
            "-p" => {
                let pair = value.split_once('=').filter(|(key, _)| !key.is_empty());
                let (key, value) = pair.ok_or_else(|| YcsbError::NotAPair { given: value.to_owned() })?;
                self.settings.set_property(key, value, Source::CommandLine);
            }
            "-db" => self.settings.set_property("db", value, source),
            "-l" => self.settings.set_property("label", value, source),
            "-table" => self.settings.set_property("table", value, source),
            "-threads" => {
                let threads = number(name, value, 1, CONNECTIONS as u64)?;
                self.settings.set_property("threadcount", threads, source);
            }
            // No rate, as YCSB takes it.
            "-target" if value.trim().parse().is_ok_and(|target: i64| target < 0) => {
                self.settings.set_property("target", "0", source);
            }
            "-target" => {
                self.settings.set_property("target", number(name, value, 0, OPERATIONS_PER_S)?, source)
            }
            "--client" => self.settings.set_property("dyno.client", value, source),
            "--out" if value.is_empty() => return Err(YcsbError::NoValue { flag: name }),
            "--out" => self.extras.out = Some(value.into()),
            _ => self.notes.push(format!("{name} is ignored: there is no Java here")),
        }
        Ok(())
    }

    /// A flag without a value.
    fn switch(&mut self, name: &str) {
        match name {
            "-s" => self.settings.set_property("status", "true", Source::Option { flag: name.to_owned() }),
            "-load" => self.phase = Some(Mode::Load),
            "-t" => self.phase = Some(Mode::Run),
            "--compat-exit" => self.extras.compat_exit = true,
            "--no-out" => self.extras.no_out = true,
            "--no-monitor" => self.extras.no_monitor = true,
            "--json" => self.extras.json = true,
            _ => self.extras.quiet = true,
        }
    }

    /// Draws the conclusions.
    pub(super) fn finish(mut self) -> Result<YcsbCommand, YcsbError> {
        let mode = self.mode.ok_or(YcsbError::NoCommand)?;
        let name = self.binding.take().ok_or(YcsbError::NoBinding { mode })?;
        let wrong = self.seen.iter().find(|&&seen| {
            let flag = FLAGS.iter().find(|flag| flag.name == seen);
            !flag.is_some_and(|flag| if mode == Mode::Shell { flag.modes.1 } else { flag.modes.0 })
        });
        if let Some(&flag) = wrong {
            return Err(YcsbError::WrongMode { flag, mode });
        }
        if self.extras.no_out && self.extras.out.is_some() {
            return Err(YcsbError::OutAndNoOut);
        }
        let binding = self.choose_binding(&name)?;
        if mode != Mode::Shell {
            self.choose_phase(mode);
            self.check_workload()?;
        }
        let Taken { settings, notes, extras, .. } = self;
        Ok(YcsbCommand { mode, binding, settings, notes, extras })
    }

    /// The binding: YCSB's wrapper hands its class on as the first `-db`, so that a later `-db` or `-p db=` of the
    /// command line wins, and one of a file does not.
    fn choose_binding(&mut self, name: &str) -> Result<Binding, YcsbError> {
        let refuse = |why, asked_by| YcsbError::Binding { why, asked_by };
        let named = Binding::from_name(name).map_err(|why| refuse(why, Source::Default))?;
        let typed = self.settings.get("db").filter(|s| is_typed(&s.source)).cloned();
        let Some(typed) = typed else {
            self.settings.set_property("db", named.class(), Source::Option { flag: name.to_owned() });
            return Ok(named);
        };
        let chosen = Binding::from_name(&typed.value).map_err(|why| refuse(why, typed.source.clone()))?;
        if chosen != named {
            let flag = if typed.source == Source::CommandLine { "-p db=" } else { "-db " };
            self.notes.push(format!("{flag}{} wins over the binding {name}, as in YCSB", typed.value));
        }
        Ok(chosen)
    }

    /// The phase: the wrapper hands its flag on last, so that nothing wins over it.
    fn choose_phase(&mut self, mode: Mode) {
        if let Some(phase) = self.phase.filter(|&phase| phase != mode) {
            let flag = if phase == Mode::Load { "-load" } else { "-t" };
            self.notes.push(format!("{flag} has no effect: the command is {}", mode.name()));
        }
        let transactions = if mode == Mode::Run { "true" } else { "false" };
        if let Some(set) = self.settings.get("dotransactions")
            && !set.value.trim().eq_ignore_ascii_case(transactions)
        {
            let (source, value) = (&set.source, &set.value);
            let command = mode.name();
            self.notes
                .push(format!("{source}: dotransactions={value} has no effect: the command is {command}"));
        }
        self.settings.set_property(
            "dotransactions",
            transactions,
            Source::Option { flag: mode.name().to_owned() },
        );
    }

    fn check_workload(&self) -> Result<(), YcsbError> {
        let class = self.settings.text_of("workload").ok_or(YcsbError::NoWorkload)?;
        workload_class(class).map_err(|bad| self.settings.blame_source(bad))?;
        Ok(())
    }
}

fn is_typed(source: &Source) -> bool {
    matches!(source, Source::CommandLine | Source::Option { .. })
}

/// A whole number from `least` to `most`, in decimal digits.
fn number(flag: &'static str, text: &str, least: u64, most: u64) -> Result<String, YcsbError> {
    let number = parse_count(text).ok().filter(|number| (least..=most).contains(number));
    number.map(|number| number.to_string()).ok_or(YcsbError::BadValue { flag, given: text.to_owned() })
}
