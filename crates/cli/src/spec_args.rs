//! Options that set a key of an experiment, made of its types ([`dyno_config::experiment::flags`]).

use clap::builder::PossibleValue;
use clap::builder::PossibleValuesParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use dyno_config::experiment::flags::{FlagDefinition, RUN_FLAGS};
use dyno_config::tree::Node;

/// The options that were typed, as the tree that an experiment file becomes. Those that were not typed are not in it: their
/// defaults are those of the experiment.
#[derive(Clone, Debug)]
pub struct SpecArgs {
    /// Keys and values, each with its option.
    pub tree: Node,
}

impl Args for SpecArgs {
    fn augment_args(command: Command) -> Command {
        let mut flags: Vec<_> = RUN_FLAGS.iter().collect();
        flags.sort_by_key(|flag| heading(&flag.key));
        command.args(flags.into_iter().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SpecArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut args = SpecArgs { tree: Node::empty_mapping() };
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let is_typed =
            |flag: &&FlagDefinition| matches.value_source(&flag.long) == Some(ValueSource::CommandLine);
        for flag in RUN_FLAGS.iter().filter(is_typed) {
            let given: Vec<String> = match flag.value_name {
                Some(_) => matches.get_many(&flag.long).into_iter().flatten().cloned().collect(),
                None => Vec::new(),
            };
            flag.set_in(&mut self.tree, &given);
        }
        Ok(())
    }
}

fn option(flag: &'static FlagDefinition) -> Arg {
    let mut arg = Arg::new(flag.long.as_str()).long(flag.long.as_str());
    arg = arg.help(flag.help.as_str()).help_heading(heading(&flag.key).1);
    arg = arg.conflicts_with_all(flag.conflicts.iter().map(String::as_str));
    arg = flag.requires.iter().fold(arg, |arg, other| arg.requires(other.as_str()));
    if let Some(short) = flag.short {
        arg = arg.short(short);
    }
    let Some(name) = &flag.value_name else { return arg.action(ArgAction::SetTrue) };
    let choice = |(value, message): &'static (String, String)| {
        PossibleValue::new(value.as_str()).help(message.as_str())
    };
    let arg = arg.value_name(name.as_str());
    let arg = arg.action(if flag.is_list { ArgAction::Append } else { ArgAction::Set });
    match flag.choices.is_empty() {
        true => arg,
        false => arg.value_parser(PossibleValuesParser::new(flag.choices.iter().map(choice))),
    }
}

/// The part of the help that an option stands in, by its key, behind the part's place.
fn heading(key: &str) -> (usize, &'static str) {
    const HEADINGS: [(&str, &str); 6] = [
        ("workload.", "Workload"),
        ("seed", "Workload"),
        ("phases.measure.", "Load"),
        ("phases.load.", "Records"),
        ("client.", "Client"),
        ("monitors.", "Monitoring"),
    ];
    let found = HEADINGS.iter().position(|(prefix, _)| key.starts_with(prefix));
    found.map_or((HEADINGS.len(), "Result"), |at| (at, HEADINGS[at].1))
}
