//! The cluster that this process is in a pod of.
//!
//! kubectl takes address and credentials from its pod only where no option says anything of the cluster. With
//! `--request-timeout` it asks localhost instead (kubernetes/kubernetes issue 93474). A kubeconfig that names the pod's own
//! address and files has no such exception.

use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::json;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::OnceLock;

/// Name of the variable that says to which Job the objects of a run in this pod belong: `NAME/UID`.
pub(super) const OWNER: &str = "DYNO_OWNER";

/// Label of a run's objects and pods that names the controller whose pod has made them: what a killed pod has left is found
/// by it.
pub(super) const CONDUCTED_BY: &str = "dyno.controller";

/// Files of the pod's account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// A file in memory that children inherit, and the path that they find it by.
static KUBECONFIG: OnceLock<Option<(File, String)>> = OnceLock::new();

/// Returns the path of a kubeconfig for programs that this process starts, where it is in a pod and has no other kubeconfig.
pub(super) fn kubeconfig() -> Option<&'static str> {
    let made = KUBECONFIG.get_or_init(|| {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let text = kubeconfig_of(variable, Path::new(ACCOUNT))?;
        // Nothing in it is secret, and nothing is left of it when this process ends, however it does.
        let mut file = File::from(memfd_create("dyno-kubeconfig", MemfdFlags::empty()).ok()?);
        file.write_all(text.as_bytes()).ok()?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        Some((file, path))
    });
    made.as_ref().map(|(_, path)| path.as_str())
}

/// Returns the namespace of the pod that this process is in.
pub(super) fn account_namespace() -> Option<String> {
    let text = std::fs::read_to_string(Path::new(ACCOUNT).join("namespace")).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

/// The text of one, by the rules of kubectl: a kubeconfig of the user goes before the pod's account.
fn kubeconfig_of(variable: impl Fn(&str) -> Option<String>, account: &Path) -> Option<String> {
    let own = variable("HOME").map(|home| Path::new(&home).join(".kube/config"));
    if variable("KUBECONFIG").is_some() || own.is_some_and(|own| own.exists()) {
        return None;
    }
    let (host, port) = (variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let token = account.join("token");
    if !token.is_file() {
        return None;
    }
    let of_account = || std::fs::read_to_string(account.join("namespace")).ok();
    let namespace = variable("POD_NAMESPACE").or_else(of_account);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "pod",
        "clusters": [{"name": "pod", "cluster": {
            "server": format!("https://{host}:{port}"), "certificate-authority": account.join("ca.crt"),
        }}],
        // The cluster puts another token there from time to time.
        "users": [{"name": "pod", "user": {"tokenFile": token}}],
        "contexts": [{"name": "pod", "context": {
            "cluster": "pod", "user": "pod", "namespace": namespace.as_deref().map_or("default", str::trim),
        }}],
    });
    Some(config.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::fs;

    #[test]
    fn a_kubeconfig_names_address_and_files_of_the_pod() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().display().to_string();
        let with = |more: &[(&str, &str)]| {
            let pod = [("HOME", home.as_str()), ("KUBERNETES_SERVICE_HOST", "fd00::1")];
            let all = [&pod[..], &[("KUBERNETES_SERVICE_PORT", "443")], more].concat();
            let value =
                |name: &str| all.iter().rfind(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
            kubeconfig_of(value, folder.path())
        };
        assert_eq!(with(&[]), None, "the pod has no account");
        fs::write(folder.path().join("token"), "secret").unwrap();
        fs::write(folder.path().join("namespace"), "bench\n").unwrap();
        let text = with(&[]).unwrap();
        assert!(!text.contains("secret"), "{text}");
        let config: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(config["clusters"][0]["cluster"]["server"], "https://[fd00::1]:443");
        assert_eq!(config["users"][0]["user"]["tokenFile"], format!("{home}/token"));
        assert_eq!(config["contexts"][0]["context"]["namespace"], "bench");
        assert!(with(&[("POD_NAMESPACE", "other")]).unwrap().contains("\"namespace\":\"other\""));
        // The user's own goes first.
        assert_eq!(with(&[("KUBECONFIG", "mine")]), None);
        fs::create_dir(folder.path().join(".kube")).unwrap();
        fs::write(folder.path().join(".kube/config"), "").unwrap();
        assert_eq!(with(&[]), None);
    }

    #[test]
    fn outside_of_pods_there_is_none() {
        assert_eq!(kubeconfig_of(|_| None, Path::new("/nowhere")), None);
    }
}
