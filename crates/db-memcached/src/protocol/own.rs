//! Commands of one's own in the classic text protocol: `set` of a value, and `get` of one or several keys. Others have no form of
//! words alone, and are refused before any load is sent.

use dyno_types::command::{CommandArgument, CommandForm, CommandTemplate};
use dyno_types::{RefusalCode, Refused};

/// What a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandKind {
    /// Key, flags, expiry and value.
    Set,
    /// So many keys.
    Get(u32),
}

/// A command.
#[derive(Clone, Debug)]
pub(super) struct Own {
    pub(super) kind: CommandKind,
    pub(super) arguments: Vec<CommandArgument>,
    /// A get that finds nothing at all is not found.
    pub(super) not_found: bool,
}

fn own(form: &CommandForm) -> Result<Own, Refused> {
    let kind = match (form.name(), form.arguments.len()) {
        (b"set", 5) => CommandKind::Set,
        (b"get", 2..) => CommandKind::Get(form.arguments.len() as u32 - 1),
        (name, _) => {
            let name = String::from_utf8_lossy(name);
            return Err(Refused::new(
                RefusalCode::Unsupported,
                "workload.commands",
                format!(
                    "memcached: the command {name:?} is not sent: expected set with key, flags, expiry and value, or \
                     get with keys"
                ),
            ));
        }
    };
    let follows = form.arguments.contains(&CommandArgument::Follows);
    if follows || !form.expect.is_empty() || !form.keeps.is_empty() {
        let message =
            "memcached: expect, as and earlier replies are not offered: only Redis and its kin have them";
        return Err(Refused::new(RefusalCode::Unsupported, "workload.commands", message));
    }
    Ok(Own { kind, arguments: form.arguments.clone(), not_found: form.not_found })
}

/// The commands of templates, each of one command. Keys of one command are all on one of the `servers`.
pub(super) fn compile(templates: &[CommandTemplate], servers: usize) -> Result<Vec<Own>, Refused> {
    let one = |template: &CommandTemplate| {
        let [form] = template.commands.as_slice() else {
            let message = format!("memcached: {:?} has several commands: expected one", template.name);
            return Err(Refused::new(RefusalCode::Unsupported, "workload.commands", message));
        };
        match own(form)? {
            Own { kind: CommandKind::Get(2..), .. } if servers > 1 => Err(Refused::new(
                RefusalCode::Unsupported,
                "workload.commands",
                format!("memcached: a get of several keys goes to one server, not to {servers}"),
            )),
            own => Ok(own),
        }
    };
    templates.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(words: &[&str]) -> CommandTemplate {
        let arguments = words.iter().map(|word| CommandArgument::Literal(word.as_bytes().to_vec())).collect();
        let form = CommandForm { arguments, key: Some(1), ..CommandForm::default() };
        CommandTemplate { name: words[0].to_owned(), commands: vec![form], atomic: false }
    }

    #[test]
    fn what_has_a_form_of_words_is_taken() {
        let kind = |words: &[&str], servers| compile(&[form(words)], servers).map(|all| all[0].kind);
        assert_eq!(kind(&["set", "k", "0", "0", "v"], 2).unwrap(), CommandKind::Set);
        assert_eq!(kind(&["get", "k"], 2).unwrap(), CommandKind::Get(1));
        assert_eq!(kind(&["get", "k", "l"], 1).unwrap(), CommandKind::Get(2));
        for (words, servers) in
            [(&["get", "k", "l"][..], 2), (&["get"], 1), (&["set", "k", "v"], 1), (&["incr", "k", "1"], 1)]
        {
            assert!(kind(words, servers).is_err(), "{words:?}");
        }
        let mut two = form(&["get", "k"]);
        two.commands.push(two.commands[0].clone());
        assert!(compile(&[two], 1).is_err());
    }
}
