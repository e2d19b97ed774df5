//! The digests of an experiment's images: a tag may mean another image by its next run, and these two would be compared as one.

use dyno_localhost::error::LocalError;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

/// The file in an experiment's directory.
const FILE: &str = "images.json";

/// Images as the experiment names them, each with the digest that its first run has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ImagePins {
    file: PathBuf,
    known: BTreeMap<String, String>,
}

impl ImagePins {
    /// Those of the experiment that has a run's `journal` in its directory; none before its first run.
    pub fn of_experiment(journal: &Path) -> Result<Self, LocalError> {
        let file = journal.with_file_name(FILE);
        let known: BTreeMap<String, String> =
            match dyno_localhost::trusted::open(&file, OpenOptions::new().read(true))? {
                Some(opened) => serde_json::from_reader(opened).map_err(|error| {
                    LocalError::Untrusted(format!("{}: {error}; nothing of it is used", file.display()))
                })?,
                None => BTreeMap::new(),
            };
        if let Some((image, pinned)) = known.iter().find(|(image, pinned)| !is_digest_of(image, pinned)) {
            let message =
                format!("{}: {pinned} is no digest of {image}; nothing of it is used", file.display());
            return Err(LocalError::Untrusted(message));
        }
        Ok(ImagePins { file, known })
    }

    /// Puts the digests in the place of images in a Job or a StatefulSet.
    pub fn pin_images(&self, object: &mut Value) {
        let Some(pod) = object.pointer_mut("/spec/template/spec") else { return };
        for part in ["containers", "initContainers"] {
            let containers = pod.get_mut(part).and_then(Value::as_array_mut);
            for image in containers.into_iter().flatten().filter_map(|one| one.get_mut("image")) {
                if let Some(pinned) = image.as_str().and_then(|name| self.known.get(name)) {
                    *image = pinned.as_str().into();
                }
            }
        }
    }

    /// The image as the experiment names it.
    pub fn name_of<'a>(&'a self, image: &'a str) -> &'a str {
        self.known.iter().find(|(_, pinned)| *pinned == image).map_or(image, |(name, _)| name)
    }

    /// Takes down the digests of pods that are ready, for the next runs; returns what is to be said of images that are not one.
    /// An image that came by no registry has no digest, and stays as it is.
    pub fn note_images(&mut self, pods: &[Value]) -> io::Result<Vec<String>> {
        let mut found: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
        for pod in pods {
            let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
            let running = pod["status"]["containerStatuses"].as_array();
            for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
                let status = running.into_iter().flatten().find(|status| status["name"] == container["name"]);
                let id = status.and_then(|status| status["imageID"].as_str()).unwrap_or_default();
                if let Some(image) = container["image"].as_str().filter(|_| !id.is_empty()) {
                    let id = id.split_once("://").map_or(id, |(_, id)| id);
                    found.entry(image).or_default().insert((id, node));
                }
            }
        }
        let (mut messages, before) = (Vec::new(), self.known.len());
        for (image, places) in found {
            // One image may be known by names of several registries.
            let digest =
                |id: &'_ str| id.rsplit_once('@').map_or(id.to_owned(), |(_, digest)| digest.to_owned());
            let digests: BTreeSet<String> = places.iter().map(|(id, _)| digest(id)).collect();
            match digests.len() {
                1 => {
                    if let Some((id, _)) = places.iter().find(|(id, _)| is_digest_of(image, id)) {
                        self.known.insert(image.to_owned(), (*id).to_owned());
                    }
                }
                _ => {
                    let each: Vec<String> =
                        places.iter().map(|(id, node)| format!("{id} on {node}")).collect();
                    messages.push(format!(
                        "{image} is not the same image on all nodes: {}; name it by its digest, or have it pulled (pull: Always)",
                        each.join(", ")
                    ));
                }
            }
        }
        if self.known.len() > before {
            dyno_localhost::trusted::write(&self.file, &serde_json::to_vec(&self.known)?)?;
        }
        Ok(messages)
    }
}

/// Returns whether `pinned` is `image` by a digest: of the same repository and registry, which is Docker's where none is named.
fn is_digest_of(image: &str, pinned: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let Some((repository, digest)) = pinned.split_once("@sha256:") else { return false };
    // The last colon is that of a tag, unless a slash comes after it: then it is that of a port.
    let name =
        image.rsplit_once(':').map_or(image, |(name, tag)| if tag.contains('/') { image } else { name });
    let host = name.split_once('/').map_or("", |(host, _)| host);
    let has_host = host == "localhost" || host.contains(['.', ':']);
    let bare = repository.strip_prefix("docker.io/").filter(|_| !has_host);
    let is_same = repository == name
        || bare.is_some_and(|bare| bare == name || bare.strip_prefix("library/") == Some(name));
    is_same && digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn digest(letter: char) -> String {
        format!("sha256:{}", letter.to_string().repeat(64))
    }

    fn pod(node: &str, image: &str, id: &str) -> Value {
        json!({
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": image}]},
            "status": {"containerStatuses": [{"name": "c", "imageID": id}]},
        })
    }

    fn job(image: &str) -> Value {
        json!({"spec": {"template": {"spec": {"containers": [{"image": image}, {"image": "other:1"}]}}}})
    }

    #[test]
    fn the_first_run_chooses_the_image_of_all() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("kubernetes-a.json");
        let mut first = ImagePins::of_experiment(&journal).unwrap();
        let mut object = job("redis:7");
        first.pin_images(&mut object);
        assert_eq!(object, job("redis:7"));
        let redis = format!("docker.io/library/redis@{}", digest('a'));
        let pods = [
            pod("n0", "redis:7", &redis),
            pod("n1", "redis:7", &format!("docker-pullable://{redis}")),
            pod("n0", "localhost/dyno:test", &digest('b')),
        ];
        assert_eq!(first.note_images(&pods).unwrap(), Vec::<String>::new());
        let next = ImagePins::of_experiment(&folder.path().join("kubernetes-b.json")).unwrap();
        assert_eq!(next, first);
        next.pin_images(&mut object);
        assert_eq!(object, job(&redis));
        assert_eq!((next.name_of(&redis), next.name_of("other:1")), ("redis:7", "other:1"));
        // What it runs is found again, and is no image of its own.
        assert_eq!(first.note_images(&[pod("n0", &redis, &redis)]).unwrap(), Vec::<String>::new());
        assert_eq!(first, next);
    }

    #[test]
    fn an_image_that_is_two_is_told_and_not_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let mut pins = ImagePins::of_experiment(&folder.path().join("kubernetes-a.json")).unwrap();
        let id = |letter| format!("docker.io/library/redis@{}", digest(letter));
        let pods = [pod("n0", "redis:7", &id('a')), pod("n1", "redis:7", &id('b'))];
        let told = pins.note_images(&pods).unwrap();
        assert!(told.len() == 1 && told[0].contains("on n0") && told[0].contains("on n1"), "{told:?}");
        assert!(pins.known.is_empty() && !folder.path().join(FILE).exists());
    }

    #[test]
    fn a_digest_is_of_its_own_repository() {
        let digest = digest('a');
        for (image, repository, expected) in [
            ("redis:7", "docker.io/library/redis", true),
            ("redis", "redis", true),
            ("registry.example:5000/load/dyno:1", "registry.example:5000/load/dyno", true),
            ("registry.example:5000/dyno", "registry.example:5000/dyno", true),
            ("redis:7", "docker.io/library/import-2026-11-30", false),
            ("redis:7", "docker.io/library/notredis", false),
            ("dyno:1", "other.example/team/dyno", false),
            ("team/dyno:1", "docker.io/team/dyno", true),
            ("registry.example/dyno", "docker.io/registry.example/dyno", false),
        ] {
            assert_eq!(is_digest_of(image, &format!("{repository}@{digest}")), expected, "{image}");
        }
        assert!(!is_digest_of("redis:7", &digest) && !is_digest_of("redis:7", "redis@sha256:12"));
        let pinned = format!("redis@{digest}");
        assert!(!is_digest_of(&pinned, &pinned));
        let folder = tempfile::tempdir().unwrap();
        let text = format!("{{\"redis:7\": \"evil@{digest}\"}}");
        dyno_localhost::trusted::write(&folder.path().join(FILE), text.as_bytes()).unwrap();
        let read = ImagePins::of_experiment(&folder.path().join("kubernetes-a.json"));
        let refused = read.unwrap_err().to_string();
        assert!(refused.contains("is no digest of redis:7"), "{refused}");
    }
}
