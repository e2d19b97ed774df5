//! The digests of an experiment's images: a tag may mean another image by its next run, and these two would be compared as one.

use dyno_localhost::error::LocalError;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

/// The file in an experiment's directory.
const FILE: &str = "images.json";

/// Why a container has no image, by the cluster's reasons: the first is never pulled, the others are tried again.
const NOT_PULLED: [&str; 3] = ["ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff"];

/// Images as the experiment names them, each with the digest that its first run has found: `REPOSITORY@sha256:...` for one that
/// is asked for by it, `sha256:...` for one that nodes have by its name alone, and whose digest is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ImagePins {
    file: PathBuf,
    known: BTreeMap<String, String>,
}

/// What pods that are ready say of their images.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ImagesFound {
    /// Images that are not the same on all nodes.
    pub warnings: Vec<String>,
    /// Images that are others than in the first run.
    pub changed: Vec<String>,
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
        let is_known = |image: &str, pinned: &str| is_digest(pinned) || is_digest_of(image, pinned);
        if let Some((image, pinned)) = known.iter().find(|(image, pinned)| !is_known(image, pinned)) {
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
                let pinned = image.as_str().and_then(|name| self.known.get(name));
                if let Some(pinned) = pinned.filter(|pinned| !is_digest(pinned)) {
                    *image = pinned.as_str().into();
                }
            }
        }
    }

    /// The image as the experiment names it.
    pub fn name_of<'a>(&'a self, image: &'a str) -> &'a str {
        self.known.iter().find(|(_, pinned)| *pinned == image).map_or(image, |(name, _)| name)
    }

    /// The image, as the experiment names it, that a pod waits for in vain: its node has it by that name and not by its digest,
    /// which no registry gives either. So it is with images that were loaded into nodes. A registry that is away comes back: its
    /// image is waited for until that was `long`.
    pub fn not_pulled(&self, pod: &Value, long: bool) -> Option<String> {
        let reasons = if long { &NOT_PULLED[..] } else { &NOT_PULLED[..1] };
        let waits_in_vain =
            |status: &Value| reasons.iter().any(|reason| status["state"]["waiting"]["reason"] == *reason);
        let mut waiting = containers_of(pod).filter(|(_, status)| status.is_some_and(waits_in_vain));
        waiting.find_map(|(container, _)| {
            let image = container["image"].as_str()?;
            self.known.iter().find(|(_, pinned)| *pinned == image).map(|(name, _)| name.clone())
        })
    }

    /// Asks for this image by its name from now on; its digest is compared.
    pub fn unpin(&mut self, image: &str) -> io::Result<()> {
        if let Some(pinned) = self.known.get_mut(image) {
            *pinned = digest_of(pinned).to_owned();
        }
        self.write()
    }

    /// Takes down the digests of pods that are ready, for the next runs. An image that has no digest stays as it is.
    pub fn note_images(&mut self, pods: &[Value]) -> io::Result<ImagesFound> {
        let mut found: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
        for pod in pods {
            let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
            for (container, status) in containers_of(pod) {
                let id = status.and_then(|status| status["imageID"].as_str()).unwrap_or_default();
                if let Some(image) = container["image"].as_str().filter(|_| !id.is_empty()) {
                    let id = id.split_once("://").map_or(id, |(_, id)| id);
                    found.entry(image).or_default().insert((id, node));
                }
            }
        }
        let (mut said, before) = (ImagesFound::default(), self.known.len());
        for (image, places) in found {
            // One image may be known by names of several registries.
            let digests: BTreeSet<&str> = places.iter().map(|(id, _)| digest_of(id)).collect();
            let each: Vec<String> = places.iter().map(|(id, node)| format!("{id} on {node}")).collect();
            match self.known.get(image) {
                Some(pinned) if digests.iter().any(|found| *found != digest_of(pinned)) => {
                    said.changed.push(format!(
                        "{image} is another image than in the first run of this experiment, which had {pinned}: {}; name \
                         it by its digest, or begin a new experiment",
                        each.join(", ")
                    ));
                }
                Some(_) => {}
                None if digests.len() == 1 => {
                    if let Some((id, _)) = places.iter().find(|(id, _)| is_digest_of(image, id)) {
                        self.known.insert(image.to_owned(), (*id).to_owned());
                    }
                }
                None => said.warnings.push(format!(
                    "{image} is not the same image on all nodes: {}; name it by its digest, or have it pulled (pull: Always)",
                    each.join(", ")
                )),
            }
        }
        if self.known.len() > before {
            self.write()?;
        }
        Ok(said)
    }

    fn write(&self) -> io::Result<()> {
        dyno_localhost::trusted::write(&self.file, &serde_json::to_vec(&self.known)?)
    }
}

/// All containers of a pod, each with its status if there is one.
fn containers_of(pod: &Value) -> impl Iterator<Item = (&Value, Option<&Value>)> {
    fn list(value: &Value) -> &[Value] {
        value.as_array().map(Vec::as_slice).unwrap_or_default()
    }
    [("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")].into_iter().flat_map(
        move |(part, statuses)| {
            let statuses = list(&pod["status"][statuses]);
            let status = move |name: &Value| statuses.iter().find(|status| status["name"] == *name);
            list(&pod["spec"][part]).iter().map(move |container| (container, status(&container["name"])))
        },
    )
}

/// The digest of an image's id, or all of it.
fn digest_of(id: &str) -> &str {
    id.rsplit_once('@').map_or(id, |(_, digest)| digest)
}

/// Returns whether a text is a digest, without a repository.
fn is_digest(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns whether `pinned` is `image` by a digest: of the same repository and registry, which is Docker's where none is named.
fn is_digest_of(image: &str, pinned: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let Some((repository, digest)) = pinned.split_once('@') else { return false };
    // The last colon is that of a tag, unless a slash comes after it: then it is that of a port.
    let name =
        image.rsplit_once(':').map_or(image, |(name, tag)| if tag.contains('/') { image } else { name });
    let host = name.split_once('/').map_or("", |(host, _)| host);
    let has_host = host == "localhost" || host.contains(['.', ':']);
    let bare = repository.strip_prefix("docker.io/").filter(|_| !has_host);
    let is_same = repository == name
        || bare.is_some_and(|bare| bare == name || bare.strip_prefix("library/") == Some(name));
    is_same && is_digest(digest)
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
        assert_eq!(first.note_images(&pods).unwrap(), ImagesFound::default());
        let next = ImagePins::of_experiment(&folder.path().join("kubernetes-b.json")).unwrap();
        assert_eq!(next, first);
        next.pin_images(&mut object);
        assert_eq!(object, job(&redis));
        assert_eq!((next.name_of(&redis), next.name_of("other:1")), ("redis:7", "other:1"));
        // What it runs is found again, and is no image of its own.
        assert_eq!(first.note_images(&[pod("n0", &redis, &redis)]).unwrap(), ImagesFound::default());
        assert_eq!(first, next);
    }

    #[test]
    fn what_begins_a_pod_is_pinned_too() {
        let folder = tempfile::tempdir().unwrap();
        let mut pins = ImagePins::of_experiment(&folder.path().join("kubernetes-a.json")).unwrap();
        let id = format!("docker.io/library/busybox@{}", digest('c'));
        let pod = json!({
            "spec": {"nodeName": "n0", "containers": [], "initContainers": [{"name": "i", "image": "busybox:1"}]},
            "status": {"initContainerStatuses": [{"name": "i", "imageID": id}]},
        });
        assert_eq!(pins.note_images(&[pod]).unwrap(), ImagesFound::default());
        let mut object =
            json!({"spec": {"template": {"spec": {"initContainers": [{"image": "busybox:1"}]}}}});
        pins.pin_images(&mut object);
        assert_eq!(object["spec"]["template"]["spec"]["initContainers"][0]["image"], id);
    }

    #[test]
    fn an_image_that_is_two_is_told_and_not_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let mut pins = ImagePins::of_experiment(&folder.path().join("kubernetes-a.json")).unwrap();
        let id = |letter| format!("docker.io/library/redis@{}", digest(letter));
        let pods = [pod("n0", "redis:7", &id('a')), pod("n1", "redis:7", &id('b'))];
        let told = pins.note_images(&pods).unwrap().warnings;
        assert!(told.len() == 1 && told[0].contains("on n0") && told[0].contains("on n1"), "{told:?}");
        assert!(pins.known.is_empty() && !folder.path().join(FILE).exists());
    }

    #[test]
    fn an_image_that_nodes_have_by_its_name_alone_is_compared() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("kubernetes-a.json");
        let mut pins = ImagePins::of_experiment(&journal).unwrap();
        let id = |letter| format!("docker.io/library/dyno@{}", digest(letter));
        pins.note_images(&[pod("n0", "dyno", &id('a'))]).unwrap();
        let waits = |image: &str, reason: &str| {
            json!({
                "spec": {"containers": [{"name": "other", "image": "other:1"}, {"name": "c", "image": image}]},
                "status": {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": reason}}}]},
            })
        };
        for reason in ["ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"] {
            assert_eq!(pins.not_pulled(&waits(&id('a'), reason), true).as_deref(), Some("dyno"));
            // A registry may come back.
            assert_eq!(
                pins.not_pulled(&waits(&id('a'), reason), false).is_some(),
                reason == "ErrImageNeverPull"
            );
        }
        assert_eq!(pins.not_pulled(&waits(&id('a'), "ContainerCreating"), true), None);
        // By its name it was not pinned: what waits is the registry's.
        assert_eq!(pins.not_pulled(&waits("dyno", "ErrImagePull"), true), None);
        pins.unpin("dyno").unwrap();
        let mut next = ImagePins::of_experiment(&journal).unwrap();
        assert_eq!(next, pins);
        let mut object = job("dyno");
        next.pin_images(&mut object);
        assert_eq!(object, job("dyno"));
        assert_eq!(next.note_images(&[pod("n1", "dyno", &id('a'))]).unwrap(), ImagesFound::default());
        let changed =
            next.note_images(&[pod("n1", "dyno", &id('a')), pod("n2", "dyno", &id('b'))]).unwrap().changed;
        assert!(changed.len() == 1 && changed[0].contains(&format!("{} on n2", id('b'))), "{changed:?}");
        assert_eq!(next, pins, "what the first run had stays");
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
