//! Presets: experiments of the systems that dyno replaces, as files that can be printed, changed and run.
//!
//! A preset is text in the format of experiment files; some are made for a scale, the divisor of data, cache and limits.

pub mod ingest;
pub mod percona;

use dyno_compat_wsf::plan::best_known_configs::{self, BestKnown};

/// An experiment that comes along.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// What `dyno run` and `dyno presets` call it.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Divisors that it can be scaled by, the first being the default; none if it cannot.
    pub scales: &'static [u32],
    make: fn(u32) -> String,
}

const LAB: &str = include_str!("lab.yaml");

/// A commented experiment to begin with.
pub const INIT: &str = include_str!("init.yaml");

/// All presets.
pub const PRESETS: [Preset; 22] = [
    example("quick/users", "throughput and latency against users; two minutes on a Redis of its own", |_| {
        include_str!("quick/users.yaml").into()
    }),
    example("quick/rate", "the highest rate with p99 of reads below 5 ms; a minute or two", |_| {
        include_str!("quick/rate.yaml").into()
    }),
    example("quick/engines", "SQLite, redb and fjall side by side; a minute, without a server", |_| {
        include_str!("quick/engines.yaml").into()
    }),
    example("quick/persistence", "what Redis' log costs: none, each second, each write; a minute", |_| {
        include_str!("quick/persistence.yaml").into()
    }),
    example("bexhoma/dragonfly-1", "bexhoma's Dragonfly on Kubernetes: single", |_| {
        include_str!("bexhoma-dragonfly-1.yaml").into()
    }),
    example("bexhoma/dragonfly-2", "bexhoma's Dragonfly on Kubernetes: a cluster of three", |_| {
        include_str!("bexhoma-dragonfly-2.yaml").into()
    }),
    example("bexhoma/dragonfly-3", "bexhoma's Dragonfly on Kubernetes: one primary with two copies", |_| {
        include_str!("bexhoma-dragonfly-3.yaml").into()
    }),
    example("bexhoma/dragonfly-4", "bexhoma's Dragonfly on Kubernetes: single, on a volume, twice", |_| {
        include_str!("bexhoma-dragonfly-4.yaml").into()
    }),
    example(
        "bexhoma/dragonfly-5",
        "bexhoma's Dragonfly on Kubernetes: a cluster of three, on volumes, twice",
        |_| include_str!("bexhoma-dragonfly-5.yaml").into(),
    ),
    Preset {
        name: "ingest/small",
        about: "proof of ingest rate: 1 KB documents, 3 indexes, 20,000 documents/s claimed",
        scales: &[],
        make: |_| ingest::text(&ingest::SMALL),
    },
    Preset {
        name: "ingest/medium",
        about: "proof of ingest rate: 10 KB documents, 6 indexes, 3,500 documents/s claimed",
        scales: &[],
        make: |_| ingest::text(&ingest::MEDIUM),
    },
    Preset {
        name: "ingest/large",
        about: "proof of ingest rate: 50 KB documents, 8 indexes, 460 documents/s claimed",
        scales: &[],
        make: |_| ingest::text(&ingest::LARGE),
    },
    Preset {
        name: "lab/operational-laws",
        about: "the performance lab: X_max, targets 100-5000, users 1-100, one-hour run, on the server's own disk",
        scales: &[],
        make: |_| LAB.into(),
    },
    Preset {
        name: "lab/operational-laws-xfs",
        about: "the same with data on an XFS image",
        scales: &[],
        make: |_| format!("{LAB}  data: {{image: {{filesystem: xfs, size: 10GB}}}}\n"),
    },
    Preset {
        name: "lab/operational-laws-ext4",
        about: "the same with data on an EXT4 image",
        scales: &[],
        make: |_| format!("{LAB}  data: {{image: {{filesystem: ext4, size: 10GB}}}}\n"),
    },
    Preset {
        name: "lab/operational-laws-raid0",
        about: "the same with data on XFS striped over four images (RAID-0)",
        scales: &[],
        make: |_| format!("{LAB}  data: {{image: {{filesystem: xfs, size: 10GB, members: 4}}}}\n"),
    },
    Preset {
        name: "percona/storage-engines",
        about: "Percona's matrix: mongod's engines x memory, sysbench-mongodb (needs binaries of those engines)",
        scales: &percona::SCALES,
        make: percona::storage_engines,
    },
    Preset {
        name: "percona/engines-embedded",
        about: "the same transaction, matrix and limits on embedded engines; runs anywhere",
        scales: &percona::SCALES,
        make: percona::engines_embedded,
    },
    example(
        "wsf/bkm-icx",
        "WSF 90read10update: 16 pairs, servers bound by port, two-socket Ice Lake",
        |_| best_known("icx"),
    ),
    example("wsf/bkm-spr", "WSF 90read10update: 16 pairs, servers on one node, Sapphire Rapids", |_| {
        best_known("spr")
    }),
    example("wsf/bkm-m6i.32xlarge", "WSF 90read10update: 16 pairs, servers bound by port", |_| {
        best_known("m6i.32xlarge")
    }),
    example("wsf/bkm-m6i.16xlarge", "WSF 90read10update: 8 pairs, servers on one node", |_| {
        best_known("m6i.16xlarge")
    }),
];

/// A preset without scales.
const fn example(name: &'static str, about: &'static str, make: fn(u32) -> String) -> Preset {
    Preset { name, about, scales: &[], make }
}

/// Text; the presets' test reads all of them.
fn best_known(name: &str) -> String {
    match best_known_configs::best_known(name).map(BestKnown::experiment) {
        Some(Ok(text)) => text,
        Some(Err(error)) => error.to_string(),
        None => format!("# no configuration {name}\n"),
    }
}

/// Finds a preset by its name.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// A preset is not made for a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScaleError {
    /// It is not made for any.
    #[error("{preset} has no scale")]
    NoScale {
        /// Name of the preset.
        preset: &'static str,
    },
    /// It is made for others.
    #[error("--scale {scale}: {preset} is made for {}", .known.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))]
    Unknown {
        /// Name of the preset.
        preset: &'static str,
        /// The scale asked for.
        scale: u32,
        /// The scales it is made for.
        known: &'static [u32],
    },
}

impl Preset {
    /// Text at a scale; `None` is its default.
    pub fn text(&self, scale: Option<u32>) -> Result<String, ScaleError> {
        match (self.scales.first(), scale) {
            (Some(first), None) => Ok((self.make)(*first)),
            (None, None) => Ok((self.make)(1)),
            (_, Some(scale)) if self.scales.contains(&scale) => Ok((self.make)(scale)),
            (None, Some(_)) => Err(ScaleError::NoScale { preset: self.name }),
            (Some(_), Some(scale)) => {
                Err(ScaleError::Unknown { preset: self.name, scale, known: self.scales })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_config::experiment::read_plan;

    #[test]
    fn every_preset_is_a_plan_at_every_scale() {
        for preset in &PRESETS {
            let scales = preset.scales.iter().map(|scale| Some(*scale)).chain([None]);
            for scale in scales {
                let text = preset.text(scale).unwrap();
                let plan = read_plan(&text, preset.name, &[])
                    .unwrap_or_else(|e| panic!("{}: {e}\n{text}", preset.name));
                assert!(plan.base.description.is_some(), "{}", preset.name);
                // A server of the user's takes the place of the preset's.
                let own = ["target=redis://db.example:6379".to_owned()];
                let plan =
                    read_plan(&text, preset.name, &own).unwrap_or_else(|e| panic!("{}: {e}", preset.name));
                assert!(plan.cells.iter().all(|cell| cell.spec.server.is_none()), "{}", preset.name);
            }
        }
    }

    #[test]
    fn the_first_experiment_is_a_plan() {
        let plan = read_plan(INIT, "experiment", &[]).unwrap();
        assert_eq!((plan.cells.len(), plan.base.repetitions), (4, 3));
    }

    #[test]
    fn the_lab_is_the_labs() {
        let plan = read_plan(&find("lab/operational-laws").unwrap().text(None).unwrap(), "lab", &[]).unwrap();
        assert_eq!(plan.cells.len(), 20);
        let label = |n: usize| plan.cells[n].levels[0].1.as_str();
        assert_eq!(
            (label(0), label(8), label(18), label(19)),
            ("x-max", "target-5000", "users-100", "long-run")
        );
        let measure = |n: usize| &plan.cells[n].spec.phases.measure;
        assert_eq!(measure(8).rate.as_deref(), Some("5000"));
        assert_eq!((measure(8).connections, measure(18).users), (Some(16), Some(100)));
        assert_eq!(measure(19).duration.as_ref().unwrap().to_string(), "1h");
        let short = dyno_config::experiment::read_plan(LAB, "lab", &["duration=1m".into()]).unwrap();
        assert_eq!(short.cells[19].spec.phases.measure.duration.as_ref().unwrap().to_string(), "1m");
    }

    #[test]
    fn perconas_matrix_has_nine_cells_of_constant_ratio() {
        let preset = find("percona/storage-engines").unwrap();
        for scale in [1u64, 8, 16, 32, 512] {
            let plan = read_plan(&preset.text(Some(scale as u32)).unwrap(), "percona", &[]).unwrap();
            // rocksdb's cache has whole GiB.
            assert_eq!(plan.cells.len(), if scale <= 8 { 9 } else { 6 });
            let server = |n: usize| plan.cells[n].spec.server.as_ref().unwrap();
            let cache = |n: usize| server(n).cache.as_ref().map(|cache| cache.0 * scale);
            // At the smallest scale the process itself has a share that does not shrink.
            let own = if scale == 512 { 128 << 20 } else { 0 };
            let memory = |n: usize| (server(n).limits.memory.as_ref().unwrap().0 - own) * scale;
            let gib = |n: u64| n << 30;
            assert_eq!((0..3).map(memory).collect::<Vec<_>>(), [16, 32, 48].map(gib));
            let caches: Vec<u64> = (0..plan.cells.len()).filter_map(cache).collect();
            assert_eq!(caches, [8, 16, 32].map(gib).repeat(plan.cells.len() / 3 - 1));
            assert_eq!(
                (server(0).engine.as_deref(), cache(0), &server(0).journal_compressor),
                (Some("mmapv1"), None, &None)
            );
            let sysbench = plan.cells[0].spec.workload.sysbench.as_ref().unwrap();
            let number = |key: &str| sysbench[key].parse::<u64>().unwrap();
            let documents = number("NUM_COLLECTIONS") * number("NUM_DOCUMENTS_PER_COLLECTION");
            assert_eq!(documents * scale, 640_000_000, "the data shrink as the memory does");
        }
        assert!(preset.text(Some(7)).unwrap_err().to_string().contains("is made for 16, 1, 8, 32, 512"));
        assert!(find("ingest/small").unwrap().text(Some(16)).is_err());
    }
}
