//! Objects of the user's in the place of those that dyno makes: by kind and name, as `dyno plan --manifests` writes them.
//!
//! dyno's labels and selectors are put on whatever is given, so that it is found and removed with the run.

use dyno_types::bounded;
use dyno_types::limits::TEXT_BYTES;
use dyno_types::{RefusalCode, Refused};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;

/// Name of a run in files; its real name takes the place.
pub const RUN: &str = "dyno-run";
/// Kinds that may be given: they go with the run.
const KINDS: [&str; 5] = ["Job", "StatefulSet", "Service", "Secret", "ConfigMap"];
/// The files of rights that `dyno plan --manifests` writes beside them.
const RIGHTS: [&str; 2] = ["rbac.yaml", "rbac-kubelet.yaml"];

const TOP: [&str; 4] = ["apiVersion", "kind", "metadata", "spec"];
const CONTENT: [&str; 5] = ["data", "stringData", "binaryData", "type", "immutable"];
const META: [&str; 8] =
    ["name", "labels", "annotations", "namespace", "ownerReferences", "finalizers", "generateName", "uid"];
const SET: [&str; 11] = [
    "serviceName",
    "replicas",
    "podManagementPolicy",
    "persistentVolumeClaimRetentionPolicy",
    "selector",
    "template",
    "volumeClaimTemplates",
    "updateStrategy",
    "revisionHistoryLimit",
    "minReadySeconds",
    "ordinals",
];
const JOB: [&str; 14] = [
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "podFailurePolicy",
    "successPolicy",
    "backoffLimit",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
    "selector",
    "template",
    "ttlSecondsAfterFinished",
    "completionMode",
    "suspend",
    "podReplacementPolicy",
];
const SERVICE: [&str; 18] = [
    "clusterIP",
    "clusterIPs",
    "ports",
    "selector",
    "type",
    "publishNotReadyAddresses",
    "externalIPs",
    "sessionAffinity",
    "sessionAffinityConfig",
    "loadBalancerIP",
    "loadBalancerSourceRanges",
    "externalName",
    "externalTrafficPolicy",
    "internalTrafficPolicy",
    "ipFamilies",
    "ipFamilyPolicy",
    "allocateLoadBalancerNodePorts",
    "trafficDistribution",
];
const POD: [&str; 38] = [
    "volumes",
    "initContainers",
    "containers",
    "restartPolicy",
    "terminationGracePeriodSeconds",
    "activeDeadlineSeconds",
    "dnsPolicy",
    "nodeSelector",
    "serviceAccountName",
    "serviceAccount",
    "automountServiceAccountToken",
    "nodeName",
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "shareProcessNamespace",
    "securityContext",
    "imagePullSecrets",
    "hostname",
    "subdomain",
    "affinity",
    "schedulerName",
    "tolerations",
    "hostAliases",
    "priorityClassName",
    "priority",
    "dnsConfig",
    "readinessGates",
    "runtimeClassName",
    "enableServiceLinks",
    "preemptionPolicy",
    "overhead",
    "topologySpreadConstraints",
    "setHostnameAsFQDN",
    "os",
    "hostUsers",
    "schedulingGates",
    "resourceClaims",
];

/// Objects that were given, and what is odd about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserObjects {
    objects: Vec<Value>,
    /// Keys that dyno does not know, with their file.
    pub warnings: Vec<String>,
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

fn name(object: &Value) -> (&str, &str) {
    (text(object, "kind"), text(&object["metadata"], "name"))
}

/// Reads a folder: every `.yaml`, `.yml` and `.json`, several documents in each if they are divided by `---`.
///
/// # Errors
/// The folder or a file cannot be read, or holds what is no object that may be given.
pub fn read(folder: &Path) -> Result<UserObjects, Refused> {
    let failed = |path: &Path, why: &dyn Display| {
        Refused::new(
            RefusalCode::BadFile,
            path.display().to_string(),
            format!("kubernetes.manifests: {}: {why}", path.display()),
        )
    };
    let entries = std::fs::read_dir(folder).map_err(|e| failed(folder, &e))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    let known = |end: &str| ["yaml", "yml", "json"].contains(&end);
    files.retain(|path| path.extension().and_then(|end| end.to_str()).is_some_and(known));
    files.retain(|path| path.file_name().is_some_and(|name| RIGHTS.iter().all(|rights| name != *rights)));
    files.sort();
    let (mut given, mut names) = (UserObjects::default(), BTreeSet::new());
    for path in files {
        let content = bounded::text_file(&path, TEXT_BYTES).map_err(|e| failed(&path, &e))?;
        for object in read_objects(&content).map_err(|refused| failed(&path, &refused))? {
            let (kind, own) = name(&object);
            if !names.insert((kind.to_owned(), own.to_owned())) {
                return Err(failed(&path, &format_args!("{kind} {own} is there twice")));
            }
            let odd = unknown_keys(&object)
                .into_iter()
                .map(|key| format!("{}: {kind} {own}: {key} is not known", path.display()));
            given.warnings.extend(odd);
            given.objects.push(object);
        }
    }
    match given.objects.is_empty() {
        true => Err(failed(folder, &"there are no objects in it")),
        false => Ok(given),
    }
}

/// The objects of a file.
pub fn read_objects(content: &str) -> Result<Vec<Value>, Refused> {
    let mut all = Vec::new();
    for document in documents(content) {
        let object: Value = serde_saphyr::from_str(&document)
            .map_err(|e| Refused::new(RefusalCode::BadFile, "manifests", e.to_string()))?;
        if object.is_null() {
            continue;
        }
        let (kind, own) = name(&object);
        if !KINDS.contains(&kind) || own.is_empty() {
            let message = format!("{kind:?} {own:?}: expected a name, and one of {}", KINDS.join(", "));
            return Err(Refused::new(RefusalCode::BadFile, "manifests", message));
        }
        all.push(object);
    }
    Ok(all)
}

fn documents(content: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for line in content.lines() {
        match line.trim_end() {
            "---" => all.push(String::new()),
            _ => {
                if let Some(last) = all.last_mut() {
                    last.push_str(line);
                    last.push('\n');
                }
            }
        }
    }
    all.retain(|one| one.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')));
    all
}

/// Keys that are not known, by their path.
pub fn unknown_keys(object: &Value) -> Vec<String> {
    let mut odd = Vec::new();
    let mut look = |at: &Value, path: &str, known: &[&str]| {
        let keys = at.as_object().into_iter().flat_map(Map::keys);
        odd.extend(keys.filter(|key| !known.contains(&key.as_str())).map(|key| format!("{path}{key}")));
    };
    let kind = text(object, "kind");
    let content = ["Secret", "ConfigMap"].contains(&kind);
    look(object, "", &if content { [&TOP[..3], &CONTENT].concat() } else { TOP.to_vec() });
    look(&object["metadata"], "metadata.", &META);
    let spec = &object["spec"];
    match kind {
        "StatefulSet" => look(spec, "spec.", &SET),
        "Job" => look(spec, "spec.", &JOB),
        "Service" => look(spec, "spec.", &SERVICE),
        _ => {}
    }
    look(&spec["template"]["spec"], "spec.template.spec.", &POD);
    odd
}

/// A text with the run's name where it stands by itself or as a part between hyphens and dots, not within other words.
fn with_name(text: &str, run: &str) -> String {
    let is_apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(RUN) {
        let (before, after) = (&rest[..at], &rest[at + RUN.len()..]);
        let whole = is_apart(before.chars().next_back().or(out.chars().next_back()))
            && is_apart(after.chars().next());
        out.push_str(before);
        out.push_str(if whole { run } else { RUN });
        rest = after;
    }
    out + rest
}

/// Has texts say the run's name.
fn named(value: &mut Value, run: &str) {
    match value {
        Value::String(text) => *text = with_name(text, run),
        Value::Array(all) => all.iter_mut().for_each(|one| named(one, run)),
        Value::Object(all) => all.values_mut().for_each(|one| named(one, run)),
        _ => {}
    }
}

/// Adds what is in `from` to the mapping at a path, which is made where it is not there.
fn add(object: &mut Value, path: &[&str], from: &Value) {
    let mut at = object;
    for part in path {
        if !at[*part].is_object() {
            at[*part] = json!({});
        }
        at = &mut at[*part];
    }
    if let (Some(at), Some(from)) = (at.as_object_mut(), from.as_object()) {
        at.extend(from.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
}

impl UserObjects {
    /// Puts what was given into the place of what dyno has made for `run`, and what has no place beside it.
    pub(super) fn take_place(&self, run: &str, job: &mut Value, others: &mut Vec<Value>) {
        let common = job["metadata"]["labels"].clone();
        for object in &self.objects {
            let mut object = object.clone();
            named(&mut object, run);
            let own = (text(&object, "kind").to_owned(), text(&object["metadata"], "name").to_owned());
            if let Some(metadata) = object["metadata"].as_object_mut() {
                // It is put where the experiment says, and belongs to its run.
                ["namespace", "ownerReferences", "uid"].iter().for_each(|key| drop(metadata.remove(*key)));
            }
            let made = std::iter::once(&mut *job).chain(others.iter_mut());
            match made.into_iter().find(|made| name(made) == (own.0.as_str(), own.1.as_str())) {
                // Passwords and the token are a run's own.
                Some(_) if own.0 == "Secret" => {}
                Some(made) => {
                    labelled(&mut object, made);
                    *made = object;
                }
                None => {
                    let mut labels = common.clone();
                    labels["app.kubernetes.io/component"] = "own".into();
                    add(&mut object, &["metadata", "labels"], &labels);
                    others.push(object);
                }
            }
        }
    }
}

/// Gives an object the labels and selectors of the one whose place it takes.
fn labelled(object: &mut Value, made: &Value) {
    add(object, &["metadata", "labels"], &made["metadata"]["labels"]);
    let spec = &made["spec"];
    if !object["spec"].is_object() {
        // The cluster says what it thinks of that.
        return;
    }
    match text(made, "kind") {
        "Service" => object["spec"]["selector"] = spec["selector"].clone(),
        kind @ ("StatefulSet" | "Job") => {
            add(object, &["spec", "template", "metadata", "labels"], &spec["template"]["metadata"]["labels"]);
            if kind == "StatefulSet" {
                object["spec"]["selector"] = spec["selector"].clone();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_config::experiment::read_plan;

    const SERVER: &str = "apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: dyno-run-s0
  namespace: mine
  labels: {team: storage}
spec:
  serviceName: dyno-run-s0
  replicas: 1
  replica: 2
  selector: {matchLabels: {app: mine}}
  template:
    metadata: {labels: {app: mine}}
    spec:
      containers: [{name: server, image: mine:1}]
      nodeselector: {disk: ssd}
---
# settings
apiVersion: v1
kind: ConfigMap
metadata: {name: dyno-run-settings}
data: {a: b}
";

    #[test]
    fn the_runs_name_within_other_words_stays() {
        for (text, told) in [
            ("dyno-run", "dyno-7"),
            ("dyno-run-s0.dyno-run.ns.svc:6379", "dyno-7-s0.dyno-7.ns.svc:6379"),
            ("my-dyno-run", "my-dyno-7"),
            ("dyno-runner", "dyno-runner"),
            ("--dyno-running=dyno-run", "--dyno-running=dyno-7"),
            ("xdyno-run dyno-run2", "xdyno-run dyno-run2"),
            ("dyno-rundyno-run", "dyno-rundyno-run"),
        ] {
            assert_eq!(with_name(text, "dyno-7"), told);
        }
    }

    fn given(files: &[(&str, &str)]) -> Result<UserObjects, Refused> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        read(folder.path())
    }

    #[test]
    fn objects_take_their_place_by_kind_and_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.yaml"), SERVER).unwrap();
        for rights in RIGHTS {
            std::fs::write(folder.path().join(rights), "kind: Role\n").unwrap();
        }
        let text =
            format!("server: {{kind: redis}}\nkubernetes: {{manifests: {}}}\n", folder.path().display());
        let plan = read_plan(&text, "x.yaml", &[]).unwrap();
        let spec = &plan.cells[0].spec;
        let made = crate::kubernetes::manifests::run_manifests(
            spec,
            spec.kubernetes.as_ref().unwrap(),
            "dyno-12",
            crate::kubernetes::manifests::NO_TOKEN,
        )
        .unwrap();
        let sets: Vec<&Value> = made.others.iter().filter(|object| object["kind"] == "StatefulSet").collect();
        let [set] = sets.as_slice() else { panic!("{sets:?}") };
        assert_eq!(set["metadata"]["name"], "dyno-12-s0");
        assert_eq!(set["metadata"]["namespace"], Value::Null);
        assert_eq!(
            (&set["metadata"]["labels"]["team"], &set["metadata"]["labels"]["dyno.run"]),
            (&json!("storage"), &json!("dyno-12"))
        );
        let template = &set["spec"]["template"];
        assert_eq!(template["spec"]["containers"][0]["image"], "mine:1");
        let labels = &template["metadata"]["labels"];
        assert_eq!((&labels["app"], &labels["dyno.server"]), (&json!("mine"), &json!("dyno-12-s0")));
        let wanted = &set["spec"]["selector"]["matchLabels"];
        assert!(
            wanted.as_object().unwrap().iter().all(|(key, value)| labels[key] == *value),
            "{wanted} {labels}"
        );
        let own = made.others.iter().find(|object| object["metadata"]["name"] == "dyno-12-settings").unwrap();
        assert_eq!(
            (&own["kind"], &own["metadata"]["labels"]["dyno.run"]),
            (&json!("ConfigMap"), &json!("dyno-12"))
        );
        // What was not given is dyno's.
        assert!(made.others.iter().any(|object| object["kind"] == "Service"));
        assert_eq!(made.warnings.len(), 2, "{:?}", made.warnings);
        assert!(made.warnings[0].contains("spec.replica is not known"), "{:?}", made.warnings);
        assert!(
            made.warnings[1].contains("spec.template.spec.nodeselector is not known"),
            "{:?}",
            made.warnings
        );
    }

    #[test]
    fn what_cannot_be_removed_is_refused() {
        for (text, why) in [
            ("kind: ClusterRole\nmetadata: {name: x}\n", "expected a name, and one of Job"),
            ("kind: Service\nmetadata: {}\n", "expected a name"),
            (
                "kind: Service\nmetadata: {name: x}\n---\nkind: Service\nmetadata: {name: x}\n",
                "is there twice",
            ),
            ("a: [\n", "x.yaml"),
            ("# nothing\n", "there are no objects in it"),
        ] {
            let error = given(&[("x.yaml", text)]).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let error = read(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.starts_with("kubernetes.manifests: /nowhere: "), "{error}");
    }
}
