//! `dyno manual`: completions and manual pages, made from the command line's own description.

use crate::args::Cli;
use crate::exit::{Exit, Failure};
use crate::terminal;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::path::{Path, PathBuf};

/// `dyno manual`.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
#[command(after_help = "\
Completions: dyno manual --completions bash > ~/.local/share/bash-completion/completions/dyno. Pages: dyno manual --out DIR, \
then man -l DIR/dyno.1.")]
pub struct ManualArgs {
    /// Print the completions of this shell
    #[arg(long, value_name = "SHELL")]
    pub completions: Option<Shell>,
    /// Write a manual page for each command into this folder
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// The command.
pub fn manual(args: &ManualArgs) -> Result<Exit, Failure> {
    if let Some(shell) = args.completions {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "dyno", &mut text);
        terminal::out(&String::from_utf8_lossy(&text));
        return Ok(Exit::Ok);
    }
    let Some(folder) = &args.out else { return Ok(Exit::Ok) };
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::Usage(format!("--out {}: {e}", folder.display())))?;
    let pages = write(folder)?;
    terminal::note(&format!("{pages} pages in {}", folder.display()));
    Ok(Exit::Ok)
}

fn write(folder: &Path) -> Result<usize, Failure> {
    let mut whole = Cli::command();
    whole.build();
    let mut open = vec![(String::from("dyno"), whole)];
    let mut pages = 0;
    while let Some((name, command)) = open.pop() {
        let below = command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help");
        open.extend(below.map(|one| (format!("{name}-{}", one.get_name()), one.clone())));
        let mut page = Vec::new();
        let page_of = clap_mangen::Man::new(command).title(name.to_uppercase());
        let path = folder.join(format!("{name}.1"));
        page_of.render(&mut page)?;
        std::fs::write(&path, page).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))?;
        pages += 1;
    }
    Ok(pages)
}
