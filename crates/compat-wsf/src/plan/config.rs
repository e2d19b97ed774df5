//! Configuration files: `GLOB: {VAR: value}`, sections for the tests whose names they match.

use dyno_config::tree::{Node, TreeError, Value};

/// A file's sections.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Name of the file in messages.
    pub path: String,
    /// True if it comes along, as the best known configurations do.
    pub shipped: bool,
    sections: Vec<(String, Vec<(String, String)>)>,
}

impl Config {
    /// Reads a file's text.
    pub fn parse(text: &str, path: &str, shipped: bool) -> Result<Config, TreeError> {
        let tree = Node::parse(text, path)?;
        let Some(entries) = tree.entries() else {
            return Err(tree.error_at("", "expected sections such as `*_90read10update: {THREADS: 64}`"));
        };
        let mut sections = Vec::new();
        for (glob, section) in entries {
            let Some(pairs) = section.entries() else {
                return Err(section.error_at(glob, "expected a mapping of variables to values"));
            };
            let mut values = Vec::new();
            for (name, value) in pairs {
                let text = match &value.value {
                    Value::Null => String::new(),
                    Value::List(_) | Value::Map(_) => {
                        return Err(value.error_at(&format!("{glob}.{name}"), "expected one value"));
                    }
                    _ => value.to_label(),
                };
                values.push((name.clone(), text));
            }
            sections.push((glob.clone(), values));
        }
        Ok(Config { path: path.to_owned(), shipped, sections })
    }

    /// The values for a test of these names, in the file's order: (section, name, value).
    pub fn values<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
        let matching = self.sections.iter().filter(|(glob, _)| names.iter().any(|name| matches(glob, name)));
        matching.flat_map(|(glob, values)| {
            values.iter().map(move |(name, value)| (glob.as_str(), name.as_str(), value.as_str()))
        })
    }
}

/// Returns whether a name matches a glob of `*` and `?`.
pub fn matches(glob: &str, name: &str) -> bool {
    let (glob, name): (Vec<char>, Vec<char>) = (glob.chars().collect(), name.chars().collect());
    // Position after the last star, and how much of the name that star has taken.
    let (mut g, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match glob.get(g) {
            Some('*') => {
                star = Some((g, n));
                g += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                g += 1;
                n += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    g = at + 1;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|c| *c == '*')
}
