//! `dyno report`, `dyno schema`: from run directories alone.

use crate::export::{ExportArgs, ExportFormat as Form, export};
use crate::options::{SchemaArgs, SchemaOf};
use crate::price;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::pages::{self, Material};
use dyno_frontend::summary::{exit_of, json_of, style};
use dyno_frontend::terminal;
use dyno_report::html::experiment::experiment_page;
use dyno_report::summary::{SummaryExtras, render_summary};
use dyno_rundir::ExperimentDir;
use std::path::PathBuf;

/// `dyno report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArgs {
    /// The run directory, or an experiment's
    pub dir: PathBuf,
    /// Form of the report
    #[arg(long, value_enum, default_value = "text")]
    pub format: FormatArg,
    /// Print JSON, as --format json does
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Price of an hour of everything that took part, such as server=0.34,client=0.17: adds operations per core-second and per
    /// currency unit
    #[arg(long, value_name = "ROLE=PRICE,...")]
    pub price: Option<String>,
    /// Write to a file instead of printing
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Forms of a report: its own, and those of `dyno export` under the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatArg {
    /// A report.
    Own(Own),
    /// As `dyno export` writes it.
    Export(Form),
}

/// Forms of a report alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Own {
    /// The summary that `dyno run` prints
    Text,
    /// One page that works offline
    Html,
    /// summary.md: the sections, tables and tests of bexhoma's summary
    Md,
    /// summary.json
    Json,
}

impl ValueEnum for FormatArg {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            FormatArg::Own(Own::Text),
            FormatArg::Own(Own::Html),
            FormatArg::Own(Own::Md),
            FormatArg::Own(Own::Json),
            FormatArg::Export(Form::Csv),
            FormatArg::Export(Form::Parquet),
            FormatArg::Export(Form::Xlsx),
            FormatArg::Export(Form::Ycsb),
            FormatArg::Export(Form::Sysbench),
            FormatArg::Export(Form::Pocdriver),
            FormatArg::Export(Form::Wsf),
            FormatArg::Export(Form::Bexhoma),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            FormatArg::Own(own) => own.to_possible_value(),
            FormatArg::Export(form) => form.to_possible_value(),
        }
    }
}

/// `dyno report DIR`.
pub fn report(args: &ReportArgs) -> Result<Exit, Failure> {
    let price = args.price.as_deref().map(price::per_hour).transpose()?;
    let own = match (args.json, args.format) {
        (true, _) => Own::Json,
        (false, FormatArg::Own(own)) => own,
        (false, FormatArg::Export(form)) => {
            priced(args, false)?;
            return export(&ExportArgs::plain(&args.dir, form, args.out.as_deref()));
        }
    };
    if ExperimentDir::is_one(&args.dir) {
        return report_experiment(args, own, price);
    }
    if !args.dir.join("run.json").exists() {
        let message =
            "neither run.json nor experiment.json is in it: name the directory of a run or of an experiment";
        return Err(Failure::usage(format!("{}: {message}", args.dir.display())));
    }
    priced(args, matches!(own, Own::Text | Own::Html))?;
    let run = Material::read(&args.dir)?;
    let Some(summary) = run.summary() else {
        return Err(Failure::internal("a run without a summary"));
    };
    if own == Own::Text {
        run.notes().iter().for_each(|note| terminal::note(note));
    }
    let worth = || price.map_or(String::new(), |price| run.worth(price));
    let findings = run.diagnosis().findings;
    let known = SummaryExtras { findings: Some(&findings), page: None };
    let plain = |colour| format!("{}{}", render_summary(summary, known, style(colour)), worth());
    match (own, args.out.as_deref()) {
        (Own::Text, None) => terminal::styled(plain),
        (Own::Text, place) => pages::put(&plain(false), place)?,
        (Own::Json, place) => pages::put(&json_of(summary)?, place)?,
        (Own::Html, place) => pages::put(&run.html(price), place)?,
        (Own::Md, place) => pages::put(&run.markdown(), place)?,
    }
    // A page that is written is all that was asked for; what the run was worth stands on it.
    Ok(if own == Own::Html { Exit::Ok } else { exit_of(summary) })
}

/// A price that would not be seen is refused.
fn priced(args: &ReportArgs, shown: bool) -> Result<(), Failure> {
    match args.price.is_some() && !shown {
        true => Err(Failure::usage("--price goes with the formats text and html, of experiments also json")),
        false => Ok(()),
    }
}

/// `dyno report` of an experiment's directory.
fn report_experiment(args: &ReportArgs, own: Own, price: Option<f64>) -> Result<Exit, Failure> {
    priced(args, own != Own::Md)?;
    let made = match own {
        Own::Html => experiment_page(
            &ExperimentDir::open(&args.dir)?,
            price,
            &dyno_frontend::highest_rate::searched(&args.dir),
        ),
        Own::Md => dyno_report::markdown::of_experiment(&ExperimentDir::open(&args.dir)?),
        Own::Text | Own::Json => dyno_frontend::experiment::table_of(&args.dir, price, own == Own::Json)?,
    };
    pages::put(&made, args.out.as_deref())?;
    Ok(Exit::Ok)
}

/// `dyno schema`: the published schemas, which `cargo xtask docs` makes of the code.
pub fn schema(args: &SchemaArgs) -> Result<Exit, Failure> {
    terminal::out(match args.of {
        SchemaOf::Summary => include_str!("../../../docs/schema/summary.schema.json"),
        SchemaOf::Experiment => include_str!("../../../docs/schema/experiment.schema.json"),
        SchemaOf::Documents => include_str!("../../../docs/schema/documents.schema.json"),
    });
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_every_form_of_an_export() {
        for form in Form::value_variants() {
            assert!(FormatArg::value_variants().contains(&FormatArg::Export(*form)), "{form:?}");
        }
        for own in Own::value_variants() {
            assert!(FormatArg::value_variants().contains(&FormatArg::Own(*own)), "{own:?}");
        }
    }
}
