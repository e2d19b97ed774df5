//! Manual pages of the command line's own description.

use std::io;
use std::path::{Path, PathBuf};

/// A page for each command, in `folder`.
///
/// # Errors
/// A page cannot be rendered.
pub fn pages(folder: &Path) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut whole = dyno_cli::command();
    whole.build();
    let mut open = vec![(String::from("dyno"), whole)];
    let mut pages = Vec::new();
    while let Some((name, command)) = open.pop() {
        let below = command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help");
        open.extend(below.map(|one| (format!("{name}-{}", one.get_name()), one.clone())));
        let mut page = Vec::new();
        clap_mangen::Man::new(command).title(name.to_uppercase()).render(&mut page)?;
        pages.push((folder.join(format!("{name}.1")), page));
    }
    Ok(pages)
}
