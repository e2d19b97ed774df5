//! Loaded data that outlive their run: copied out once they are loaded, copied in by later runs. So whatever a run does to
//! its data, the volume stays as it was loaded.
//!
//! ```text
//! PATH/NAME.volume/data-0, data-1, ...   the data of each process
//! PATH/NAME.volume/record.json           what they are; written last
//! ```

use crate::servers::server::Server;
use crate::servers::volume::{FoundVolume, Loaded, is_still};
use dyno_databases::registry::server;
use dyno_engine::Control;
use dyno_localhost::error::LocalError;
use dyno_localhost::storage;
use dyno_localhost::undo::Undo;
use dyno_rundir::files;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const RECORD: &str = "record.json";
/// The longest that another run may copy.
const COPYING: Duration = Duration::from_secs(3600);

/// The folder of a volume.
pub fn volume_folder(path: &Path, name: &str) -> PathBuf {
    path.join(format!("{name}.volume"))
}

/// Looks into a volume's folder.
pub fn look_into(volume: &Path) -> FoundVolume {
    let record = files::read(&volume.join(RECORD)).ok().and_then(|text| serde_json::from_slice(&text).ok());
    FoundVolume { record, there: volume.exists() }
}

/// Keeps other runs from replacing what is copied, or from copying what is replaced, as long as it lives: a lock on the folder
/// that the volume is in, which leaves no file behind.
fn held(volume: &Path, alone: bool, control: Option<&Control>) -> Result<File, LocalError> {
    let failed = |e: io::Error| LocalError::failed_step(volume.display(), e);
    let folder = File::open(volume.parent().unwrap_or(volume)).map_err(failed)?;
    let begun = Instant::now();
    loop {
        match if alone { folder.try_lock() } else { folder.try_lock_shared() } {
            Ok(()) => return Ok(folder),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        if control.is_some_and(Control::is_stopping) {
            return Err(LocalError::failed_step(volume.display(), "interrupted"));
        }
        if begun.elapsed() > COPYING {
            return Err(LocalError::failed_step(
                volume.display(),
                "another run has been copying for an hour",
            ));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn data(volume: &Path, member: usize) -> PathBuf {
    volume.join(format!("data-{member}"))
}

impl Server {
    /// Keys or documents of all instances.
    pub fn count_records(&self) -> Result<u64, LocalError> {
        server(self.spec.kind)
            .count(&self.spec, &self.members.iter().map(|member| &member.node).collect::<Vec<_>>())
    }

    /// Before the first start: puts a volume's data into the empty folders, if they still are those of the record.
    pub(super) fn take_in(&mut self, volume: &Path, record: &str) -> Result<(), LocalError> {
        let _held = held(volume, false, self.control.as_deref())?;
        if look_into(volume).record.is_none_or(|found| found.id != record) {
            return Err(LocalError::failed_step(volume.display(), "another run has replaced it meanwhile"));
        }
        for (number, member) in self.members.iter().enumerate() {
            let own = &member.node.data;
            fs::remove_dir(own).map_err(|e| LocalError::failed_step(own.display(), e))?;
            storage::copy_folder(&self.machine, &data(volume, number), own, self.control.as_deref())?;
        }
        self.formed = true;
        Ok(())
    }

    /// Keeps a copy of the data with this record, in place of what the volume had. A server that writes to its disk by itself
    /// is stopped for that and started again; others only write everything down.
    pub fn keep_copy(&mut self, volume: &Path, record: &Loaded) -> Result<(), LocalError> {
        let failed = |e: io::Error| LocalError::failed_step(volume.display(), e);
        let still = is_still(&self.spec);
        match still {
            true => server(self.spec.kind)
                .save(&self.spec, &self.members.iter().map(|m| &m.node).collect::<Vec<_>>())?,
            false => {
                self.end_all(true)?;
                self.loads = false;
            }
        }
        let new = volume.with_extension(format!("new-{}", std::process::id()));
        let noted = self.journal.note_action(Undo::Folder { path: new.clone() })?;
        fs::create_dir(&new).map_err(failed)?;
        for (number, member) in self.members.iter().enumerate() {
            storage::copy_folder(
                &self.machine,
                &member.node.data,
                &data(&new, number),
                self.control.as_deref(),
            )?;
        }
        let text = serde_json::to_vec_pretty(record).map_err(|e| failed(e.into()))?;
        fs::write(new.join(RECORD), text).map_err(failed)?;
        {
            let _held = held(volume, true, self.control.as_deref())?;
            remove_volume(volume).and_then(|()| fs::rename(&new, volume)).map_err(failed)?;
        }
        self.journal.forget_note(noted)?;
        if still { Ok(()) } else { self.launch_all() }
    }
}

/// Removes a volume; one that is not there is no error.
pub fn remove_volume(volume: &Path) -> io::Result<()> {
    match fs::remove_dir_all(volume) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
