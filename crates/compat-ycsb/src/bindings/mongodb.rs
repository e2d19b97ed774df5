//! The properties of YCSB's MongoDB bindings.
//!
//! `mongodb.url` describes the target. The older properties beside it are honoured too (YCSB's own default URL makes its
//! write concern have no effect); where the URL says the same thing it wins, with a note.

use crate::bindings::target::BindingTarget;
use crate::property::DescribedProperty;
use dyno_config::client::duration_ns;
use dyno_config::settings::{BadSetting, PropertySettings};
use dyno_db_mongodb::protocol::{MongoOptions, ReadPreference, WriteConcern};
use dyno_types::secret::mask_value;
use dyno_workload::ycsb::properties::PropertyReader;

const URL: &str = "mongodb://[user:password@]host:port/[database][?options]";

/// Name, default, what it does.
const ROWS: [(&str, &str, &str); 9] = [
    (
        "mongodb.url",
        "mongodb://localhost:27017/ycsb?w=1",
        "the target; a password is safer in $DYNO_MONGODB_URL",
    ),
    ("mongodb.batchsize", "1", "inserts that go out as one batch while loading; another name of batchsize"),
    ("mongodb.upsert", "false", "inserts replace a record that is there"),
    (
        "mongodb.writeConcern",
        "",
        "acknowledged, journaled, replica_acknowledged or majority, where mongodb.url has no w and no journal",
    ),
    (
        "mongodb.readPreference",
        "",
        "primary, primary_preferred, secondary, secondary_preferred or nearest, where mongodb.url has none",
    ),
    ("mongodb.maxconnections", "", "accepted: there is a connection for each thread"),
    (
        "mongodb.threadsAllowedToBlockForConnectionMultiplier",
        "",
        "accepted: no thread waits for a connection",
    ),
    ("mongodb.database", "", "database, where mongodb.url names none"),
    (
        "dyno.client",
        "wire",
        "wire (dyno's own codec) or official (the official driver, where this build has it)",
    ),
];

/// The properties for help.
pub(super) fn properties() -> impl Iterator<Item = DescribedProperty> {
    // The client reads mongodb.batchsize.
    ROWS.iter().map(|&(name, default, about)| DescribedProperty {
        group: "mongodb",
        name: name.into(),
        default,
        doc: about.into(),
    })
}

/// Returns whether the official driver is asked for.
pub(super) fn wants_official(settings: &PropertySettings) -> Result<bool, BadSetting> {
    match settings.text_of("dyno.client").map_or("wire", str::trim) {
        "wire" => Ok(false),
        "official" => Ok(true),
        _ => Err(settings.refuse_value("dyno.client", "wire or official")),
    }
}

/// The options that a URI sets, in lower case.
fn uri_options(uri: &str) -> Vec<String> {
    let query = uri.split_once('?').map_or("", |(_, query)| query);
    query.split('&').filter_map(|pair| Some(pair.split_once('=')?.0.to_ascii_lowercase())).collect()
}

/// The URI with one more option.
fn with_option(uri: &str, name: &str, value: &str) -> String {
    let place = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    let mark = match (uri.contains('?'), place.contains('/')) {
        (true, _) => "&",
        (false, true) => "?",
        (false, false) => "/?",
    };
    format!("{uri}{mark}{name}={value}")
}

/// Reads the target of the official driver, which reads the URI by itself: what properties say becomes options of it.
fn official(settings: &PropertySettings, notes: &mut Vec<String>) -> Result<BindingTarget, BadSetting> {
    let own = settings.text_of("mongodb.url").map(str::trim);
    let mut uri = own.unwrap_or("mongodb://localhost:27017/ycsb").to_owned();
    let set = uri_options(&uri);
    let sets = |names: &[&str]| set.iter().any(|option| names.contains(&option.as_str()));
    match (named_concern(settings)?, sets(&["w", "j", "journal"])) {
        (Some((name, _)), true) => {
            notes
                .push(format!("mongodb.url sets a write concern: mongodb.writeConcern={name} has no effect"));
        }
        (Some((_, concern)), false) => {
            if let Some(w) = &concern.w {
                uri = with_option(&uri, "w", w);
            }
            if let Some(journal) = concern.journal {
                uri = with_option(&uri, "journal", &journal.to_string());
            }
        }
        (None, false) if own.is_none() => uri = with_option(&uri, "w", "1"),
        (None, _) => {}
    }
    if let (Some(mode), false) = (named_preference(settings)?, sets(&["readpreference"])) {
        uri = with_option(&uri, "readPreference", mode.name());
    }
    let place = uri.split_once("://").map_or("", |(_, rest)| rest);
    let place = place.split('?').next().unwrap_or_default();
    let named =
        place.rsplit_once('@').map_or(place, |(_, hosts)| hosts).split_once('/').map_or("", |(_, d)| d);
    let database = settings.text_of("mongodb.database").filter(|name| !name.is_empty());
    let database = match database.unwrap_or(named) {
        "admin" => Some("ycsb".to_owned()),
        _ => database.map(str::to_owned),
    };
    let upsert = PropertyReader::new(&mut settings.property_lookup())
        .read_flag("mongodb.upsert", false)
        .map_err(|bad| settings.blame_source(bad))?;
    let ns = duration_ns(settings, "dyno.timeout")?;
    Ok(BindingTarget::Official { uri, database, upsert, timeout_ns: (ns > 0).then_some(ns) })
}

/// Reads the target.
pub(super) fn target(
    settings: &PropertySettings,
    notes: &mut Vec<String>,
) -> Result<BindingTarget, BadSetting> {
    if wants_official(settings)? {
        return official(settings, notes);
    }
    let uri = settings.text_of("mongodb.url").map_or("mongodb://localhost:27017/ycsb?w=1", str::trim);
    let mut options = MongoOptions::from_uri(uri).map_err(|refused| {
        // The refusal may quote the URI: ask again without the password.
        let why = match MongoOptions::from_uri(&mask_value("mongodb.url", uri)) {
            Err(masked) => masked.to_string(),
            Ok(_) => refused.to_string(),
        };
        settings.refuse_value("mongodb.url", format!("{URL}; {why}"))
    })?;
    if let Some(database) = settings.text_of("mongodb.database").filter(|name| !name.is_empty()) {
        options.database = database.to_owned();
    }
    if options.database == "admin" {
        options.database = "ycsb".into();
    }
    let own_url = settings.text_of("mongodb.url").is_some();
    take_write_concern(&mut options, settings, own_url, notes)?;
    take_read_preference(&mut options, settings)?;
    options.upsert = PropertyReader::new(&mut settings.property_lookup())
        .read_flag("mongodb.upsert", false)
        .map_err(|bad| settings.blame_source(bad))?;
    options.check().map_err(|refused| settings.refuse_value("mongodb.url", refused.to_string()))?;
    if !options.unused.is_empty() {
        notes.push(format!("mongodb.url: {} has no effect here", options.unused.join(", ")));
    }
    let ns = duration_ns(settings, "dyno.timeout")?;
    Ok(BindingTarget::Mongo { options: Box::new(options), timeout_ns: (ns > 0).then_some(ns) })
}

fn take_write_concern(
    options: &mut MongoOptions,
    settings: &PropertySettings,
    own_url: bool,
    notes: &mut Vec<String>,
) -> Result<(), BadSetting> {
    let Some((name, concern)) = named_concern(settings)? else { return Ok(()) };
    if own_url && !options.write_concern.is_default() && options.write_concern != concern {
        notes.push(format!("mongodb.url sets a write concern: mongodb.writeConcern={name} has no effect"));
    } else {
        options.write_concern = concern;
    }
    Ok(())
}

/// `mongodb.writeConcern`: its name and what it means.
fn named_concern(settings: &PropertySettings) -> Result<Option<(&str, WriteConcern)>, BadSetting> {
    let Some(name) = settings.text_of("mongodb.writeConcern").map(str::trim).filter(|n| !n.is_empty()) else {
        return Ok(None);
    };
    let of = |w: &str, journal| WriteConcern { w: Some(w.into()), journal, timeout_ms: None };
    let concern = match name {
        "acknowledged" => of("1", None),
        "journaled" => WriteConcern { journal: Some(true), ..WriteConcern::default() },
        "replica_acknowledged" => of("2", None),
        "majority" => of("majority", None),
        "errors_ignored" | "unacknowledged" => {
            let expected = "acknowledged, journaled, replica_acknowledged or majority: unacknowledged writes have no \
                            reply that could be measured";
            return Err(settings.refuse_value("mongodb.writeConcern", expected));
        }
        _ => {
            let expected = "acknowledged, journaled, replica_acknowledged or majority";
            return Err(settings.refuse_value("mongodb.writeConcern", expected));
        }
    };
    Ok(Some((name, concern)))
}

fn take_read_preference(options: &mut MongoOptions, settings: &PropertySettings) -> Result<(), BadSetting> {
    let Some(mode) = named_preference(settings)? else { return Ok(()) };
    if options.read_preference == ReadPreference::Primary {
        options.read_preference = mode;
    }
    Ok(())
}

/// `mongodb.readPreference`.
fn named_preference(settings: &PropertySettings) -> Result<Option<ReadPreference>, BadSetting> {
    let Some(name) = settings.text_of("mongodb.readPreference").map(str::trim).filter(|n| !n.is_empty())
    else {
        return Ok(None);
    };
    let mode = match name {
        "primary" => ReadPreference::Primary,
        "primary_preferred" => ReadPreference::PrimaryPreferred,
        "secondary" => ReadPreference::Secondary,
        "secondary_preferred" => ReadPreference::SecondaryPreferred,
        "nearest" => ReadPreference::Nearest,
        _ => {
            let expected = "primary, primary_preferred, secondary, secondary_preferred or nearest";
            return Err(settings.refuse_value("mongodb.readPreference", expected));
        }
    };
    Ok(Some(mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_config::settings::Source;

    fn resolved(pairs: &[(&str, &str)]) -> Result<(MongoOptions, Vec<String>), BadSetting> {
        let mut settings = PropertySettings::new();
        for (key, value) in pairs {
            settings.set_property(key, *value, Source::CommandLine);
        }
        let mut notes = Vec::new();
        match target(&settings, &mut notes)? {
            BindingTarget::Mongo { options, .. } => Ok((*options, notes)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_default_is_ycsbs_but_the_write_concern_counts() {
        let (options, _) = resolved(&[]).unwrap();
        assert_eq!(options.database, "ycsb");
        assert_eq!(options.write_concern.w.as_deref(), Some("1"));
        let (options, notes) = resolved(&[("mongodb.writeConcern", "majority")]).unwrap();
        assert_eq!((options.write_concern.w.as_deref(), notes.len()), (Some("majority"), 0));
        let both = [("mongodb.url", "mongodb://h/?w=2"), ("mongodb.writeConcern", "journaled")];
        let (options, notes) = resolved(&both).unwrap();
        assert_eq!((options.write_concern.w.as_deref(), notes.len()), (Some("2"), 1));
    }

    #[test]
    fn the_official_driver_gets_a_uri() {
        let resolve = |pairs: &[(&str, &str)]| {
            let mut settings = PropertySettings::new();
            settings.set_property("dyno.client", "official", Source::CommandLine);
            for (key, value) in pairs {
                settings.set_property(key, *value, Source::CommandLine);
            }
            let mut notes = Vec::new();
            match target(&settings, &mut notes).unwrap() {
                BindingTarget::Official { uri, database, .. } => (uri, database, notes.len()),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(resolve(&[]), ("mongodb://localhost:27017/ycsb?w=1".into(), None, 0));
        let all = [
            ("mongodb.url", "mongodb+srv://u:p@h"),
            ("mongodb.writeConcern", "journaled"),
            ("mongodb.readPreference", "nearest"),
            ("mongodb.database", "d"),
        ];
        let uri = "mongodb+srv://u:p@h/?journal=true&readPreference=nearest";
        assert_eq!(resolve(&all), (uri.into(), Some("d".into()), 0));
        let both = [("mongodb.url", "mongodb://h/admin?w=2"), ("mongodb.writeConcern", "majority")];
        assert_eq!(resolve(&both), ("mongodb://h/admin?w=2".into(), Some("ycsb".into()), 1));
    }

    #[test]
    fn refusals_name_the_property_and_hide_the_password() {
        let text = |key: &str, value: &str| resolved(&[(key, value)]).unwrap_err().to_string();
        assert!(text("mongodb.writeConcern", "unacknowledged").contains("journaled"));
        assert!(text("mongodb.readPreference", "best").contains("nearest"));
        assert!(text("dyno.client", "java").contains("wire or official"));
        let bad = text("mongodb.url", "mongodb://u:secret@h/?colour=red");
        assert!(bad.contains("mongodb.url") && !bad.contains("secret"), "{bad}");
    }
}
