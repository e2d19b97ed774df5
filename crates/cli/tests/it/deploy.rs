//! `deploy/compose` and `deploy/kubernetes`: they fit together, and say of dyno what dyno says.

use dyno_testkit::{Dyno, assert_exit};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The documents of a YAML file.
fn documents(path: &str) -> Vec<Value> {
    let text = read(path);
    let parts = text.split("\n---\n");
    parts.map(|part| serde_saphyr::from_str(part).unwrap_or_else(|error| panic!("{path}: {error}"))).collect()
}

fn document(path: &str) -> Value {
    let [one] = documents(path).try_into().unwrap_or_else(|all| panic!("{path}: {all:?}"));
    one
}

#[test]
fn dashboards_of_compose_are_those_that_dyno_writes() {
    let dyno = Dyno::new();
    assert_exit(&dyno.run(&["grafana", "--out", "g"]), &[0]);
    let files = |folder: &Path| -> BTreeMap<String, String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        entries.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect()
    };
    let (made, kept) = (files(&dyno.path("g")), files(&root().join("deploy/compose/grafana/dashboards")));
    assert_eq!(made.keys().collect::<Vec<_>>(), kept.keys().collect::<Vec<_>>());
    for (name, text) in &made {
        assert!(
            kept[name] == *text,
            "{name}: `dyno grafana --out deploy/compose/grafana/dashboards` writes it anew"
        );
    }
}

#[test]
fn compose_fits_together() {
    let folder = "deploy/compose";
    let compose = document(&format!("{folder}/compose.yaml"));
    let services = compose["services"].as_object().unwrap();
    assert_eq!(services.keys().collect::<Vec<_>>(), ["prometheus", "grafana"]);
    let mut mounts = BTreeMap::new();
    for (name, service) in services {
        let image = service["image"].as_str().unwrap();
        let (repository, tag) = image.rsplit_once(':').unwrap();
        let host = repository.split('/').next().unwrap();
        assert!(!host.contains(['.', ':']) && tag != "latest", "{image}: no registry's name, and a version");
        assert_eq!(service["network_mode"], "host", "{name}: dyno serves its metrics on the loopback");
        for mount in service["volumes"].as_array().unwrap() {
            let parts: Vec<&str> = mount.as_str().unwrap().split(':').collect();
            if parts[0].starts_with('.') {
                let path = root().join(folder).join(parts[0]);
                assert!(path.exists() && parts[2] == "ro", "{mount}");
                mounts.insert(parts[1].to_owned(), path);
            } else {
                assert!(compose["volumes"][parts[0]].is_object(), "{mount}");
            }
        }
    }
    let command: Vec<&str> = services["prometheus"]["command"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect();
    let option = |name: &str| command.iter().find_map(|word| word.strip_prefix(name)).unwrap();
    assert!(mounts.contains_key(option("--config.file=")));
    let listens = option("--web.listen-address=");
    assert!(listens.starts_with("127.0.0.1:"));
    assert!(command.contains(&"--web.enable-remote-write-receiver"));
    let environment = &services["grafana"]["environment"];
    assert_eq!(environment["GF_SERVER_HTTP_ADDR"], "127.0.0.1");
    let home = Path::new(environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"].as_str().unwrap());
    let dashboards = home.parent().unwrap().to_str().unwrap();
    assert!(mounts[dashboards].join(home.file_name().unwrap()).is_file());
    let provisioning = format!("{folder}/grafana/provisioning");
    let provider = document(&format!("{provisioning}/dashboards/dyno.yaml"));
    assert_eq!(provider["providers"][0]["options"]["path"], dashboards);
    let source = document(&format!("{provisioning}/datasources/prometheus.yaml"));
    assert_eq!(source["datasources"][0]["url"], format!("http://{listens}"));
    let scraped = document(&format!("{folder}/prometheus/prometheus.yml"));
    let target = &scraped["scrape_configs"][0]["static_configs"][0]["targets"][0];
    let port = target.as_str().and_then(|target| target.strip_prefix("127.0.0.1:")).unwrap();
    assert!(read(&format!("{folder}/README.md")).contains(&format!("--metrics {port}")));
}

/// Rights of a role: (group, resource) and verbs.
fn rights(role: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let words = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for rule in role["rules"].as_array().unwrap() {
        for resource in words(&rule["resources"]) {
            all.entry(resource).or_default().extend(words(&rule["verbs"]));
        }
    }
    all
}

#[test]
fn the_role_is_what_dyno_says_that_it_needs() {
    let kept = documents("deploy/kubernetes/rbac.yaml");
    assert_eq!(kept, dyno_hosts::kubernetes::rights::required_role(None));
    assert!(!kept[1].to_string().contains('*'));
}

/// Files that speak to kubectl.
fn sources() -> Vec<(PathBuf, String)> {
    let mut files = vec![root().join("crates/hosts/src/remote/relay/controller.rs")];
    let mut folders = vec![root().join("crates/hosts/src/kubernetes")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            match path.is_dir() {
                true => folders.push(path),
                false if !["rights.rs", "kubectl.rs"].contains(&name.as_str()) => files.push(path),
                false => {}
            }
        }
    }
    let code = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let end = text.find("#[cfg(test)]").unwrap_or(text.len());
        (path, text[..end].to_owned())
    };
    files.into_iter().map(code).collect()
}

/// A list of words with a command of kubectl in it: the command, and the word or the constant that follows.
const COMMAND: &str = concat!(
    r#"\[[^\[\];{}]*"(get|delete|patch|exec|logs|apply|replace|label|annotate|scale)","#,
    r#"\s*(?:"([^"]*)"|([A-Za-z_&]+))[^\[\];{}]*\]"#
);

/// An object that is created.
const KIND: &str = r#""kind": "(Job|StatefulSet|Service|Secret|ConfigMap|PersistentVolumeClaim|Pod|Event)""#;

/// What kubectl asks of the cluster for a command, by its verb and what follows it.
fn needed(verb: &str, what: &str, selects: bool) -> Vec<(String, &'static str)> {
    let plural = |name: &str| match name {
        "pod" => "pods".to_owned(),
        "secret" => "secrets".to_owned(),
        "job" => "jobs".to_owned(),
        "statefulset" => "statefulsets".to_owned(),
        "service" => "services".to_owned(),
        "configmap" => "configmaps".to_owned(),
        name => name.to_owned(),
    };
    let each = |verbs: &[&'static str]| -> Vec<(String, &'static str)> {
        what.split(',').flat_map(|name| verbs.iter().map(move |verb| (plural(name), *verb))).collect()
    };
    let of =
        |list: &[(&str, &'static str)]| list.iter().map(|(name, verb)| ((*name).to_owned(), *verb)).collect();
    match verb {
        "get" if selects => each(&["list"]),
        "get" => each(&["get"]),
        "delete" if selects => each(&["list", "delete"]),
        "delete" => each(&["delete"]),
        "patch" | "annotate" if selects => each(&["list", "get", "patch"]),
        "patch" | "annotate" => each(&["get", "patch"]),
        "exec" => of(&[("pods", "get"), ("pods/exec", "create"), ("pods/exec", "get")]),
        "logs" => of(&[("pods", "get"), ("pods/log", "get")]),
        _ => panic!("{verb}: a command without a rule"),
    }
}

/// Every command that the code gives kubectl, and every kind that it creates, has its right; and no kind has a right without one.
#[test]
fn every_command_has_its_right() {
    let command = regex_lite::Regex::new(COMMAND).unwrap();
    let kind = regex_lite::Regex::new(KIND).unwrap();
    let role = rights(&dyno_hosts::kubernetes::rights::required_role(None)[1]);
    let (mut used, mut commands) = (BTreeSet::new(), 0);
    for (path, text) in sources() {
        let constant = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(&format!("const {name}: &str = ")));
            line.and_then(|line| line.split('"').nth(1)).map(str::to_owned)
        };
        for found in command.captures_iter(&text) {
            let verb = &found[1];
            let what =
                found.get(2).map_or_else(|| constant(&found[3]), |what| Some(what.as_str().to_owned()));
            // Nodes are asked with a right of their own, and exec and logs name a pod.
            let what = match what {
                Some(what) if what == "--raw" => continue,
                None if !["exec", "logs"].contains(&verb) => panic!("{}: {}", path.display(), &found[0]),
                what => what.unwrap_or_default(),
            };
            let by_name =
                found[0].contains("--\", name") || found[0].contains("\"pod\", pod") || verb == "patch";
            commands += 1;
            used.extend(needed(verb, &what, !by_name));
        }
        for found in kind.captures_iter(&text) {
            let resource = format!("{}s", found[1].to_lowercase());
            used.insert((resource, "create"));
        }
    }
    assert!(commands >= 14, "{commands} commands: {used:?}");
    for (resource, verb) in &used {
        let granted = role.get(resource).is_some_and(|verbs| verbs.contains(*verb));
        assert!(granted, "{verb} {resource} is used and not granted");
    }
    let kinds: BTreeSet<&String> = used.iter().map(|(resource, _)| resource).collect();
    assert_eq!(kinds, role.keys().collect(), "kinds that are used, and kinds with rights");
}

/// What a chart's template says below `from`, to the end of the document or of the condition that the file is.
fn text_below<'a>(text: &'a str, from: &str) -> &'a str {
    let at = text.find(from).unwrap_or_else(|| panic!("{from:?} is not in {text}"));
    let rest = &text[at..];
    let ends = ["\n---", "\n{{- end }}"];
    &rest[..ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len())]
}

/// What the chart says twice is what the manifests say.
#[test]
fn the_chart_is_of_this_version_and_says_what_the_manifests_say() {
    let chart = document("deploy/helm/dyno/Chart.yaml");
    for key in ["version", "appVersion"] {
        assert_eq!(chart[key], env!("CARGO_PKG_VERSION"), "{key}");
    }
    for (file, from) in [("rbac.yaml", "rules:"), ("network-policy.yaml", "spec:")] {
        let own = read(&format!("deploy/helm/dyno/templates/{file}"));
        let kept = read(&format!("deploy/kubernetes/{file}"));
        assert_eq!(text_below(&own, from).trim_end(), text_below(&kept, from).trim_end(), "{file}");
    }
    let values = document("deploy/helm/dyno/values.yaml");
    let kept = document("deploy/kubernetes/experiment.yaml");
    assert_eq!(values["experiment"], kept["data"]["experiment.yaml"]);
    let job = document("deploy/kubernetes/job.yaml");
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(values["podSecurityContext"], pod["securityContext"]);
    assert_eq!(values["image"], pod["containers"][0]["image"]);
    assert_eq!(values["resources"], pod["containers"][0]["resources"]);
}

fn helm(words: &[&str]) -> Option<String> {
    let output = Command::new("helm").args(words).stdin(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "helm {words:?}: {said}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What `helm` makes of the chart is what the manifests are, under names of the release.
#[test]
fn helm_makes_the_manifests_of_the_chart() {
    let chart = root().join("deploy/helm/dyno").display().to_string();
    if helm(&["lint", "--strict", &chart]).is_none() {
        return dyno_testkit::skip_because("the Helm chart", "helm is not on PATH");
    }
    let made = |sets: &[&str]| -> Vec<Value> {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let text = helm(
            &[
                &["template", "night", chart.as_str(), "--namespace", "bench", "--kube-version", "1.30.0"],
                &sets[..],
            ]
            .concat(),
        )
        .unwrap();
        let parts = text.split("---\n").filter(|part| part.lines().any(|line| line.starts_with("kind:")));
        parts.map(|part| serde_saphyr::from_str(part).unwrap()).collect()
    };
    let of = |all: &[Value], kind: &str| all.iter().find(|object| object["kind"] == kind).cloned();
    let all = made(&["networkPolicy=true"]);
    let kinds: BTreeSet<&str> = all.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    let expected = [
        "ConfigMap",
        "Job",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    ];
    assert_eq!(kinds, BTreeSet::from(expected));
    for object in &all {
        let labels = &object["metadata"]["labels"];
        for (label, value) in
            [("name", "dyno"), ("instance", "night"), ("part-of", "dyno"), ("managed-by", "Helm")]
        {
            assert_eq!(labels[format!("app.kubernetes.io/{label}")], value, "{object:#}");
        }
        assert_eq!(labels["app.kubernetes.io/version"], env!("CARGO_PKG_VERSION"));
        assert!(labels["app.kubernetes.io/component"].is_string(), "{object:#}");
    }
    // The pod is that of the manifest, but for names.
    let named = |pod: &Value| {
        let text = pod.to_string().replace("night-experiment", "dyno-experiment");
        text.replace("night-runs", "dyno-runs").replace("night-dyno", "dyno")
    };
    let mut pod = of(&all, "Job").unwrap()["spec"]["template"]["spec"].clone();
    let pulled = pod["containers"][0].as_object_mut().unwrap().remove("imagePullPolicy");
    assert_eq!(pulled, Some("IfNotPresent".into()), "the cluster's default");
    let kept: Value =
        serde_json::from_str(&named(&document("deploy/kubernetes/job.yaml")["spec"]["template"]["spec"]))
            .unwrap();
    assert_eq!(serde_json::from_str::<Value>(&named(&pod)).unwrap(), kept);
    assert_eq!(of(&all, "ConfigMap").unwrap()["data"], document("deploy/kubernetes/experiment.yaml")["data"]);
    // What is brought is not made, and an experiment goes on.
    let sets = [
        "rbac=false",
        "account=mine",
        "volume.claim=own",
        "resume=true",
        "again=invalid",
        "podSecurityContext=null",
    ];
    let all = made(&[&sets[..], &["nodeSelector.kubernetes\\.io/arch=arm64"]].concat());
    assert_eq!(all.len(), 2, "{all:#?}");
    let pod = &of(&all, "Job").unwrap()["spec"]["template"]["spec"];
    assert_eq!((&pod["serviceAccountName"], &pod["securityContext"]), (&"mine".into(), &Value::Null));
    assert_eq!(pod["nodeSelector"]["kubernetes.io/arch"], "arm64");
    let words = ["resume", "/work/users", "--junit", "/work/users.xml", "--invalid"];
    assert_eq!(pod["containers"][0]["args"], serde_json::json!(words));
    let volumes = pod["volumes"].as_array().unwrap();
    assert!(volumes.iter().any(|volume| volume["persistentVolumeClaim"]["claimName"] == "own"));
}

#[test]
fn the_job_finds_what_it_names() {
    let folder = "deploy/kubernetes";
    let list = document(&format!("{folder}/kustomization.yaml"));
    let listed: BTreeSet<String> =
        list["resources"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    let there = fs::read_dir(root().join(folder)).unwrap();
    let there = there.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let there: BTreeSet<String> =
        there.filter(|name| name.ends_with(".yaml") && name != "kustomization.yaml").collect();
    let beside = BTreeSet::from(["reader.yaml".to_owned()]);
    assert_eq!(listed, &there - &beside);
    let all: Vec<Value> = listed.iter().flat_map(|name| documents(&format!("{folder}/{name}"))).collect();
    let named = |kind: &str, name: &Value| {
        all.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == *name).unwrap()
    };
    let job = all.iter().find(|object| object["kind"] == "Job").unwrap();
    let pod = &job["spec"]["template"]["spec"];
    named("ServiceAccount", &pod["serviceAccountName"]);
    let volumes = pod["volumes"].as_array().unwrap();
    let volume = |name: &str| volumes.iter().find(|volume| volume["name"] == name).unwrap();
    named("PersistentVolumeClaim", &volume("runs")["persistentVolumeClaim"]["claimName"]);
    let config = named("ConfigMap", &volume("experiment")["configMap"]["name"]);
    let container = &pod["containers"][0];
    let mounts = container["volumeMounts"].as_array().unwrap();
    let mounted: BTreeMap<&str, &str> = mounts
        .iter()
        .map(|mount| (mount["name"].as_str().unwrap(), mount["mountPath"].as_str().unwrap()))
        .collect();
    assert_eq!(mounted.keys().copied().collect::<Vec<_>>(), ["experiment", "runs", "tmp"]);
    let words: Vec<&str> =
        container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let [run, file, "--out", out, "--junit", junit] = words[..] else { panic!("{words:?}") };
    let key = file.strip_prefix(&format!("{}/", mounted["experiment"])).unwrap();
    assert_eq!(run, "run");
    assert!([out, junit].iter().all(|path| path.starts_with(&format!("{}/", mounted["runs"]))));
    // Pods that the restricted policy takes.
    let (of_pod, own) = (&pod["securityContext"], &container["securityContext"]);
    assert!(of_pod["runAsNonRoot"] == true && of_pod["seccompProfile"]["type"] == "RuntimeDefault");
    assert!(own["allowPrivilegeEscalation"] == false && own["capabilities"]["drop"][0] == "ALL");
    assert_eq!(own["readOnlyRootFilesystem"], true);
    // Who reads the runs is who wrote them, and finds the same volume.
    let reader = &document(&format!("{folder}/reader.yaml"))["spec"];
    assert_eq!(&reader["securityContext"], of_pod);
    let (claim, container) = (&reader["volumes"][0]["persistentVolumeClaim"], &reader["containers"][0]);
    assert_eq!(claim["claimName"], volume("runs")["persistentVolumeClaim"]["claimName"]);
    assert_eq!(container["securityContext"], *own);
    assert_eq!(container["volumeMounts"][0]["mountPath"], mounted["runs"]);
    // dyno takes the experiment.
    let dyno = Dyno::new();
    fs::write(dyno.path("experiment.yaml"), config["data"][key].as_str().unwrap()).unwrap();
    assert_exit(&dyno.run(&["plan", "experiment.yaml", "--manifests", "m"]), &[0]);
}
