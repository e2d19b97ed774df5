//! The sections before the tests.

use crate::faults;
use crate::markdown::entry::{Component, Entry, PhaseFigures};
use crate::markdown::rows::{
    BexhomaTable, FigureRow, PhasePicker, RowLabels, append_row_table, append_table, combined_row,
    format_two_decimals, pod_rows, table_heads,
};
use crate::markdown::{SummaryDocument, escape_markdown};
use crate::tuning;
use dyno_rundir::schema::Status;
use dyno_types::shell::{again, quoted};
use std::fmt::Write as _;

impl SummaryDocument {
    /// Entries by cell and point.
    fn by_cell(&self) -> Vec<Vec<&Entry>> {
        let mut all: Vec<Vec<&Entry>> = Vec::new();
        for entry in &self.entries {
            match all.iter_mut().find(|group| (group[0].cell, &group[0].point) == (entry.cell, &entry.point))
            {
                Some(group) => group.push(entry),
                None => all.push(vec![entry]),
            }
        }
        all
    }

    pub(super) fn append_workload(&self, out: &mut String) {
        let setting = |key: &str| self.entries.first().and_then(|entry| entry.settings.get(key));
        let records = self.entries.first().and_then(Entry::record_count);
        let sf = records.map_or(String::new(), |records| format!(" SF={}", records / 1e6));
        let (name, kind) = match &self.about {
            Some(about) => (about.name.clone(), "ycsb"),
            None => (format!("{}{sf}", self.name), "dyno"),
        };
        let _ = writeln!(out, "### Workload\n{}", escape_markdown(&name));
        let seconds: f64 = self.entries.iter().map(|entry| entry.seconds).sum();
        let _ = writeln!(
            out,
            "* Type: {kind}\n* Duration: {seconds:.0}s (phases of all runs together)\n* Code: {}",
            escape_markdown(&self.code)
        );
        let _ = writeln!(out, "* This experiment compares run time and resource consumption.");
        let mut bullet = |text: String| {
            let _ = writeln!(out, "  * {}", escape_markdown(&text));
        };
        if let Some(message) = self.ending {
            bullet(message.to_owned());
        }
        let told = self.about.iter().flat_map(|about| &about.bullets);
        told.for_each(|message| bullet(message.clone()));
        if let (Some(records), None) = (records, &self.about) {
            bullet(format!("Number of rows is {records:.0}."));
        }
        for (key, message) in
            [("insertorder", "Ordering of inserts"), ("requestdistribution", "Distribution of requests")]
        {
            let told = self.about.is_some() && key == "insertorder";
            setting(key)
                .filter(|_| !told)
                .into_iter()
                .for_each(|value| bullet(format!("{message} is {value}.")));
        }
        bullet(format!("Experiment uses dyno version {}.", env!("CARGO_PKG_VERSION")));
        let databases: std::collections::BTreeSet<&str> =
            self.entries.iter().map(|e| e.database.as_str()).collect();
        bullet(format!("Databases: {}.", databases.into_iter().collect::<Vec<_>>().join(", ")));
        match self.planned {
            Some(planned) if self.searches => bullet(format!("{} cells, {planned} searches.", self.cells)),
            Some(planned) => bullet(format!("{} cells, {planned} runs planned.", self.cells)),
            None => bullet("Experiment is run once.".into()),
        }
        if !self.command.is_empty() {
            let words = again(&self.command);
            bullet(format!("Command: {}", quoted(&words)));
        }
        bullet(
            "Percentiles are of service times, from histograms merged over threads, workers and runs.".into(),
        );
        for (name, why) in &self.ended_badly {
            bullet(format!("{name}: {why}"));
        }
        for note in self.notes.iter().chain(&self.missing) {
            bullet(format!("Not known: {note}"));
        }
        out.push('\n');
    }

    /// Entries in the order in which bexhoma submits their jobs: by configuration, repetition and round.
    fn by_job(&self) -> Vec<&Entry> {
        let mut all: Vec<&Entry> = self.entries.iter().collect();
        let first =
            |entry: &Entry| self.entries.iter().position(|known| known.configuration == entry.configuration);
        all.sort_by_key(|entry| (first(entry), entry.repetition));
        all
    }

    pub(super) fn append_connections(&self, out: &mut String) {
        out.push_str("### Connections\n");
        for entry in self.by_job() {
            self.append_connection(out, entry);
        }
        out.push('\n');
    }

    /// Appends what bexhoma tells of a connection, then what dyno knows besides.
    fn append_connection(&self, out: &mut String, entry: &Entry) {
        let hosts = &entry.hosts;
        let (name, database) = (escape_markdown(&entry.job_name()), escape_markdown(&entry.database));
        let target = escape_markdown(&entry.target);
        let _ = match &hosts.image {
            Some(image) => writeln!(out, "* {name} uses docker image {}", escape_markdown(image)),
            None => writeln!(out, "* {name} uses {database} at {target}"),
        };
        append_facts(out, 1, &hosts.server);
        // bexhoma's name of the members of a cluster.
        for (at, facts) in hosts.servers.iter().enumerate() {
            let _ = writeln!(out, "  * worker {at}");
            append_facts(out, 2, facts);
        }
        let _ = writeln!(out, "  * eval_parameters\n    * code:{}", escape_markdown(&self.code));
        append_facts(out, 2, &entry.eval_parameters());
        for (title, facts) in &hosts.clients {
            let _ = writeln!(out, "  * {title}");
            append_facts(out, 2, facts);
        }
        let unnamed =
            hosts.image.is_some().then_some([("database", &entry.database), ("target", &entry.target)]);
        append_facts(out, 1, &unnamed.into_iter().flatten().collect::<Vec<_>>());
        append_facts(out, 1, &entry.facts);
        let varied = [("cell", &entry.label), ("point", &entry.point)].into_iter();
        append_facts(out, 1, &varied.filter(|(_, value)| !value.is_empty()).collect::<Vec<_>>());
    }

    pub(super) fn append_workflow(&self, out: &mut String) {
        out.push_str("### Workflow\n\n#### Actual\n\n");
        for entry in &self.entries {
            let point = if entry.point.is_empty() { String::new() } else { format!(", {}", entry.point) };
            let phases: Vec<&str> = [("load", entry.load.is_some()), ("measure", entry.measure.is_some())]
                .iter()
                .filter(|(_, is)| *is)
                .map(|(n, _)| *n)
                .collect();
            let ended = match entry.status {
                Status::Complete => "",
                Status::Interrupted => " (interrupted)",
                Status::Failed | Status::Running => " (failed)",
            };
            let client = entry.client.as_ref().map_or(String::new(), |client| format!(" Client {client}"));
            if self.about.is_some() && entry.measure.is_some() {
                let _ = writeln!(out, "* {}{ended}", escape_markdown(&entry.workflow_line()));
                continue;
            }
            let _ = writeln!(
                out,
                "* DBMS {} - Experiment {}{}{}: {}",
                escape_markdown(&entry.configuration),
                entry.repetition,
                escape_markdown(&client),
                escape_markdown(&point),
                if phases.is_empty() { "nothing was recorded".into() } else { phases.join(", ") } + ended
            );
            if !entry.links.is_empty() {
                let links: Vec<String> = entry
                    .links
                    .iter()
                    .map(|(phase, address)| crate::markdown::render_link(phase, address))
                    .collect();
                let _ = writeln!(out, "  * on the dashboard: {}", links.join(", "));
            }
        }
        if let Some(about) = &self.about {
            out.push_str("\n#### Planned\n\n");
            about.planned.iter().for_each(|line| out.push_str(&format!("* {}\n", escape_markdown(line))));
            out.push('\n');
            return;
        }
        let _ = writeln!(
            out,
            "\n#### Planned\n\n* {} {} in {} cell(s)\n",
            self.planned.unwrap_or(1),
            if self.searches { "search(es)" } else { "run(s)" },
            self.cells
        );
    }

    /// Results of tunings.
    pub(super) fn append_tuning(&self, out: &mut String) {
        if self.tuned.is_empty() {
            return;
        }
        out.push_str("### Tuning\n\n");
        for cell in &self.tuned {
            let _ = writeln!(out, "* {}", escape_markdown(&tuning::cell_headline(cell)));
            for message in tuning::describe_effects(cell) {
                let _ = writeln!(out, "  * {}", escape_markdown(&message));
            }
        }
        for message in tuning::describe_interactions(&self.tuned) {
            let _ = writeln!(out, "* {}", escape_markdown(&message));
        }
        out.push('\n');
    }

    /// Returns which round of its run a load is for, where several rounds load: bexhoma loads once a run, and has no name for it.
    fn round_suffix(&self, entry: &Entry) -> String {
        let is_other = |other: &Entry| {
            let same = other.run_name() == entry.run_name() && other.point == entry.point;
            same && other.load.is_some() && other.client != entry.client
        };
        let client = entry.client.as_ref().filter(|_| self.entries.iter().any(is_other));
        client.map_or(String::new(), |client| format!(" Client {client}"))
    }

    pub(super) fn append_loading(&self, out: &mut String) {
        out.push_str("### Loading\n\n");
        let each = |entry: &Entry| {
            pod_rows(entry, |entry| entry.load.as_ref(), &|child| {
                let connection = format!(
                    "{}-0-1-{child}{}{}",
                    entry.run_name(),
                    entry.at_point(),
                    self.round_suffix(entry)
                );
                vec![
                    ("connection", escape_markdown(&connection)),
                    ("experiment_run", entry.repetition.to_string()),
                ]
            })
        };
        let all: Vec<FigureRow> = self.entries.iter().flat_map(each).collect();
        if all.is_empty() {
            out.push_str(match self.ended_badly.is_empty() {
                true => {
                    "Nothing was loaded: the records were there already, or loading was not asked for.\n\n"
                }
                false => "No load was recorded: see above for what failed.\n\n",
            });
            return;
        }
        out.push_str("#### Per Connection\n\n");
        append_row_table(out, BexhomaTable::LoadingPods, &all);
        out.push_str("#### Per Run\n\n");
        let pick: PhasePicker = |entry| entry.load.as_ref();
        append_row_table(
            out,
            BexhomaTable::LoadingRuns,
            &self.each_and_together(pick, &|entry, run| {
                let name = format!("{}{}{}", entry.run_name(), entry.at_point(), self.round_suffix(entry));
                vec![("DBMS", escape_markdown(&name)), ("experiment_run", run)]
            }),
        );
    }

    pub(super) fn append_execution(&self, out: &mut String) {
        out.push_str("### Execution\n\n");
        let pick: PhasePicker = |entry| entry.measure.as_ref();
        let each = |entry: &Entry| {
            pod_rows(entry, pick, &|child| {
                vec![
                    ("DBMS", escape_markdown(&format!("{}-{child}", entry.job_name()))),
                    ("phase", escape_markdown(&entry.phase_name())),
                    ("job", escape_markdown(&entry.job_name())),
                    ("configuration", escape_markdown(&entry.configuration)),
                    ("experiment_run", entry.repetition.to_string()),
                    ("client", entry.client_round().to_owned()),
                    ("benchmark_run", "1".into()),
                    ("child", child.to_string()),
                ]
            })
        };
        let all: Vec<FigureRow> = self.entries.iter().flat_map(each).collect();
        if all.is_empty() {
            out.push_str("No execution was recorded.\n\n");
            return;
        }
        out.push_str("#### Per Connection\n\n");
        append_row_table(out, BexhomaTable::ExecutionPods, &all);
        out.push_str("#### Per Phase\n\n");
        append_row_table(
            out,
            BexhomaTable::ExecutionPhases,
            &self.each_and_together(pick, &|entry, run| {
                let name = escape_markdown(&entry.phase_name());
                vec![("DBMS", name.clone()), ("phase", name), ("experiment_run", run)]
            }),
        );
    }

    /// A row for each run, its pods together, and one for all repetitions of a cell where there are several.
    fn each_and_together(
        &self,
        pick: PhasePicker,
        of: &dyn Fn(&Entry, String) -> RowLabels,
    ) -> Vec<FigureRow> {
        let each = |entry: &&Entry| combined_row(&[entry], pick, of(entry, entry.repetition.to_string()));
        let rows = |group: &Vec<&Entry>| {
            let mut rows: Vec<FigureRow> = group.iter().filter_map(each).collect();
            if rows.len() > 1 {
                let heads = of(group[0], format!("all {}", rows.len())).into_iter();
                let name = together(group);
                let of = heads.map(|(head, cell)| match head {
                    "experiment_run" => (head, cell),
                    _ => (head, name.clone()),
                });
                rows.extend(combined_row(group, pick, of.collect()));
            }
            rows
        };
        self.by_cell().iter().flat_map(rows).collect()
    }

    /// Only where the experiment asked for some.
    pub(super) fn append_faults(&self, out: &mut String) {
        let rows = |entry: &Entry| {
            let name = escape_markdown(&entry.name());
            let cells = |row: Vec<String>| row.iter().map(|cell| escape_markdown(cell)).collect::<Vec<_>>();
            let rows = entry
                .faults
                .iter()
                .map(|one| [vec![name.clone()], cells(faults::format_fault_row(one))].concat());
            rows.collect::<Vec<_>>()
        };
        let rows: Vec<Vec<String>> = self.entries.iter().flat_map(rows).collect();
        if rows.is_empty() {
            return;
        }
        let _ = writeln!(out, "### Faults\n\n{}\n", faults::MEANING);
        append_table(out, &[table_heads(&["DBMS"]), table_heads(&faults::HEADS)].concat(), &rows);
    }

    pub(super) fn append_monitoring(&self, out: &mut String) {
        out.push_str("### Monitoring\n\n");
        let head = table_heads(&["DBMS", "CPU [CPUs]", "Max CPU", "Max RAM [Gb]", "Max RAM Cached [Gb]"]);
        for (title, of) in self.watched_components() {
            let rows: Vec<Vec<String>> = self
                .entries
                .iter()
                .filter_map(|entry| Some((entry, of(entry)?)))
                .filter(|(_, seen)| **seen != Component::default())
                .map(|(entry, seen)| {
                    vec![
                        escape_markdown(&entry.job_name()),
                        format_two_decimals(seen.cpu_s),
                        format_two_decimals(seen.most),
                        format_two_decimals(seen.resident),
                        format_two_decimals(seen.cached),
                    ]
                })
                .collect();
            let _ = writeln!(out, "### {title}\n");
            match rows.is_empty() {
                true => out.push_str("Not watched.\n\n"),
                false => append_table(out, &head, &rows),
            }
        }
    }

    pub(super) fn append_application(&self, out: &mut String) {
        out.push_str("### Application Metrics\n\n");
        let phases: [(&str, PhasePicker); 2] =
            [("Loading", |entry| entry.load.as_ref()), ("Execution", |entry| entry.measure.as_ref())];
        for (word, of) in phases {
            let found: Vec<(&Entry, &PhaseFigures)> =
                self.entries.iter().filter_map(|entry| Some((entry, of(entry)?))).collect();
            let mut titles: Vec<&str> = Vec::new();
            for (title, _) in found.iter().flat_map(|(_, figures)| &figures.application) {
                if !titles.contains(&title.as_str()) {
                    titles.push(title);
                }
            }
            let _ = writeln!(out, "#### {word} phase: {}\n", self.server_label());
            if titles.is_empty() {
                out.push_str("Not watched.\n\n");
                continue;
            }
            let mut head = table_heads(&["DBMS"]);
            // They may come from a configuration.
            head.extend(titles.iter().map(|title| escape_markdown(title)));
            let value = |figures: &PhaseFigures, title: &str| {
                let found = figures.application.iter().find(|(known, _)| *known == title);
                match found.and_then(|(_, value)| *value) {
                    // Counts are whole.
                    Some(count) if title.ends_with("[count]") && count.fract() == 0.0 => {
                        format!("{count:.0}")
                    }
                    value => format_two_decimals(value),
                }
            };
            let row = |(entry, figures): &(&Entry, &PhaseFigures)| -> Vec<String> {
                let cells = titles.iter().map(|title| value(figures, title));
                std::iter::once(escape_markdown(&entry.job_name())).chain(cells).collect()
            };
            append_table(out, &head, &found.iter().map(row).collect::<Vec<_>>());
        }
    }
}

/// Appends facts as a list; it is indented by two blanks a level.
fn append_facts<K: AsRef<str>, V: AsRef<str>>(out: &mut String, level: usize, facts: &[(K, V)]) {
    let indent = "  ".repeat(level);
    for (key, value) in facts {
        let _ =
            writeln!(out, "{indent}* {}:{}", escape_markdown(key.as_ref()), escape_markdown(value.as_ref()));
    }
}

/// The name of a cell.
fn together(group: &[&Entry]) -> String {
    escape_markdown(&format!("{}{}", group[0].cell_name(), group[0].at_point()))
}
