//! `dyno sample FILE.yaml`: documents of a workload of one's own, before anything is sent.

use crate::json;
use crate::options::SampleArgs;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_types::bounded;
use dyno_types::limits::TEXT_BYTES;
use dyno_workload::template::TemplateContent;

/// Documents whose mean size is told.
const MEASURED: u64 = 1_000;

/// The command.
pub fn sample(args: &SampleArgs) -> Result<Exit, Failure> {
    let text = bounded::text_file(&args.file, TEXT_BYTES)
        .map_err(|e| Failure::usage(format!("{}: {e}", args.file)))?;
    let template = dyno_config::template::parse(&text, &args.file)?;
    let content = TemplateContent::new(&template);
    for (number, collection) in template.collections.iter().enumerate() {
        let mut document = Vec::new();
        terminal::out(&format!("# {}\n", collection.name));
        for shown in 0..u64::from(args.documents) {
            document.clear();
            content.document_of(number, shown, &mut document);
            terminal::out(&format!("{}\n", json::pretty(&document)));
        }
        let measured = collection.count.clamp(1, MEASURED);
        document.clear();
        (0..measured).for_each(|n| content.document_of(number, n, &mut document));
        let mean = document.len() as f64 / measured as f64;
        let all = mean * collection.count as f64 / (1 << 20) as f64;
        let count = collection.count;
        terminal::out(&format!(
            "{count} documents of {mean:.0} bytes each as BSON, {all:.1} MiB together\n\n"
        ));
    }
    Ok(Exit::Ok)
}
