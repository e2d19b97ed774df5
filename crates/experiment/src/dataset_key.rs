//! Data that a run begins with: those of a volume, if their key is that of what it would load.
//!
//! A run begins with a volume's data only if their key is that of what it would load, and if the server, once started, has
//! as many keys or documents as the record says. Everything that shapes the data is in the key.

use dyno_config::experiment::Experiment;
use dyno_config::server::data::Reuse;
use dyno_config::server::{ServerSpec, Setting};
use dyno_hosts::servers::volume::{FoundVolume, Loaded, VolumeKey};
use dyno_session::work::texts::with_texts;
use dyno_session::work::ycsb::core_config_of;
use dyno_types::bounded;
use dyno_types::limits::TEXT_BYTES;
use dyno_types::secret::mask_arguments;
use dyno_types::{RefusalCode, Refused};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Values longer than this stand in a key as a digest.
const LONG: usize = 120;

/// Data that a run begins with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Begin {
    /// Loaded data.
    With(Box<Loaded>),
    /// Nothing, for this reason.
    Empty(String),
}

/// A value as a key has it.
fn short(text: String) -> String {
    match text.len() > LONG {
        true => hex::encode(&Sha256::digest(text.as_bytes())[..16]),
        false => text,
    }
}

/// The key of what an experiment loads into a server of this version.
pub(crate) fn key(spec: &Experiment, server: &ServerSpec, version: &str) -> Result<VolumeKey, Refused> {
    let mut key = VolumeKey::new();
    let mut put = |name: &str, value: String| drop(key.insert(name.to_owned(), short(value)));
    let options =
        server.options.iter().filter(|(name, _)| !["requirepass", "masterauth"].contains(&name.as_str()));
    let options: BTreeMap<&String, &Setting> = options.collect();
    put("server", server.kind.to_string());
    put("version", version.to_owned());
    put("topology", format!("{:?}", server.topology).to_lowercase());
    put("instances", server.instances.to_string());
    put("primaries", server.primaries().to_string());
    put("replicas", server.replicas.to_string());
    put(
        "options",
        options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "),
    );
    let engine = (&server.engine, &server.compressor, &server.journal, mask_arguments(&server.arguments));
    put("engine", serde_json::to_string(&engine).unwrap_or_default());
    // Another class or size is another volume, whatever is in it.
    if let Some(storage) = spec.kubernetes.as_ref().and_then(|asked| asked.storage.as_ref()) {
        put(
            "storage",
            format!("{} of {} bytes", storage.class.as_deref().unwrap_or("default"), storage.size.0),
        );
    }
    if let Some(path) = &spec.phases.load.from {
        put("from", digest_file(path)?);
        return Ok(key);
    }
    let work = &spec.workload;
    let file = |path: &str| {
        bounded::text_file(path, TEXT_BYTES)
            .map_err(|e| Refused::new(RefusalCode::BadFile, path, format!("{path}: {e}")))
    };
    match (&work.documents, &work.sysbench, &work.pocdriver) {
        (Some(path), ..) => put("documents", file(path)?),
        _ if work.commands.is_some() => {
            let whole = with_texts(spec)?.workload.commands;
            put("commands", serde_json::to_string(&whole).unwrap_or_default());
        }
        (_, Some(variables), _) => {
            let text = variables.get("CONFIG").map(|path| file(path)).transpose()?.unwrap_or_default();
            put("sysbench", format!("{} {text}", serde_json::to_string(variables).unwrap_or_default()));
        }
        (.., Some(flags)) => put("pocdriver", flags.clone()),
        _ => of_ycsb(spec, &mut put)?,
    }
    put("seed", spec.seed.to_string());
    Ok(key)
}

/// The digest of a file's bytes.
fn digest_file(path: &str) -> Result<String, Refused> {
    let bad = |e: std::io::Error| Refused::new(RefusalCode::BadFile, path, format!("{path}: {e}"));
    let mut digest = Sha256::new();
    let mut file = BufReader::with_capacity(1 << 20, File::open(path).map_err(bad)?);
    loop {
        let part = file.fill_buf().map_err(bad)?;
        let length = part.len();
        if length == 0 {
            return Ok(hex::encode(digest.finalize()));
        }
        digest.update(part);
        file.consume(length);
    }
}

/// Under the names of the properties that say it.
fn of_ycsb(spec: &Experiment, put: &mut dyn FnMut(&str, String)) -> Result<(), Refused> {
    let config = core_config_of(spec)?;
    put("table", config.table.clone());
    put("records", config.record_count.to_string());
    put("insertstart", config.insert_start.to_string());
    put("insertcount", config.insert_count.to_string());
    put("insertorder", if config.names.hashed { "hashed".into() } else { "ordered".into() });
    put("keys", format!("{} {}", config.names.prefix, config.names.zero_padding));
    put("fieldcount", config.field_count.to_string());
    put("fieldnameprefix", config.field_prefix.clone());
    put("fieldlength", config.field_bytes.to_string());
    put("minfieldlength", config.min_field_bytes.to_string());
    put("fieldlengthdistribution", format!("{:?}", config.lengths));
    put("values", format!("{:?}{}", config.value, if config.data_integrity { ", verified" } else { "" }));
    put("dyno.seed", config.seed.to_string());
    Ok(())
}

/// The first things in which data differ from what is wanted; `None` if they do not.
pub(crate) fn differs(there: &VolumeKey, wanted: &VolumeKey) -> Option<String> {
    let none = || "none".to_owned();
    let names: std::collections::BTreeSet<&String> = there.keys().chain(wanted.keys()).collect();
    let other = names.into_iter().filter(|name| there.get(*name) != wanted.get(*name));
    let words: Vec<String> = other
        .map(|name| {
            let (have, want) = (there.get(name), wanted.get(name));
            format!(
                "{name}: {} there, {} asked for",
                have.cloned().unwrap_or_else(none),
                want.cloned().unwrap_or_else(none)
            )
        })
        .collect();
    match words.len() {
        0 => None,
        n if n > 3 => Some(format!("{}; and {} more", words[..3].join("; "), n - 3)),
        _ => Some(words.join("; ")),
    }
}

/// Decides what a run begins with; `own` says whether this experiment has loaded what a record is of.
pub(crate) fn decide(
    found: FoundVolume,
    wanted: &VolumeKey,
    reuse: Reuse,
    own: impl Fn(&Loaded) -> bool,
) -> Begin {
    let empty = |why: &str| Begin::Empty(why.to_owned());
    if !found.there {
        return empty("there is no such volume yet");
    }
    let Some(record) = found.record else { return empty("no load into it has come to its end") };
    if reuse == Reuse::Never {
        return empty("every run loads (reuse: never)");
    }
    if reuse == Reuse::Own && !own(&record) {
        return empty("another experiment has loaded it (reuse: own)");
    }
    match differs(&record.key, wanted) {
        Some(why) => Begin::Empty(why),
        None => Begin::With(Box::new(record)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_config::experiment::read_plan;

    fn of(text: &str) -> VolumeKey {
        let plan = read_plan(text, "x.yaml", &[]).unwrap();
        let spec = &plan.cells[0].spec;
        key(spec, spec.server.as_ref().unwrap(), "7.0").unwrap()
    }

    fn record(key: VolumeKey) -> Loaded {
        Loaded {
            id: "1".into(),
            key,
            count: 9,
            loaded: String::new(),
            seconds: 1.0,
            run: String::new(),
            used: 0,
        }
    }

    #[test]
    fn everything_that_shapes_the_data_is_in_the_key() {
        let base = of("server: {kind: redis}\nworkload: {ycsb: {records: 1000}}\n");
        for (other, name) in [
            ("server: {kind: redis}\nworkload: {ycsb: {records: 2000}}\n", "records"),
            (
                "server: {kind: redis}\nworkload: {ycsb: {records: 1000, properties: {fieldcount: 5}}}\n",
                "fieldcount",
            ),
            (
                "server: {kind: redis}\nworkload: {ycsb: {records: 1000, properties: {fieldlength: 5}}}\n",
                "fieldlength",
            ),
            (
                "server: {kind: redis}\nworkload: {ycsb: {records: 1000, properties: {insertorder: ordered}}}\n",
                "insertorder",
            ),
            ("server: {kind: redis}\nworkload: {ycsb: {records: 1000}}\nseed: 2\n", "seed"),
            ("server: {kind: valkey}\nworkload: {ycsb: {records: 1000}}\n", "server"),
            ("server: {kind: redis, topology: cluster}\nworkload: {ycsb: {records: 1000}}\n", "topology"),
            (
                "server: {kind: redis, options: {databases: 1}}\nworkload: {ycsb: {records: 1000}}\n",
                "options",
            ),
        ] {
            let wanted = of(other);
            let why = differs(&base, &wanted).unwrap();
            assert!(why.contains(&format!("{name}: ")), "{name}: {why}");
        }
        // The use that a run makes of the data is not in it, and neither is who may speak to the server.
        let same = "server: {kind: redis, options: {requirepass: x}}\nworkload: {ycsb: {workload: b, records: 1000, \
                    run_properties: {readproportion: 1}}}\nphases: {measure: {users: 9}}\n";
        assert_eq!(differs(&base, &of(same)), None);
    }

    #[test]
    fn decisions_have_reasons() {
        let key = of("server: {kind: redis}\n");
        let found = |record: Option<Loaded>| FoundVolume { record, there: true };
        let why = |begin: Begin| match begin {
            Begin::Empty(why) => why,
            Begin::With(_) => "reused".into(),
        };
        let nothing = FoundVolume { record: None, there: false };
        assert_eq!(why(decide(nothing, &key, Reuse::Matching, |_| true)), "there is no such volume yet");
        assert!(why(decide(found(None), &key, Reuse::Matching, |_| true)).contains("come to its end"));
        let whole = || found(Some(record(key.clone())));
        assert_eq!(why(decide(whole(), &key, Reuse::Matching, |_| false)), "reused");
        assert!(why(decide(whole(), &key, Reuse::Own, |_| false)).contains("another experiment"));
        assert_eq!(why(decide(whole(), &key, Reuse::Own, |_| true)), "reused");
        assert!(why(decide(whole(), &key, Reuse::Never, |_| true)).contains("every run loads"));
        let other = of("server: {kind: redis}\nworkload: {ycsb: {records: 7}}\n");
        let message = why(decide(whole(), &other, Reuse::Matching, |_| true));
        assert!(message.contains("records: 100000 there, 7 asked for"), "{message}");
    }
}
