//! Commands of one's own, read from YAML.

use crate::template::arguments::{ArgumentScope, arguments, command, key_format, one_argument};
use crate::template::command_text_error::CommandTextError;
use crate::template::data::{DataForm, table};
use crate::template::fields::{Bad, Fields, bad, count, flag, number, text, whole};
use crate::template::values::{KeySpaceName, Scope, TableName, constant_bytes, spread};
use crate::yaml::{Yaml, YamlNode};
use dyno_types::command::{KeptReply, ReplyExpectation, ReplyKind, SentStamp};
use dyno_types::limits::{CONNECTIONS, RECORD_BYTES, REPLY_DEPTH};
use dyno_types::metric::{DELIVERY, OWN, WAIT};
use dyno_types::suggest::hint;
use dyno_workload::command_mix::{
    ArgumentText, CommandMix, CommandStep, DataTable, LoadItem, MissRule, MixOperation, NamedKeys, OwnLoad,
    Script, StepCondition, StepMode, TextPart,
};
use dyno_workload::template::{ActiveNumbers, NumberDistribution};
use sha1::{Digest, Sha1};

/// Keys of a file of commands.
const KNOWN: [&str; 6] = ["seed", "keys", "data", "scripts", "load", "commands"];

/// Reads a file that a workload names, by its name there.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> Result<Vec<u8>, CommandTextError>;

/// Reads a file's commands.
pub(super) fn read(root: &YamlNode, read_file: ReadFile<'_>) -> Result<CommandMix, Bad> {
    let mut top = Fields::of_mapping(root, "a workload")?;
    let seed = top.take_value("seed").map_or(Ok(1), |node| whole(node, 0, i64::MAX))? as u64;
    let keys = named(top.take_value("keys"), "keys")?;
    let data = named(top.take_value("data"), "data")?;
    let scripts = named(top.take_value("scripts"), "scripts")?;
    let load = top.take_value("load");
    let mix = named(Some(top.need_value("commands", "what is sent")?), "commands")?;
    top.end(&KNOWN)?;
    let keys: Vec<NamedKeys> =
        keys.iter().map(|(name, node)| key_space(name, node)).collect::<Result<_, _>>()?;
    let tables: Vec<DataTable> =
        data.iter().map(|(name, node)| data_table(name, node, read_file)).collect::<Result<_, _>>()?;
    let scripts: Vec<Script> =
        scripts.iter().map(|(name, node)| script(name, node, read_file)).collect::<Result<_, _>>()?;
    let scope = Scope::of_commands(
        keys.iter().map(|one| KeySpaceName { name: one.name.clone(), spread: one.spread }).collect(),
        tables.iter().map(|one| TableName { name: one.name.clone(), columns: one.columns.clone() }).collect(),
        RECORD_BYTES as i64,
    );
    let reader = Reader { scope: &scope, scripts: &scripts };
    let operations = mix.iter().map(|(name, node)| reader.operation(name, node)).collect::<Result<_, _>>()?;
    let load = load.map_or(Ok(Vec::new()), |node| reader.load(node, &keys))?;
    let mix = CommandMix { keys, tables, scripts, operations, load, seed };
    match mix.check() {
        Ok(()) => Ok(mix),
        Err(wrong) => bad(root, format!("{} {}: expected {}", wrong.key, wrong.value, wrong.expected)),
    }
}

/// The names and values of a mapping.
fn named<'a>(node: Option<&'a YamlNode>, what: &str) -> Result<&'a [(String, YamlNode)], Bad> {
    match node.map(|node| (node, node.value())) {
        None => Ok(&[]),
        Some((_, Yaml::Map(all))) => Ok(all),
        Some((node, _)) => bad(node, format!("{what}: {}: expected a mapping of names", node.word())),
    }
}

/// `1M`, or a mapping.
fn key_space(name: &str, node: &YamlNode) -> Result<NamedKeys, Bad> {
    let default = format!("{name}:%{{n}}");
    let Yaml::Map(_) = node.value() else {
        let (count, format) = (count(node)?, key_format(&default, node)?);
        return checked(
            NamedKeys { name: name.to_owned(), count, first: 0, format, spread: spread(None)? },
            node,
        );
    };
    let mut fields = Fields::of_mapping(node, name)?;
    let number = count(fields.need_value("count", "the number of keys")?)?;
    let first = fields.take_value("first").map_or(Ok(0), count)?;
    let format = match fields.take_value("format") {
        Some(node) => key_format(text(node)?, node)?,
        None => key_format(&default, node)?,
    };
    let spread = match fields.take_value("distribution") {
        Some(node) => key_spread(node)?,
        None => NumberDistribution::Uniform,
    };
    fields.end(&["count", "first", "format", "distribution"])?;
    checked(NamedKeys { name: name.to_owned(), count: number, first, format, spread }, node)
}

/// The distribution of a key space: `active:KEYS:OPERATIONS`, or one that numbers may have.
fn key_spread(node: &YamlNode) -> Result<NumberDistribution, Bad> {
    let Some(rest) = text(node).ok().and_then(|text| text.strip_prefix("active:")) else {
        return spread(Some(node));
    };
    let numbers = rest.split_once(':').and_then(|(keys, operations)| {
        let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
        Some(ActiveNumbers { at_a_time: number(keys)?, operations: number(operations)? })
    });
    let expected = "expected active:KEYS:OPERATIONS such as active:20:5000: so many keys at a time, each for so many operations";
    numbers.map_or_else(
        || bad(node, format!("distribution {}: {expected}", node.word())),
        |numbers| Ok(NumberDistribution::Active(numbers)),
    )
}

fn checked(keys: NamedKeys, node: &YamlNode) -> Result<NamedKeys, Bad> {
    if keys.count == 0 { bad(node, format!("{}: count 0: expected 1 or more", keys.name)) } else { Ok(keys) }
}

/// A file's name, or a mapping.
fn data_table(name: &str, node: &YamlNode, read_file: ReadFile<'_>) -> Result<DataTable, Bad> {
    let (file, in_order) = match node.value() {
        Yaml::Map(_) => {
            let mut fields = Fields::of_mapping(node, name)?;
            let file = text(fields.need_value("file", "a CSV, TSV or JSON lines file")?)?;
            let in_order = match fields.take_value("order") {
                None => false,
                Some(node) => match text(node)? {
                    "random" => false,
                    "in_order" => true,
                    other => return bad(node, format!("order: {other:?}: expected random or in_order")),
                },
            };
            fields.end(&["file", "order"])?;
            (file, in_order)
        }
        _ => (text(node)?, false),
    };
    let form = DataForm::of_name(file).map_err(|why| (node.line(), format!("{file:?}: {why}")))?;
    let content = read_file(file).map_err(|why| (node.line(), format!("{file}: {why}")))?;
    table(name, &content, form, in_order).map_err(|why| (node.line(), format!("{file}: {why}")))
}

fn script(name: &str, node: &YamlNode, read_file: ReadFile<'_>) -> Result<Script, Bad> {
    let mut fields = Fields::of_mapping(node, name)?;
    let (file, own) = (fields.take_value("file"), fields.take_value("text"));
    let body = match (file, own) {
        (Some(file), None) => {
            let path = text(file)?;
            read_file(path).map_err(|why| (file.line(), format!("{path}: {why}")))?
        }
        (None, Some(own)) => text(own)?.as_bytes().to_vec(),
        _ => return bad(node, format!("{name}: expected file or text, one of them")),
    };
    let function = match fields.take_value("type") {
        None => false,
        Some(node) => match text(node)? {
            "eval" => false,
            "function" => true,
            other => return bad(node, format!("type: {other:?}: expected eval or function")),
        },
    };
    fields.end(&["file", "text", "type"])?;
    Ok(Script { name: name.to_owned(), body, function })
}

struct Reader<'a> {
    scope: &'a Scope,
    scripts: &'a [Script],
}

/// Names that tell operations beside the mix from others: no step is called so.
const APART: [&str; 3] = [OWN, WAIT, DELIVERY];

/// Keys of an operation that its only command may have, too.
const STEP: [&str; 17] = [
    "name",
    "command",
    "script",
    "function",
    "keys",
    "args",
    "expect",
    "miss",
    "as",
    "when",
    "delivery",
    "weight",
    "users",
    "rate",
    "blocking",
    "let",
    "different",
];

impl Reader<'_> {
    fn operation(&self, name: &str, node: &YamlNode) -> Result<MixOperation, Bad> {
        if name.is_empty() || name.contains('.') {
            return bad(node, format!("{name:?} is no name of a command: expected one without a dot"));
        }
        let mut names = ArgumentScope { values: self.scope, bound: Vec::new(), kept: Vec::new() };
        let plain = |step: CommandStep| MixOperation {
            name: name.to_owned(),
            group: None,
            weight: 1.0,
            bound: Vec::new(),
            different: false,
            steps: vec![step],
            mode: StepMode::Ordered,
            has_steps: false,
            own: None,
        };
        // A command alone, without anything that is said of it.
        if matches!(node.value(), Yaml::Text(_) | Yaml::List(_)) {
            return Ok(plain(CommandStep { arguments: command(node, &names)?, ..CommandStep::default() }));
        }
        let mut fields = Fields::of_mapping(node, name)?;
        let given = fields.take_value("weight");
        let weight = given.map_or(Ok(1.0), number)?;
        if weight < 0.0 {
            return bad(node, format!("{name}: weight {weight}: expected 0 or more"));
        }
        let own = own_load(&mut fields, node)?;
        if let (Some(given), Some(_)) = (given, own) {
            return bad(given, "weight: an operation with users or a rate of its own is not part of the mix");
        }
        let mut bound = Vec::new();
        for (name, node) in self::named(fields.take_value("let"), "let")? {
            bound.push(one_argument(node, &names)?);
            names.bound.push(name.clone());
        }
        let given = fields.take_value("different");
        let different = given.map_or(Ok(false), flag)?;
        let is_drawn = |text: &&ArgumentText| text.iter().any(|part| matches!(part, TextPart::Value(_)));
        if let (Some(given), true) = (given, different && bound.iter().filter(is_drawn).count() < 2) {
            return bad(given, "different: expected two drawn values or more in `let`");
        }
        let Some(list) = fields.take_value("steps") else {
            let step = self.step(fields, node, &mut names, &[])?;
            if let Some(kept) = names.kept.first() {
                return bad(
                    node,
                    format!("as: {kept}: only a step of several keeps its reply for later ones"),
                );
            }
            if step.when.is_some() {
                return bad(node, "when: only a step of several depends on the one before it");
            }
            let own = match (step.subscribes(), own) {
                (true, Some(OwnLoad { users: Some(_), rate: None, .. })) => {
                    own.map(|own| OwnLoad { blocking: true, ..own })
                }
                (true, _) => {
                    return bad(node, format!("{name}: a subscription needs `users: N` and no rate"));
                }
                (false, own) => own,
            };
            if step.delivery.is_some() && own.is_none() {
                return bad(node, "delivery: expected `users: N` too: messages are read beside the mix");
            }
            return Ok(MixOperation { weight, bound, different, own, ..plain(step) });
        };
        let mode = match fields.take_value("mode") {
            None => StepMode::Ordered,
            Some(node) => match text(node)? {
                "ordered" => StepMode::Ordered,
                "pipelined" => StepMode::Pipelined,
                "multi" => StepMode::Atomic,
                other => return bad(node, format!("mode: {other:?}: expected ordered, pipelined or multi")),
            },
        };
        fields.end(&["weight", "users", "rate", "blocking", "let", "different", "steps", "mode"])?;
        let Yaml::List(all) = list.value() else {
            return bad(list, format!("steps: {}: expected a list of commands", list.word()));
        };
        let mut steps: Vec<CommandStep> = Vec::new();
        for node in all {
            let mut step = match node.value() {
                Yaml::Text(_) | Yaml::List(_) => {
                    CommandStep { arguments: command(node, &names)?, ..CommandStep::default() }
                }
                _ => self.step(Fields::of_mapping(node, "a step")?, node, &mut names, &steps)?,
            };
            if step.name.is_empty() {
                step.name = step_name(&step, &steps);
            }
            if steps.iter().any(|one| one.name == step.name) {
                return bad(node, format!("name: {:?}: another step is called so", step.name));
            }
            let uses_reply = |part: &TextPart| matches!(part, TextPart::Reply(_));
            if mode != StepMode::Ordered
                && (step.when.is_some() || step.arguments.iter().flatten().any(uses_reply))
            {
                return bad(
                    node,
                    "a reply is there only in mode: ordered; the other modes send all steps at once",
                );
            }
            if step.subscribes() {
                return bad(node, "a subscription is an operation by itself, with `users: N`");
            }
            if step.delivery.is_some() && own.is_none() {
                return bad(node, "delivery: expected `users: N` too: messages are read beside the mix");
            }
            steps.push(step);
        }
        if steps.is_empty() {
            return bad(list, "steps: nothing: expected at least one command");
        }
        Ok(MixOperation {
            name: name.to_owned(),
            group: None,
            weight,
            bound,
            different,
            steps,
            mode,
            has_steps: true,
            own,
        })
    }

    /// One command and what is said of it; names that it keeps its reply under are added.
    fn step(
        &self,
        mut fields: Fields<'_>,
        node: &YamlNode,
        names: &mut ArgumentScope<'_>,
        before: &[CommandStep],
    ) -> Result<CommandStep, Bad> {
        let name = fields.take_value("name").map_or(Ok(""), text)?.to_owned();
        if name.contains('.') || APART.contains(&name.as_str()) {
            return bad(
                node,
                format!("name: {name:?}: expected one without a dot, other than {}", APART.join(", ")),
            );
        }
        let (line, called) = (fields.take_value("command"), fields.take_value("script"));
        let (given, function) = (fields.take_value("keys"), fields.take_value("function"));
        let (words, keys, script) = match (line, called) {
            (Some(line), None) => {
                if let Some(node) = function {
                    return bad(node, "function: goes with script");
                }
                let words = command(line, names)?;
                let keys = given.map(|node| positions(node, words.len())).transpose()?;
                (words, keys, None)
            }
            (None, Some(called)) => {
                let arguments = fields.take_value("args");
                let (words, keys, script) = self.call(called, function, (given, arguments), names)?;
                (words, Some(keys), script)
            }
            _ => return bad(node, "expected command or script, one of them"),
        };
        let expect = fields.take_value("expect").map_or(Ok(ReplyExpectation::default()), expectation)?;
        let miss = match fields.take_value("miss") {
            None => MissRule::Reads,
            Some(node) => match text(node)? {
                "ok" => MissRule::Accepted,
                "not_found" => MissRule::NotFound,
                other => return bad(node, format!("miss: {other:?}: expected ok or not_found")),
            },
        };
        let when = match fields.take_value("when") {
            None => None,
            Some(node) if before.is_empty() => return bad(node, "when: no step is before this one"),
            Some(node) => match text(node)? {
                "miss" => Some(StepCondition::Miss),
                "hit" => Some(StepCondition::Hit),
                other => return bad(node, format!("when: {other:?}: expected miss or hit")),
            },
        };
        let keeps = fields.take_value("as").map_or(Ok(Vec::new()), |node| kept(node, names))?;
        let delivery = fields.take_value("delivery").map(stamp_place).transpose()?;
        fields.end(&STEP)?;
        Ok(CommandStep { name, arguments: words, keys, expect, miss, when, keeps, script, delivery })
    }

    /// The words that call a script by its digest, or a function by its name; the numbers of its keys.
    #[allow(clippy::type_complexity)]
    fn call(
        &self,
        called: &YamlNode,
        function: Option<&YamlNode>,
        (keys, rest): (Option<&YamlNode>, Option<&YamlNode>),
        names: &ArgumentScope<'_>,
    ) -> Result<(Vec<ArgumentText>, Vec<u16>, Option<usize>), Bad> {
        let wanted = text(called)?;
        let Some(number) = self.scripts.iter().position(|one| one.name == wanted) else {
            let known: Vec<&str> = self.scripts.iter().map(|one| one.name.as_str()).collect();
            let near = hint(wanted, known.iter().copied());
            return bad(
                called,
                format!("there is no script {wanted:?}{near}; scripts: {}", known.join(", ")),
            );
        };
        let script = &self.scripts[number];
        let literal = |text: &str| vec![TextPart::Literal(text.as_bytes().to_vec())];
        let mut words = match (script.function, function) {
            (true, Some(name)) => vec![literal("FCALL"), literal(text(name)?)],
            (true, None) => return bad(called, "function is missing: which one of the library"),
            (false, Some(node)) => return bad(node, "function: the script is of type eval, which has none"),
            (false, None) => vec![literal("EVALSHA"), literal(&hex::encode(Sha1::digest(&script.body)))],
        };
        let several = |node: Option<&YamlNode>| match node.map(|node| (node, node.value())) {
            None => Ok(Vec::new()),
            Some((_, Yaml::List(all))) => {
                let mut out = Vec::new();
                all.iter().try_for_each(|one| arguments(one, names, &mut out))?;
                Ok(out)
            }
            Some((node, _)) => bad(node, format!("{}: expected a list", node.word())),
        };
        let (keys, rest) = (several(keys)?, several(rest)?);
        words.push(literal(&keys.len().to_string()));
        let places = (3..3 + keys.len() as u16).collect();
        words.extend(keys.into_iter().chain(rest));
        Ok((words, places, (!script.function).then_some(number)))
    }

    fn load(&self, node: &YamlNode, keys: &[NamedKeys]) -> Result<Vec<LoadItem>, Bad> {
        let Yaml::List(all) = node.value() else {
            return bad(node, format!("load: {}: expected a list of commands", node.word()));
        };
        all.iter().map(|one| self.load_item(one, keys)).collect()
    }

    fn load_item(&self, node: &YamlNode, keys: &[NamedKeys]) -> Result<LoadItem, Bad> {
        let mut fields = Fields::of_mapping(node, "a command of load")?;
        let once = fields.take_value("once").map_or(Ok(false), flag)?;
        let each = fields.take_value("for");
        let mut names = ArgumentScope { values: self.scope, bound: Vec::new(), kept: Vec::new() };
        let step = self.step(fields, node, &mut names, &[])?;
        if let Some(kept) = names.kept.first() {
            return bad(node, format!("as: {kept}: the load keeps no replies"));
        }
        let each = match (once, each) {
            (true, None) => None,
            (false, Some(each)) => {
                let wanted = text(each)?;
                let found = keys.iter().position(|one| one.name == wanted);
                let known: Vec<&str> = keys.iter().map(|one| one.name.as_str()).collect();
                if found.is_none() {
                    let near = hint(wanted, known.iter().copied());
                    return bad(each, format!("for: no keys {wanted:?}{near}; keys: {}", known.join(", ")));
                }
                found
            }
            _ => return bad(node, "expected `for: KEYS` or `once: true`"),
        };
        if step.subscribes() || step.delivery.is_some() {
            return bad(node, "the load reads no messages");
        }
        let is_user = |part: &TextPart| *part == TextPart::User;
        if step.arguments.iter().flatten().any(is_user) {
            return bad(node, "user: the load belongs to no user");
        }
        Ok(LoadItem { each, step })
    }
}

/// Users, a rate and waiting of an operation beside the mix.
fn own_load(fields: &mut Fields<'_>, node: &YamlNode) -> Result<Option<OwnLoad>, Bad> {
    let (users, rate) = (fields.take_value("users"), fields.take_value("rate"));
    let blocking = fields.take_value("blocking").map_or(Ok(false), flag)?;
    let users = users.map(|node| whole(node, 1, CONNECTIONS as i64)).transpose()?.map(|users| users as u32);
    let rate = match rate {
        None => None,
        Some(node) => match number(node)? {
            rate if rate > 0.0 => Some(rate),
            rate => return bad(node, format!("rate {rate}: expected operations per second, above 0")),
        },
    };
    match (users, rate) {
        (None, _) | (_, Some(_)) if blocking => {
            bad(node, "blocking: expected `users: N` and no rate: each user waits by itself")
        }
        (None, None) => Ok(None),
        _ => Ok(Some(OwnLoad { users, rate, blocking })),
    }
}

/// The command's name in small letters, with a number where an earlier step has it.
fn step_name(step: &CommandStep, before: &[CommandStep]) -> String {
    let name = match step.arguments.first().map(Vec::as_slice) {
        Some([TextPart::Literal(name)]) => String::from_utf8_lossy(name).to_lowercase().replace('.', "_"),
        _ => String::new(),
    };
    let mut all = (2..).map(|number| format!("{name}{number}"));
    let taken = |name: &str| APART.contains(&name) || before.iter().any(|one| one.name == name);
    if taken(&name) { all.find(|one| !taken(one)).unwrap_or(name) } else { name }
}

/// Numbers of the arguments that are keys.
fn positions(node: &YamlNode, words: usize) -> Result<Vec<u16>, Bad> {
    let Yaml::List(all) = node.value() else {
        return bad(node, format!("keys: {}: expected numbers of arguments such as [1]", node.word()));
    };
    all.iter().map(|one| whole(one, 1, words as i64 - 1).map(|number| number as u16)).collect()
}

/// A value, or a mapping of demands.
fn expectation(node: &YamlNode) -> Result<ReplyExpectation, Bad> {
    if !matches!(node.value(), Yaml::Map(_)) {
        return Ok(ReplyExpectation { value: Some(constant_bytes(node)), ..ReplyExpectation::default() });
    }
    let mut fields = Fields::of_mapping(node, "expect")?;
    let kind = fields.take_value("type").map(|node| {
        let name = text(node)?;
        let found = ReplyKind::ALL.into_iter().find(|kind| kind.kind_name() == name);
        let known = ReplyKind::ALL.map(ReplyKind::kind_name).join(", ");
        found.map_or_else(|| bad(node, format!("type: {name:?}: expected one of {known}")), Ok)
    });
    let expect = ReplyExpectation {
        kind: kind.transpose()?,
        nil: fields.take_value("nil").map(flag).transpose()?,
        value: fields.take_value("value").map(constant_bytes),
        length: fields
            .take_value("length")
            .map(|node| {
                let bound = |node: &YamlNode| whole(node, 0, i64::MAX);
                let (least, most) = crate::template::fields::range(node, bound)?;
                Ok((least as u64, most as u64))
            })
            .transpose()?,
    };
    fields.end(&["type", "nil", "value", "length"])?;
    if expect.is_empty() {
        return bad(node, "expect: nothing: expected type, nil, value or length");
    }
    Ok(expect)
}

/// Where messages have their stamps: `true`, or the name of a field.
fn stamp_place(node: &YamlNode) -> Result<SentStamp, Bad> {
    match node.value() {
        Yaml::Bool(true) => Ok(SentStamp::Message),
        Yaml::Text(name) if !name.is_empty() => Ok(SentStamp::Field(name.as_bytes().to_vec())),
        _ => bad(
            node,
            format!("delivery: {}: expected true, or the name of the field with %{{sent}}", node.word()),
        ),
    }
}

/// A name for the reply, or names for parts of it.
fn kept(node: &YamlNode, names: &mut ArgumentScope<'_>) -> Result<Vec<KeptReply>, Bad> {
    let mut keep = |name: &str, node: &YamlNode, path: Vec<u16>| {
        if names.kept.iter().chain(&names.bound).any(|known| known == name) {
            return bad(node, format!("as: {name:?} is taken"));
        }
        if names.kept.len() >= usize::from(u8::MAX) {
            return bad(node, format!("as: expected at most {} names", u8::MAX));
        }
        names.kept.push(name.to_owned());
        Ok(KeptReply { number: names.kept.len() as u16 - 1, path })
    };
    match node.value() {
        Yaml::Text(name) => Ok(vec![keep(name, node, Vec::new())?]),
        Yaml::Map(all) => {
            let part = |(name, node): &(String, YamlNode)| {
                let Yaml::List(steps) = node.value() else {
                    return bad(node, format!("as: {}: expected a path such as [0, 1]", node.word()));
                };
                if steps.len() > REPLY_DEPTH {
                    return bad(node, format!("as: expected a path of at most {REPLY_DEPTH} places"));
                }
                let place = |one: &YamlNode| whole(one, 0, i64::from(u16::MAX)).map(|place| place as u16);
                keep(name, node, steps.iter().map(place).collect::<Result<_, _>>()?)
            };
            all.iter().map(part).collect()
        }
        _ => bad(node, format!("as: {}: expected a name, or names and paths", node.word())),
    }
}
