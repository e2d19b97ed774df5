use crate::experiment::estimate::estimate_duration;
use crate::experiment::*;
use crate::tree::TreeError;

const LADDER: &str = "\
target: redis://127.0.0.1:6379
workload: {ycsb: {workload: b, records: 10k}}
phases: {measure: {duration: 20s, warmup: 5s}}
factors:
  users: {from: 1, to: 8, times: 2}
  memory: [{phases.measure.pipeline: 1, label: small}, {phases.measure.pipeline: 4, phases.load.batch: 8, label: large}]
repetitions: 3
";

fn error(text: &str) -> String {
    read_plan(text, "x.yaml", &[]).unwrap_err().to_string()
}

#[test]
fn cells_are_every_combination() {
    let plan = read_plan(LADDER, "dir/ladder.yaml", &[]).unwrap();
    assert_eq!((plan.name.as_str(), plan.cells.len(), plan.runs.len()), ("ladder", 8, 24));
    let labels: Vec<String> = plan.cells.iter().map(MatrixCell::levels_label).collect();
    assert_eq!(labels[..3], ["users=1 memory=small", "users=1 memory=large", "users=2 memory=small"]);
    let large = &plan.cells[1].spec;
    assert_eq!((large.phases.measure.pipeline, large.phases.load.batch), (4, 8));
    assert_eq!(large.phases.measure.users, Some(1));
    assert_eq!(plan.cells[0].spec.phases.load.batch, 64);
    assert!((estimate_duration(&plan).seconds - 24.0 * 27.0).abs() < 1e-6 && estimate_duration(&plan).loads);
}

#[test]
fn random_blocks_hold_every_cell_once() {
    let runs = read_plan(LADDER, "x.yaml", &[]).unwrap().runs;
    for block in runs.chunks(8) {
        let mut cells: Vec<usize> = block.iter().map(|run| run.cell).collect();
        assert!(block.iter().all(|run| run.repetition == block[0].repetition));
        cells.sort_unstable();
        assert_eq!(cells, (0..8).collect::<Vec<_>>());
    }
    let again = read_plan(LADDER, "x.yaml", &[]).unwrap().runs;
    assert_eq!(runs, again);
    let other = read_plan(LADDER, "x.yaml", &["seed=2".into()]).unwrap().runs;
    assert_ne!(runs, other);
    let file = read_plan(LADDER, "x.yaml", &["order=file".into()]).unwrap().runs;
    assert_eq!(file.iter().map(|run| run.cell).collect::<Vec<_>>()[..9], [0, 1, 2, 3, 4, 5, 6, 7, 0]);
    let sequential = read_plan(LADDER, "x.yaml", &["order=sequential".into()]).unwrap().runs;
    assert_eq!(sequential[..4].iter().map(|run| run.cell).collect::<Vec<_>>(), [0, 0, 0, 1]);
}

#[test]
fn options_replace_values_and_factors() {
    let plan = read_plan(LADDER, "x.yaml", &["users=[3, 5]".into(), "duration=1m".into()]).unwrap();
    assert_eq!(plan.cells.len(), 4);
    assert_eq!(plan.cells[2].levels_label(), "users=5 memory=small");
    assert_eq!(plan.cells[0].spec.phases.measure.duration.as_ref().unwrap().0, 60_000_000_000);
    let tree = &plan.cells[0].tree;
    let leaves = tree.list_leaves();
    let (_, _, origin) = leaves.iter().find(|(path, _, _)| path == "phases.measure.duration").unwrap();
    assert_eq!(origin.to_string(), "--set duration=1m");
    let one = crate::experiment::read_plan(LADDER, "x.yaml", &["users=7".into()]).unwrap();
    assert_eq!(one.cells.len(), 2);
}

#[test]
fn a_target_takes_the_place_of_a_server_and_a_server_that_of_a_target() {
    let of = |text: &str, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let plan = read_plan(text, "x.yaml", &sets).map_err(|error| error.to_string())?;
        let spec = &plan.cells[0].spec;
        Ok::<_, String>((spec.target.clone(), spec.server.is_some()))
    };
    let (server, target) = ("server: {kind: redis}\n", "target: redis://a\n");
    assert_eq!(of(server, &["target=redis://b"]), Ok((Some("redis://b".into()), false)));
    assert_eq!(of(target, &["server.kind=redis"]), Ok((None, true)));
    assert_eq!(of(server, &["target=null"]), Ok((None, true)));
    assert_eq!(of(server, &["server.kind=valkey"]), Ok((None, true)));
    let factors = "factors:\n  log:\n  - {label: a, server.options.appendonly: 'no'}\n  \
                   - {label: b, server.options.appendonly: 'yes'}\n  \
                   users: [1, 2]\n";
    let set = ["target=redis://b".to_owned()];
    let plan =
        read_plan(&format!("server: {{kind: redis}}\nserver_lifetime: shared\n{factors}"), "x.yaml", &set);
    let plan = plan.unwrap();
    assert_eq!((plan.cells.len(), plan.left_out), (2, vec!["log".to_owned()]));
    // Both in one place are a contradiction.
    let both = of(server, &["target=redis://b", "server.kind=redis"]);
    assert!(both.as_ref().is_err_and(|why| why.contains("remove target or server")), "{both:?}");
    assert!(of(&format!("{server}{target}"), &[]).is_err());
}

#[test]
fn options_have_the_last_word_over_factors() {
    let labels = |text: &str, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        let plan = read_plan(text, "x.yaml", &sets).unwrap_or_else(|e| panic!("{e}"));
        plan.cells
            .iter()
            .map(|c| (c.levels_label(), c.spec.phases.measure.users.unwrap_or(0)))
            .collect::<Vec<_>>()
    };
    let row = |label: &str, users: usize| (label.to_owned(), users);
    // By either name of the key, and levels by their labels.
    assert_eq!(labels(LADDER, &["phases.measure.users=2", "memory=large"]), [row("users=2 memory=large", 2)]);
    let long = "factors: {phases.measure.users: [4, 8]}\n";
    assert_eq!(labels(long, &["users=2"]), [row("phases.measure.users=2", 2)]);
    assert_eq!(labels(long, &["phases.measure.users=8"]), [row("phases.measure.users=8", 8)]);
    let named = "factors: {size: {path: users, values: [4, 8]}}\n";
    assert_eq!(labels(named, &["size=8"]), [row("size=8", 8)]);
    assert_eq!(labels(named, &["size=16"]), [row("size=16", 16)]);
    assert_eq!(labels(named, &["users=2"]), [row("size=2", 2)]);
    // A level of several keys says that it is no longer what its label says; overrides still know it.
    let paired = "factors: {test: [{label: a, users: 4}, {label: b, users: 2}]}\n\
                  overrides: [{when: {test: a}, set: {think: 1s}}]\n";
    assert_eq!(labels(paired, &["users=2"]), [row("test=a users=2", 2), row("test=b", 2)]);
    assert_eq!(labels(paired, &["test=b"]), [row("test=b", 2)]);
    let wrong = read_plan(LADDER, "x.yaml", &["memory=smal".into()]).unwrap_err().to_string();
    assert!(wrong.contains("memory has no level \"smal\"; levels: small, large"), "{wrong}");
}

#[test]
fn a_level_is_asked_for_by_its_longest_label() {
    let text = "factors: {size: [{users: 4}, {users: 4, pipeline: 2}, {users: 8}]}\n";
    for (wanted, pipeline) in [
        ("users=4", 1),
        ("users=4 pipeline=2", 2),
        ("users=4 duration=5s", 1),
        ("users=4 pipeline=2 duration=5s", 2),
    ] {
        let plan = read_plan(text, "x.yaml", &[format!("size={wanted}")]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(plan.cells.len(), 1, "{wanted}");
        assert_eq!(plan.cells[0].spec.phases.measure.pipeline, pipeline, "{wanted}");
    }
}

#[test]
fn a_loop_has_users_or_a_rate() {
    let of = |measure: &str, more: &str| {
        let text = format!("phases: {{measure: {{{measure}}}}}\n{more}");
        read_plan(&text, "x.yaml", &[]).map(|_| ()).map_err(|e| e.to_string())
    };
    let search = "strategy: {highest_rate: {objectives: [\"errors < 1%\"], from: 1, to: 2}}\n";
    for (measure, more) in
        [("users: 8, rate: 100", ""), ("users: 8", "factors: {rate: [100]}\n"), ("users: 8", search)]
    {
        let why = of(measure, more).unwrap_err();
        assert!(why.contains("phases.measure.users: users and rate exclude each other"), "{why}");
    }
    let why = of("connections: 8", "").unwrap_err();
    assert!(why.contains("phases.measure.connections: only with phases.measure.rate"), "{why}");
    for key in ["users: 0", "connections: 0, rate: 1"] {
        assert!(of(key, "").unwrap_err().contains("0: expected 1 or more"));
    }
    for (measure, more) in [("users: 8", ""), ("connections: 8, rate: 100", ""), ("connections: 8", search)] {
        assert_eq!(of(measure, more), Ok(()));
    }
    // A level may be of the other kind of loop.
    let levels = "factors: {test: [{users: 4}, {users: null, rate: 100, connections: 2}]}\n";
    assert_eq!(of("users: 8", levels), Ok(()));
}

#[test]
fn ranges_take_thousands() {
    let text = "target: 'null:'\nfactors: {phases.measure.rate: {from: 2k, to: 6k, step: 2k}}\n";
    let plan = read_plan(text, "x.yaml", &[]).unwrap();
    let rates: Vec<String> = plan.cells.iter().map(|cell| cell.levels_label()).collect();
    assert_eq!(rates, ["phases.measure.rate=2000", "phases.measure.rate=4000", "phases.measure.rate=6000"]);
    let wrong = text.replace("6k", "6x");
    let why = read_plan(&wrong, "x.yaml", &[]).unwrap_err().to_string();
    assert!(why.contains("\"6x\": expected a number, such as 2000 or 2k"), "{why}");
}

#[test]
fn ranges_go_up_and_down() {
    let users = |range: &str| {
        let text = format!("factors: {{users: {range}}}\n");
        let plan = read_plan(&text, "x.yaml", &[])?;
        Ok::<_, TreeError>(plan.cells.iter().map(|c| c.levels[0].1.clone()).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(users("{from: 1, to: 10, step: 3}").unwrap(), "1 4 7 10");
    assert_eq!(users("{from: 8, to: 2, step: -2}").unwrap(), "8 6 4 2");
    assert_eq!(users("{from: 1, to: 100, times: 10}").unwrap(), "1 10 100");
    assert_eq!(users("{from: 64, to: 8, times: 0.5}").unwrap(), "64 32 16 8");
    assert_eq!(users("{from: 10, to: 50, count: 5}").unwrap(), "10 20 30 40 50");
    assert_eq!(users("{from: 3, to: 1}").unwrap(), "3 2 1");
    for wrong in ["{from: 1, to: 9, step: 0}", "{from: 1, to: 9, step: -1}", "{from: 1, to: 9, times: 1}"] {
        assert!(users(wrong).is_err(), "{wrong}");
    }
    assert!(users("{from: 1, to: 9, steps: 1}").unwrap_err().to_string().contains("unknown key \"steps\""));
    assert!(users("{from: 1, to: 1000000000, step: 1}").is_err());
}

#[test]
fn cells_can_be_left_out_and_changed() {
    let text = format!(
        "{LADDER}exclude: [{{users: [1, 2], memory: large}}]\n\
         overrides: [{{when: {{memory: large}}, set: {{duration: 3h}}}}]\n"
    );
    let plan = read_plan(&text, "x.yaml", &[]).unwrap();
    assert_eq!(plan.cells.len(), 6);
    let long = |cell: &&MatrixCell| cell.spec.phases.measure.duration.as_ref().unwrap().to_string() == "3h";
    assert_eq!(plan.cells.iter().filter(long).count(), 2);
    let wrong = error("factors: {users: [1]}\nexclude: [{usres: 1}]\n");
    assert!(
        wrong.starts_with("x.yaml:2:19: exclude: \"usres\" is no factor; did you mean users?"),
        "{wrong}"
    );
    assert!(error("factors: {users: [1]}\nexclude: [{users: 2}]\n").contains("levels: 1"));
    let nothing = error("factors: {users: [1]}\nexclude: [{users: 1}]\n");
    assert!(nothing.contains("leaves no cell") && nothing.starts_with("x.yaml:2:"), "{nothing}");
}

#[test]
fn refusals_name_the_place() {
    assert!(error("factors:\n  users: []\n").starts_with("x.yaml:2:10: factors.users: an empty list"));
    let unknown = error("factors:\n  phases.measure.usres: [1]\n");
    assert!(unknown.contains("unknown key \"usres\"; did you mean users?"), "{unknown}");
    assert!(unknown.starts_with("x.yaml:2:26: phases.measure"), "{unknown}");
    assert!(
        error("factors: {users: [1], phases.measure.users: [2]}\n").contains("is varied by users already")
    );
    assert!(error("factors: {users: [1, 1]}\n").contains("is listed twice"));
    assert!(error("repetitions: 4000000000\n").contains("4000000000 runs: expected at most 50000"));
    assert!(error("repetitions: 0\n").contains("expected 1 or more"));
    assert!(error("workload: {ycsb: {}, documents: x.yaml}\n").contains("expected one of ycsb"));
    assert!(error("just words\n").contains("expected a mapping"));
    assert!(error("window: {from: 10s, to: 5s}\n").contains("after window.from"));
    let late = error("phases: {measure: {duration: 20s}}\nwindow: {from: 10s, to: 30s}\n");
    assert!(late.starts_with("x.yaml:2:") && late.contains("30s: expected a time within"), "{late}");
    assert!(
        read_plan("phases: {measure: {duration: 20s}}\nwindow: {from: 10s, to: 20s}\n", "x.yaml", &[])
            .is_ok()
    );
    let none = error("phases:\n  measure:\n    users: 0\n");
    assert!(none.starts_with("x.yaml:3:12: phases.measure.users: 0: expected 1 or more"), "{none}");
    let none = error("phases: {measure: {operations: 10, duration: 0s}}\n");
    assert!(none.contains("phases.measure.duration: 0s: expected a time above 0"), "{none}");
    for (text, message) in [
        ("phases: {measure: {users: many}}\n", "\"many\": expected a whole number, 0 or more"),
        ("strategy: {ladder: {times: fast}}\n", "\"fast\": expected a number"),
        ("kubernetes: 3\n", "3: expected a mapping"),
        ("monitors: {enabled: maybe}\n", "\"maybe\": expected true or false"),
        ("require: 5\n", "5: expected a list"),
    ] {
        assert!(error(text).contains(message), "{}", error(text));
    }
    for (warmup, measure, message) in [
        ("users: 0", "users: 4", "phases.warmup.users: 0: expected 1 or more"),
        ("users: 4", "rate: 100", "phases.warmup.users: with phases.measure.rate the schedule decides"),
        ("rate: 50", "users: 4", "phases.warmup.rate: the measured phase is a closed loop"),
        ("users: 2", "users: 4, warmup: 5s", "phases.measure.warmup: phases.warmup says how long"),
    ] {
        let said =
            error(&format!("phases: {{warmup: {{duration: 1s, {warmup}}}, measure: {{{measure}}}}}\n"));
        assert!(said.contains(message), "{said}");
    }
    assert!(error("phases: {warmup: {users: 2}}\n").contains("duration"));
    for (strategy, message) in [
        ("ladder: {from: 0}", "x.yaml:2:27: strategy.ladder.from: 0: expected 1 to "),
        ("ladder: {from: 8, to: 4}", "x.yaml:2:34: strategy.ladder.to: 4: expected 8 or more, as from says"),
        (
            "ladder: {from: 2k}",
            "x.yaml:2:20: strategy.ladder.to: 1024: expected 2000 or more, as from says: a ladder ends at 1024 users unless `to`",
        ),
        ("ladder: {times: 1}", "strategy.ladder.times: 1: expected a factor above 1"),
        ("ladder: {gain: 2k}", "\"2k\": expected a number, such as 0.02 or 2%"),
        (
            "highest_rate: {objectives: [], from: 2k, to: 1k}",
            "x.yaml:2:57: strategy.highest_rate.to: 1000: expected",
        ),
        (
            "highest_rate: {objectives: [], precision: 0}",
            "strategy.highest_rate.precision: 0: expected a share",
        ),
        ("repeat_until: {at_least: 5, at_most: 4}", "strategy.repeat_until.at_most: 4: expected 5 to "),
        ("tune: {parameters: {users: [1, 0]}}", "x.yaml:2:43: phases.measure.users: 0: expected 1 or more"),
        ("tune: {parameters: {users: []}}", "x.yaml:2:39: strategy.tune.parameters.users: an empty list"),
        (
            "tune: {parameters: {users: [1]}, configurations: 1}",
            "x.yaml:2:61: strategy.tune.configurations: 1: expected 2 to ",
        ),
    ] {
        let said = error(&format!("target: 'null:'\nstrategy: {{{strategy}}}\n"));
        assert!(said.contains(message), "{said}");
    }
    let open = error("phases: {measure: {rate: 100}}\nstrategy: {ladder: {}}\n");
    assert!(
        open.starts_with("x.yaml:1:26: phases.measure.rate: strategy.ladder searches the users"),
        "{open}"
    );
    let twice = error("strategy: {ladder: {}}\nfactors: {users: [1, 2]}\n");
    assert!(twice.starts_with("x.yaml:2:") && twice.contains("is what strategy.ladder searches"), "{twice}");
    let rate = error("strategy: {highest_rate: {objectives: []}}\nfactors: {test: [{rate: 5, label: a}]}\n");
    assert!(
        rate.contains("factors.test: phases.measure.rate is what strategy.highest_rate searches"),
        "{rate}"
    );
    let workers = |load: u32| {
        let phases = format!("phases: {{load: {{workers: {load}}}, measure: {{workers: 1}}}}");
        format!("client: {{workers: 2}}\n{phases}\n")
    };
    assert!(read_plan(&workers(2), "x.yaml", &[]).is_ok());
    assert!(
        error(&workers(0)).contains("phases.load.workers")
            && error(&workers(3)).contains("no more than there are")
    );
    let many = "factors: {users: {from: 1, to: 9999}, records: {from: 1, to: 9999}}\n";
    assert!(error(many).contains("more than 50000 cells"));
    assert!(
        read_plan("a: 1\n", "x.yaml", &["nothing".into()]).unwrap_err().to_string().contains("KEY=VALUE")
    );
}

#[test]
fn numbers_of_strategies_are_read_as_elsewhere() {
    let text = "target: 'null:'\nstrategy: {ladder: {from: 2k, to: \"4k\", times: 1.5, gain: 5%}}\n";
    let plan = read_plan(text, "x.yaml", &[]).unwrap();
    let ladder = Ladder { from: 2_000, to: 4_000, times: 1.5, gain: 0.05 };
    assert_eq!(plan.base.strategy, Some(Strategy::Ladder(ladder)));
    let text = "target: 'null:'\nstrategy: {tune: {parameters: {users: {from: 1k, to: 2k, count: 2}}}}\n";
    let plan = read_plan(text, "x.yaml", &[]).unwrap();
    let Some(Strategy::Tune(tune)) = &plan.base.strategy else { panic!("{:?}", plan.base.strategy) };
    assert_eq!(tune.parameters["users"].level_values().unwrap(), ["1000", "2000"]);
}

#[test]
fn every_key_of_the_schema_is_described() {
    let schema: serde_json::Value = serde_json::from_str(&json_schema_text()).unwrap();
    let mut missing = Vec::new();
    fn walk(path: &str, value: &serde_json::Value, missing: &mut Vec<String>) {
        if let Some(all) = value.get("properties").and_then(|p| p.as_object()) {
            for (key, property) in all {
                if property.get("description").is_none() {
                    missing.push(format!("{path}.{key}"));
                }
            }
        }
        if let Some(all) = value.get("$defs").and_then(|d| d.as_object()) {
            for (name, definition) in all {
                walk(name, definition, missing);
            }
        }
    }
    walk("", &schema, &mut missing);
    assert!(missing.is_empty(), "without description: {missing:?}");
}

const TUNED: &str = "\
target: 'sim:?service={s}us&capacity={c}'
variables: {s: 100, c: 2}
phases: {measure: {duration: 1s}}
strategy:
  tune: {parameters: {variables.s: [50, 100], variables.c: [1, 2], users: [1, 4]}}
";

#[test]
fn a_point_of_a_search_sets_variables_too() {
    let plan = read_plan(TUNED, "x.yaml", &[]).unwrap();
    let cell = &plan.cells[0];
    assert_eq!(cell.spec.target.as_deref(), Some("sim:?service=100us&capacity=2"));
    let (spec, tree) =
        cell.at_point(&[("variables.s".into(), "50".into()), ("users".into(), "4".into())]).unwrap();
    assert_eq!(spec.target.as_deref(), Some("sim:?service=50us&capacity=2"));
    assert_eq!(tree.find_path("target").unwrap().to_label(), "sim:?service=50us&capacity=2");
    assert_eq!(spec.phases.measure.users, Some(4));
    assert_eq!(cell.at_point(&[]).unwrap().0.target, cell.spec.target);
}

#[test]
fn values_of_a_tuning_are_checked_before_anything_runs() {
    let unused = TUNED.replace("variables.c: [1, 2]", "variables.d: [1, 2]");
    assert!(
        error(&unused).contains("no text of the file has {d}, so nothing would change"),
        "{}",
        error(&unused)
    );
    // Not the first value alone: each must make an experiment.
    let wrong = TUNED.replace("users: [1, 4]", "client.workers: [1, 0]");
    assert!(error(&wrong).contains("client.workers: 0: expected 1 or more"), "{}", error(&wrong));
}

#[test]
fn every_worker_has_a_user() {
    let text = |users: u32, load: u32| {
        format!(
            "server: {{kind: redis}}\nclient: {{workers: 4}}\n\
             phases:\n  load: {{users: {load}}}\n  measure: {{users: {users}, duration: 1s}}\n"
        )
    };
    let few = error(&text(3, 4));
    assert!(few.contains(":5:") && few.contains("phases.measure.users: 3: expected 4 or more"), "{few}");
    let few = error(&text(4, 2));
    assert!(few.contains(":4:") && few.contains("phases.load.users: 2: expected 4 or more"), "{few}");
    let some =
        text(3, 2).replace("load: {", "load: {workers: 2, ").replace("measure: {", "measure: {workers: 3, ");
    for taken in [text(4, 4), some, text(4, 2).replace("load: {", "load: {when: never, ")] {
        assert!(read_plan(&taken, "x.yaml", &[]).is_ok(), "{taken}");
    }
}

#[test]
fn the_duration_of_operations_at_a_rate_is_told() {
    let text = "phases: {load: {when: never}, measure: {operations: 10M, rate: 65536, warmup: 0s}}\n";
    let found = estimate_duration(&read_plan(text, "x.yaml", &[]).unwrap());
    assert!((found.seconds - (1e7 / 65_536.0 + 2.0)).abs() < 1e-6 && found.open_ended, "{found:?}");
    let text = "phases: {warmup: {duration: 7s, users: 2}, measure: {duration: 20s}}\n";
    assert_eq!(estimate_duration(&read_plan(text, "x.yaml", &[]).unwrap()).seconds, 29.0);
}
