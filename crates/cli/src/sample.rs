//! `dyno sample FILE.yaml`: documents or commands of a workload of one's own, before anything is sent.

use crate::json;
use crate::options::SampleArgs;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_types::bounded;
use dyno_types::limits::{IMPORT_BYTES, TEXT_BYTES};
use dyno_workload::command_mix::MixContent;
use dyno_workload::template::TemplateContent;
use std::path::Path;
use std::sync::Arc;

/// Documents whose mean size is told.
const MEASURED: u64 = 1_000;

/// The command.
pub fn sample(args: &SampleArgs) -> Result<Exit, Failure> {
    let text = bounded::text_file(&args.file, TEXT_BYTES)
        .map_err(|e| Failure::usage(format!("{}: {e}", args.file)))?;
    if dyno_config::template::has_commands(&text) {
        return show_commands(args, &text);
    }
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

/// Bytes of an argument that are shown.
const SHOWN: usize = 200;

/// Prints the first commands of each operation and of the load, quoted as `redis-cli` reads them.
fn show_commands(args: &SampleArgs, text: &str) -> Result<Exit, Failure> {
    let folder = Path::new(&args.file).parent().unwrap_or(Path::new(""));
    let read = |name: &str| Ok(bounded::bytes_file(folder.join(name), IMPORT_BYTES)?);
    let mix = Arc::new(dyno_config::template::parse_commands(text, &args.file, &read)?);
    let content = MixContent::new(&mix, &[]);
    let operations: usize = mix.operations.iter().map(|operation| operation.steps.len()).sum();
    // The load comes first, as it does in a run.
    let all = (operations..mix.steps().count()).chain(0..operations);
    let mut owner = "";
    for number in all {
        if mix.owner(number) != owner {
            owner = mix.owner(number);
            terminal::out(&format!("# {owner}\n"));
        }
        for shown in 0..u64::from(args.documents) {
            let (request, command) = content.sample_request(number, shown);
            let words: Vec<String> =
                content.words_of(&request, command).iter().map(|word| quoted(word)).collect();
            terminal::out(&format!("{}\n", words.join(" ")));
        }
    }
    Ok(Exit::Ok)
}

/// A word as `redis-cli` reads it; a long one is cut, with its length.
fn quoted(word: &[u8]) -> String {
    let shown = &word[..word.len().min(SHOWN)];
    let plain = |c: &u8| c.is_ascii_graphic() && !matches!(c, b'"' | b'\'' | b'\\');
    let mut out = match !shown.is_empty() && shown.iter().all(plain) {
        true => String::from_utf8_lossy(shown).into_owned(),
        false => {
            let byte = |c: &u8| match c {
                b'"' | b'\\' => format!("\\{}", char::from(*c)),
                b'\n' => "\\n".into(),
                0x20..=0x7e => char::from(*c).to_string(),
                c => format!("\\x{c:02x}"),
            };
            format!("\"{}\"", shown.iter().map(byte).collect::<String>())
        }
    };
    if word.len() > SHOWN {
        out.push_str(&format!("... ({} bytes)", word.len()));
    }
    out
}
