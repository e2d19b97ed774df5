//! The rights that dyno needs in a cluster, as objects for the administrator who may grant them.

use serde_json::{Value, json};

/// Returns the role that running dyno needs in the namespace, and nothing more.
pub fn required_role(namespace: Option<&str>) -> Vec<Value> {
    let mut metadata = json!({"name": "dyno"});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| {
        let groups = [group];
        json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
    };
    let made = ["create", "get", "list", "delete"];
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
            "rules": [
                rule("batch", &["jobs"], &["create", "get", "list", "delete", "patch"]),
                rule("apps", &["statefulsets"], &made),
                rule("", &["services", "configmaps"], &made),
                // A user who may list secrets reads those of all users in the namespace.
                rule("", &["secrets"], &["create", "get", "delete"]),
                rule("", &["persistentvolumeclaims"], &["create", "get", "list", "delete", "patch"]),
                rule("", &["pods"], &["get", "list"]),
                // A controller in the cluster tells its Job how the experiment goes.
                rule("", &["events"], &["create", "get", "list"]),
                rule("", &["pods/exec"], &["create", "get"]),
                rule("", &["pods/log"], &["get"]),
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "dyno"},
            "subjects": [{"kind": "ServiceAccount", "name": "dyno"}],
        }),
    ]
}

/// The right to ask kubelets what pods use, which no role of a namespace can give, for dyno's account in a namespace.
pub fn role_for_kubelets(namespace: &str) -> Vec<Value> {
    let metadata = json!({"name": "dyno-kubelets"});
    // Accounts of several namespaces may have it.
    let binding = json!({"name": format!("dyno-kubelets-{namespace}")});
    let subject = json!({"kind": "ServiceAccount", "name": "dyno", "namespace": namespace});
    let api = "rbac.authorization.k8s.io";
    vec![
        json!({
            "apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": metadata,
            "rules": [{"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]}],
        }),
        json!({
            "apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": binding,
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "dyno-kubelets"}, "subjects": [subject],
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_is_needed() {
        let rights = required_role(Some("bench"));
        assert!(!rights[1].to_string().contains('*'), "least privilege");
        let of = |kind: &str| {
            let rules = rights[1]["rules"].as_array().unwrap().iter();
            rules.filter(|rule| rule["resources"].to_string().contains(kind)).cloned().collect::<Vec<_>>()
        };
        let secrets =
            json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "get", "delete"]});
        assert_eq!(of("secrets"), [secrets]);
        let kubelets = role_for_kubelets("bench");
        assert_eq!(
            kubelets[0]["rules"],
            json!([{"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]}])
        );
        assert_eq!(kubelets[1]["subjects"][0]["namespace"], "bench");
    }
}
