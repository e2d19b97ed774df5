//! The record of what a proof has in a database while it is at work: `dyno stop` finds it in the folder after a crash.

use dyno_databases::registry;
use dyno_db::copies::database::ReplicatedStore;
use dyno_db::copies::plan::IngestPlan;
use dyno_db::copies::records::Records;
use dyno_experiment::directory::{lock, verified_holder};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::experiment;
use dyno_frontend::secret;
use dyno_frontend::terminal;
use dyno_localhost::trusted;
use dyno_types::Refused;
use dyno_types::bounded;
use dyno_types::limits::DOCUMENT_BYTES;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// In a proof's folder while its records are in the database.
const RECORDS: &str = "records.json";

#[derive(Serialize, Deserialize)]
struct LeftoverEntry {
    /// URI without its password.
    target: String,
    records: Records,
}

/// A proof under way. Its entry stays where this is dropped before the records are removed.
pub(super) struct UnderWay {
    folder: PathBuf,
    _lock: File,
}

impl UnderWay {
    /// Makes the folder and its entry.
    pub fn begin(folder: &Path, uri: &str, plan: &IngestPlan) -> Result<Self, Failure> {
        let trouble = |e: std::io::Error| Failure::internal(format!("{}: {e}", folder.display()));
        trusted::make_folder(folder).map_err(trouble)?;
        trusted::check_directory(folder).map_err(|e| Failure::usage(format!("{e}; choose a new folder")))?;
        let held = lock(folder)?;
        let entry = LeftoverEntry { target: secret::without(uri), records: plan.record_recipe() };
        let text = serde_json::to_string_pretty(&entry)?;
        trusted::write(&folder.join(RECORDS), (text + "\n").as_bytes()).map_err(trouble)?;
        Ok(UnderWay { folder: folder.to_owned(), _lock: held })
    }

    /// The records are removed.
    pub fn removed(&self) {
        let _ = fs::remove_file(self.folder.join(RECORDS));
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.folder.join("lock"));
    }
}

/// A database that has copies elsewhere; none where the URI is of another kind.
pub(super) fn database(uri: &str) -> Result<Option<Box<dyn ReplicatedStore>>, Failure> {
    let refused = |why: Refused| Failure::usage(format!("{}: {why}", dyno_types::secret::mask_text(uri)));
    registry::parse(uri)?.copies().transpose().map_err(refused)
}

/// Returns whether a folder is a proof's.
pub fn is_proof(folder: &Path) -> bool {
    [RECORDS, "proof.json"].iter().any(|name| folder.join(name).is_file())
}

/// `dyno stop DIR` of a proof: ends it as Ctrl-C does; after a crash, or with `--keep`, removes its records.
pub fn stop(dir: &Path, password_from: Option<&secret::PasswordFrom>) -> Result<Exit, Failure> {
    let path = dir.join(RECORDS);
    if let Some(pid) = verified_holder(dir)? {
        experiment::end(dir, pid)?;
        terminal::note(&format!("{}: stopped", dir.display()));
    }
    let text = match bounded::text_file(&path, DOCUMENT_BYTES) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            terminal::note(&format!("{}: nothing of the proof is in the database", dir.display()));
            return Ok(Exit::Ok);
        }
        Err(e) => return Err(Failure::usage(format!("{}: {e}", path.display()))),
    };
    let entry: LeftoverEntry =
        serde_json::from_str(&text).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
    // Names are made from it: it must not reach beyond the proof's own.
    let run = &entry.records.run;
    if run.is_empty() || !run.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Failure::usage(format!("{}: run {run:?}: expected letters and digits", path.display())));
    }
    let uri = secret::uri(&entry.target, password_from)?;
    let database = database(&uri)?.ok_or_else(|| {
        Failure::usage(format!("{}: {}: expected redis:// or mongodb://", path.display(), entry.target))
    })?;
    let reached =
        database.primary().map_err(|why| Failure::unreachable(format!("{}: {why}", entry.target)))?;
    database.remove(&entry.records, None)?;
    fs::remove_file(&path).map_err(|e| Failure::internal(format!("{}: {e}", path.display())))?;
    let _ = fs::remove_file(dir.join("lock"));
    terminal::note(&format!("the records of proof {run} are removed from {reached}"));
    Ok(Exit::Ok)
}
