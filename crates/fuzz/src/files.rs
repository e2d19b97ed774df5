//! What comes from files that people wrote or other tools left.

use dyno_config::inventory::Inventory;
use dyno_config::{properties as java, template as documents};
use dyno_exchange::import::{BadFile, Found, ImportDetails, Input, assemble, csv, pocdriver, sysbench, ycsb};
use dyno_record::Scale;
use dyno_rundir::hlog as hdr;

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// A Java properties file.
pub fn properties(data: &[u8]) {
    let _ = java::parse(data);
}

/// An experiment file, to its plan.
pub fn experiment(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = dyno_config::experiment::read_plan(text, "x.yaml", &[]);
    dyno_types::secret::forget();
}

/// A workload of documents.
pub fn template(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = documents::parse(text, "x.yaml");
}

/// A recording, and what recordings are made of.
pub fn recording(data: &[u8]) {
    use dyno_recording::sources::dump::{Namespace, archive::record_archive, json_lines::record_json_lines};
    use dyno_recording::sources::mongodb::{record_mongod_log, record_profile};
    use dyno_recording::sources::{NewRecording, aof::record_aof, monitor::record_monitor, rdb::record_rdb};
    use dyno_recording::sources::{cache_trace::record_cache_trace, command_log::record_command_log};
    use dyno_recording::sources::{playback::record_playback, traffic_log::record_traffic_logs};
    use dyno_recording::{Entry, RecordingReader, RecordingWriter};
    if let Ok(mut reader) = RecordingReader::new(data) {
        let mut entry = Entry::default();
        while let Ok(Some(_)) = reader.next_event(&mut entry) {}
    }
    let mut new = NewRecording::new(64, |header| RecordingWriter::new(Vec::new(), header));
    let _ = record_monitor(&mut &data[..], &mut new);
    let _ = record_aof(&mut &data[..], &mut new);
    let _ = record_rdb(&mut &data[..], &mut new);
    let _ = record_playback(&mut &data[..], &mut new);
    let _ = record_traffic_logs(vec![Box::new(data)], &mut new);
    let _ = record_command_log(&mut &data[..], &mut new);
    let _ = record_cache_trace(&mut &data[..], &mut new);
    let _ = record_archive(&mut &data[..], &mut new);
    let of = Namespace { database: "d".into(), collection: "c".into() };
    let _ = record_json_lines(&mut &data[..], &of, &mut new);
    let _ = record_profile(&mut &data[..], &mut new);
    let _ = record_mongod_log(&mut &data[..], &mut new);
}

/// Hosts, in the INI or the YAML form: the first byte chooses.
pub fn inventory(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let Some(text) = text(rest) else { return };
    let path = if first % 2 == 0 { "hosts.ini" } else { "hosts.yaml" };
    if let Ok(inventory) = Inventory::parse(text, path) {
        // Thousands of hosts of one range are all alike.
        let names = inventory.all_names();
        if names.len() <= 200 {
            names.into_iter().take(10).chain(["all"]).for_each(|name| drop(inventory.select_hosts(name)));
        }
    }
}

/// bexhoma's cluster.config.
pub fn cluster_config(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = dyno_compat_bexhoma::plan::config::read_config(text, "cluster.config");
}

/// sysbench-mongodb's CONFIG.
pub fn sysbench_config(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = dyno_compat_sysbench_mongodb::plan::shell::Shell::new(1_800_000_000, |_| None).read(text);
}

/// A histogram log.
pub fn hlog(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let _ = hdr::read(text, Scale::Ns64);
}

fn input(data: &[u8]) -> Option<Input> {
    Some(Input { path: "x".into(), text: text(data)?.to_owned() })
}

/// What was read becomes a run directory's content.
fn assembled(found: Result<Found, BadFile>) {
    let _ = found.map(|found| assemble(found, &ImportDetails::default(), "x", "2026-11-21T04:00:00Z"));
}

/// A log of YCSB.
pub fn import_ycsb(data: &[u8]) {
    let _ = input(data).map(|input| assembled(ycsb::read(&[input], &ImportDetails::default())));
}

/// A log or a table of sysbench-mongodb.
pub fn import_sysbench(data: &[u8]) {
    let _ = input(data).map(|input| assembled(sysbench::read(&input, &ImportDetails::default(), None)));
}

/// A log of POCDriver.
pub fn import_pocdriver(data: &[u8]) {
    let _ = input(data).map(|input| assembled(pocdriver::read(&input, &ImportDetails::default())));
}

/// A table, as a time series and as one of runs.
pub fn import_csv(data: &[u8]) {
    let columns = csv::Columns {
        time: Some("t".into()),
        throughput: "x".into(),
        response_us: Some("r".into()),
        users: Some("n".into()),
        duration_s: Some(60.0),
        ..csv::Columns::default()
    };
    if let Some(input) = input(data) {
        assembled(csv::time_series(&input, &columns));
        let rows = csv::rows(&input, &columns).into_iter().flatten();
        rows.for_each(|(_, found)| assembled(Ok(found)));
    }
}
