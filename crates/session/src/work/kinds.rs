//! Chooses the kind of workload that an experiment asks for.

use crate::work::commands::CommandWork;
use crate::work::data_set::LoadedWork;
use crate::work::documents::TemplateWork;
use crate::work::recording::RecordedWork;
use crate::work::ycsb::YcsbRecords;
use crate::work::{Wording, Work};
use dyno_config::experiment::Experiment;
use dyno_types::{RefusalCode, Refused};

/// Reads the work of an experiment file. What `workload.sysbench` and `workload.pocdriver` say is read by their drop-ins.
///
/// # Errors
/// Names the key whose value cannot be used.
pub fn read(spec: &Experiment) -> Result<Box<dyn Work>, Refused> {
    read_as(spec, &Wording::FILE)
}

/// Reads the work of an experiment that was described with these words.
///
/// # Errors
/// As [`read`].
pub fn read_as(spec: &Experiment, wording: &Wording<'_>) -> Result<Box<dyn Work>, Refused> {
    let workload = &spec.workload;
    if let Some(file) = &spec.phases.load.from {
        let work = read_as(&LoadedWork::without_load(spec), wording)?;
        return Ok(Box::new(LoadedWork::read(spec, file, wording, work)?));
    }
    if let Some(path) = &workload.documents {
        return Ok(Box::new(TemplateWork::read(spec, path, wording)?));
    }
    if let Some(source) = &workload.commands {
        return Ok(Box::new(CommandWork::read(spec, source, wording)?));
    }
    if let Some(source) = &workload.recording {
        return Ok(Box::new(RecordedWork::read(spec, source, wording)?));
    }
    let elsewhere = [("sysbench", workload.sysbench.is_some()), ("pocdriver", workload.pocdriver.is_some())];
    if let Some((key, _)) = elsewhere.iter().find(|(_, asked)| *asked) {
        return Err(Refused::new(
            RefusalCode::NotBuilt,
            format!("workload.{key}"),
            format!("workload.{key}: this program is built without it"),
        ));
    }
    Ok(Box::new(YcsbRecords::read(spec, wording)?))
}
