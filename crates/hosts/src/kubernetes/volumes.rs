//! Loaded data that outlive their run, in claims of the namespace: claims of a volume have its name as a label, and what is
//! loaded into them as an annotation.

use crate::kubernetes::kubectl::Kubectl;
use crate::kubernetes::kubectl::KubectlError;
use crate::servers::volume::{FoundVolume, Loaded, VolumePart};
use dyno_engine::Control;
use serde_json::Value;
use std::io;
use std::time::{Duration, Instant};

/// The label that says which volume a claim belongs to.
pub(super) const LABEL: &str = "dyno.volume";
/// The annotation that says what is loaded.
const LOADED: &str = "dyno.io/loaded";
/// Time that the cluster may take to remove claims.
const REMOVAL: Duration = Duration::from_secs(60);

/// Why a volume cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// kubectl has not done what was asked.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// Servers are at work on it.
    #[error(
        "volume {volume}: StatefulSet {set} is at work on it: another run's, or servers that were left (`dyno stop`)"
    )]
    AtWork {
        /// The volume's name.
        volume: String,
        /// The stateful set that uses it.
        set: String,
    },
    /// The claims are still there long after they were deleted.
    #[error("volume {volume}: its claims are still there after {} s: is another run at work on it?", REMOVAL.as_secs())]
    Left {
        /// The volume's name.
        volume: String,
    },
    /// The user has asked dyno to stop.
    #[error("interrupted")]
    Interrupted,
}

fn selector(name: &str) -> String {
    format!("{LABEL}={name}")
}

fn claims(kubectl: &Kubectl, name: &str) -> Result<Vec<Value>, KubectlError> {
    let found = kubectl.run_json(&["get", "persistentvolumeclaims", "-l", &selector(name), "-o", "json"])?;
    Ok(found["items"].as_array().cloned().unwrap_or_default())
}

/// A claim of a volume: the volume's name, its class, what is loaded, and the claim itself.
pub(crate) type VolumeClaim = (String, String, Option<Loaded>, VolumePart);

/// All claims of volumes.
pub fn list_volumes(kubectl: &Kubectl) -> Result<Vec<VolumeClaim>, KubectlError> {
    let found = kubectl.run_json(&["get", "persistentvolumeclaims", "-l", LABEL, "-o", "json"])?;
    Ok(found["items"].as_array().map_or(&[][..], Vec::as_slice).iter().map(claim).collect())
}

fn claim(claim: &Value) -> VolumeClaim {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (meta, spec, status) = (&claim["metadata"], &claim["spec"], &claim["status"]);
    let part = VolumePart {
        name: text(&meta["name"]),
        asked: text(&spec["resources"]["requests"]["storage"]),
        status: text(&status["phase"]),
        size: status["capacity"]["storage"].as_str().and_then(bytes),
        // Only a pod that has it can say what is in it.
        used: None,
    };
    let record = read(std::slice::from_ref(claim)).record;
    (text(&meta["labels"][LABEL]), text(&spec["storageClassName"]), record, part)
}

/// A quantity of Kubernetes in bytes.
pub(super) fn bytes(quantity: &str) -> Option<u64> {
    let text = if quantity.ends_with('i') { format!("{quantity}B") } else { quantity.to_owned() };
    dyno_types::units::parse_bytes(&text).ok()
}

/// Reads the record of claims: it holds only if all of them have the same.
fn read(claims: &[Value]) -> FoundVolume {
    let record = |claim: &Value| -> Option<Loaded> {
        serde_json::from_str(claim["metadata"]["annotations"][LOADED].as_str()?).ok()
    };
    let first = claims.first().and_then(record);
    let whole = claims.iter().all(|claim| record(claim) == first);
    FoundVolume { record: first.filter(|_| whole), there: !claims.is_empty() }
}

/// The StatefulSet that has a volume's claims, of all that there are.
fn at_work<'a>(sets: &'a Value, name: &str) -> Option<&'a str> {
    let of_volume = |set: &&Value| {
        let claims = set["spec"]["volumeClaimTemplates"].as_array().map_or(&[][..], Vec::as_slice);
        claims.iter().any(|claim| claim["metadata"]["labels"][LABEL] == name)
    };
    sets["items"].as_array()?.iter().find(of_volume)?["metadata"]["name"].as_str()
}

/// Reads what a volume holds; refused while servers are at work on it.
pub fn look_at_volume(kubectl: &Kubectl, name: &str) -> Result<FoundVolume, VolumeError> {
    let sets = kubectl.run_json(&["get", "statefulsets", "-o", "json"])?;
    match at_work(&sets, name) {
        Some(set) => Err(VolumeError::AtWork { volume: name.to_owned(), set: set.to_owned() }),
        None => Ok(read(&claims(kubectl, name)?)),
    }
}

/// Removes a volume and waits until it is gone.
pub fn remove_volume(kubectl: &Kubectl, name: &str, control: &Control) -> Result<(), VolumeError> {
    let words =
        ["delete", "persistentvolumeclaims", "-l", &selector(name), "--ignore-not-found", "--wait=false"];
    kubectl.run(&words, None)?;
    let begun = Instant::now();
    while !claims(kubectl, name)?.is_empty() {
        if control.is_stopping() {
            return Err(VolumeError::Interrupted);
        }
        if begun.elapsed() > REMOVAL {
            return Err(VolumeError::Left { volume: name.to_owned() });
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// Writes down what is loaded.
pub fn mark_loaded(kubectl: &Kubectl, name: &str, record: &Loaded) -> Result<(), KubectlError> {
    let value = format!(
        "{LOADED}={}",
        serde_json::to_string(record).map_err(io::Error::from).map_err(KubectlError::Io)?
    );
    let words = ["annotate", "persistentvolumeclaims", "-l", &selector(name), "--overwrite", &value];
    kubectl.run(&words, None).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_claim_in_words() {
        let told = json!({
            "metadata": {"name": "data-dyno-v-0-1", "labels": {LABEL: "v"}},
            "spec": {"storageClassName": "shared", "resources": {"requests": {"storage": "50Gi"}}},
            "status": {"phase": "Bound", "capacity": {"storage": "50Gi"}},
        });
        let (name, class, record, part) = claim(&told);
        assert_eq!((name.as_str(), class.as_str(), record), ("v", "shared", None));
        let size = Some(50 << 30);
        let (name, asked, status) = ("data-dyno-v-0-1".into(), "50Gi".into(), "Bound".into());
        assert_eq!(part, VolumePart { name, asked, status, size, used: None });
        assert_eq!((bytes("1073741824"), bytes("x")), (Some(1 << 30), None));
    }

    #[test]
    fn a_set_that_has_the_volume() {
        let set = |name: &str, volume: &str| {
            let claim = json!({"metadata": {"name": "data", "labels": {LABEL: volume}}});
            json!({"metadata": {"name": name}, "spec": {"volumeClaimTemplates": [claim]}})
        };
        let sets =
            json!({"items": [{"metadata": {"name": "x"}}, set("dyno-a-0", "a"), set("dyno-b-0", "b")]});
        assert_eq!((at_work(&sets, "b"), at_work(&sets, "c")), (Some("dyno-b-0"), None));
    }

    #[test]
    fn all_claims_must_say_the_same() {
        let loaded = |id: &str| {
            let record = Loaded {
                id: id.into(),
                key: Default::default(),
                count: 7,
                loaded: String::new(),
                seconds: 2.5,
                run: "runs/1".into(),
                used: 0,
            };
            let text = serde_json::to_string(&record).unwrap();
            json!({"metadata": {"annotations": {LOADED: text}}})
        };
        let bare = json!({"metadata": {"name": "x"}});
        assert_eq!(read(&[]), FoundVolume { record: None, there: false });
        assert_eq!(read(&[loaded("a"), loaded("a")]).record.unwrap().count, 7);
        for claims in [[loaded("a"), loaded("b")], [loaded("a"), bare.clone()], [bare.clone(), loaded("a")]] {
            assert_eq!(read(&claims), FoundVolume { record: None, there: true });
        }
    }
}
