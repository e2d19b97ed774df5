//! `dyno manual`: completions, manual pages and the reference, made from the command line's own description and the schemas.

mod reference;

use crate::args::command;
use crate::exit::{Exit, Failure};
use crate::options::ManualArgs;
use crate::terminal;
use dyno_rundir::files;
use std::path::Path;

/// The command.
pub fn manual(args: &ManualArgs) -> Result<Exit, Failure> {
    if let Some(shell) = args.completions {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command(), "dyno", &mut text);
        terminal::out(&String::from_utf8_lossy(&text));
        return Ok(Exit::Ok);
    }
    let (folder, option) = match (&args.out, &args.reference) {
        (Some(folder), _) => (folder, "--out"),
        (_, Some(folder)) => (folder, "--reference"),
        _ => return Ok(Exit::Ok),
    };
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::Usage(format!("{option} {}: {e}", folder.display())))?;
    let pages = if args.out.is_some() { write(folder)? } else { write_reference(folder)? };
    terminal::note(&format!("{pages} pages in {}", folder.display()));
    Ok(Exit::Ok)
}

fn save(path: &Path, page: &[u8]) -> Result<(), Failure> {
    files::put(path, page).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))
}

fn write_reference(folder: &Path) -> Result<usize, Failure> {
    let pages = reference::pages();
    pages.iter().try_for_each(|(name, text)| save(&folder.join(name), text.as_bytes()))?;
    Ok(pages.len())
}

fn write(folder: &Path) -> Result<usize, Failure> {
    let mut whole = command();
    whole.build();
    let mut open = vec![(String::from("dyno"), whole)];
    let mut pages = 0;
    while let Some((name, command)) = open.pop() {
        let below = command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help");
        open.extend(below.map(|one| (format!("{name}-{}", one.get_name()), one.clone())));
        let mut page = Vec::new();
        let page_of = clap_mangen::Man::new(command).title(name.to_uppercase());
        page_of.render(&mut page)?;
        save(&folder.join(format!("{name}.1")), &page)?;
        pages += 1;
    }
    Ok(pages)
}
