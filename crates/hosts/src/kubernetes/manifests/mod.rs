//! What is made in the cluster for one run: objects of the namespace alone.
//!
//! Pods pass the restricted policy of the Pod Security Standards: no root, no privileges, no capabilities, the runtime's own
//! seccomp profile, and no token of the API. Those that the experiment says are `privileged` do not.

pub(super) mod pod;
pub mod server;

use crate::kubernetes::manifests::pod::{
    DYNO, HOME, container_security, dyno_image, labels, pod, pull, resources,
};
use crate::kubernetes::manifests::server::{Instance, first_port, instance_ports};
use dyno_config::experiment::Experiment;
use dyno_config::experiment::fault::On;
use dyno_config::experiment::kubernetes::{Kubernetes, Pods};
use dyno_config::server::placement::Placement;
use dyno_config::server::{ServerSpec, Setting};
use dyno_localhost::error::LocalError;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

/// Time that workers' pods wait for a controller to speak to them.
const PATIENCE: &str = "120s";
/// Where workers' pods listen for the relay's hub.
pub(super) const RELAY_PORT: u16 = 7_411;
/// Suffix of the name of the Job of pods that only load.
pub(super) const LOADERS: &str = "l";
/// The run's token in workers' pods, as they and the hub read it.
pub const TOKEN: &str = "/etc/dyno/token";
/// Placeholder of the token that is made for each run: too short to be one.
pub const NO_TOKEN: &str = "random-for-each-run";

/// Objects of a run.
#[derive(Clone, Debug)]
pub struct Manifests {
    /// Name of the run.
    pub name: String,
    /// The workers' Job, which owns everything else.
    pub job: Value,
    /// Secrets, Services and StatefulSets of the servers.
    pub others: Vec<Value>,
    /// The label that all of them have: `dyno.run=NAME`.
    pub selector: String,
    /// Names of the instances' StatefulSets, in the order of their processes.
    pub servers: Vec<String>,
    /// Port of the servers.
    pub port: u16,
    /// Warnings about objects of the user's.
    pub warnings: Vec<String>,
}

/// Placeholder of a password in manifests that are shown.
const NO_PASSWORD: &str = "random-for-each-run";

/// An experiment whose servers listen on all addresses of their pods.
pub fn everywhere(spec: &Experiment) -> Experiment {
    let address = Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let server = spec.server.as_ref().map(|server| ServerSpec { address, ..server.clone() });
    Experiment { server, ..spec.clone() }
}

/// The objects that a run would make, to be shown: its name is `RUN`, token and password are placeholders.
pub fn preview_manifests(spec: &Experiment, asked: &Kubernetes) -> Result<Manifests, LocalError> {
    let mut own = everywhere(spec);
    if let Some(server) = own.server.as_mut()
        && let Some(option) = server.lacks_password()
    {
        server.options.insert(option.into(), Setting::Text(NO_PASSWORD.into()));
    }
    run_manifests(&own, asked, crate::kubernetes::manifest_overrides::RUN, NO_TOKEN)
}

/// The objects of a run that is called `name`, whose pods know each other by `token`. Names of objects are short: Kubernetes adds
/// its own.
pub fn run_manifests(
    spec: &Experiment,
    asked: &Kubernetes,
    name: &str,
    token: &str,
) -> Result<Manifests, LocalError> {
    let port = spec.server.as_ref().map_or(0, first_port);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("{name}-w"), "labels": labels(name, "worker", DYNO)},
        "stringData": {"token": token},
    });
    // Workers' pods wait for it: it comes first.
    let (mut others, mut servers) = (vec![secret], Vec::new());
    if let Some(server) = &spec.server {
        for instance in 0..server.instances as usize {
            // A volume's claims are called after the set: later runs find them by its name, and two at once are refused.
            let own = match &server.data.volume {
                Some(volume) => format!("dyno-{}-{instance}", volume.name),
                None => format!("{name}-s{instance}"),
            };
            let signalled = spec.faults.iter().any(|fault| !matches!(fault.on, On::Worker(_)));
            let port = instance_ports(server, asked)[instance];
            let instance = Instance {
                server,
                asked,
                host: &spec.host,
                run: name,
                name: own,
                number: instance,
                port,
                signalled,
            };
            let made = instance.made()?;
            others.extend(made.objects);
            servers.extend(made.sets);
        }
    }
    if asked.load_pods > 0 {
        others.push(job(asked, name, None, (&asked.loaders, asked.load_pods, LOADERS)));
    }
    let placement = Some(&spec.client.placement).filter(|placement| !placement.is_nothing());
    let mut job = job(asked, name, placement, (&asked.workers, asked.worker_pods, "w"));
    let mut warnings = Vec::new();
    if let Some(folder) = &asked.manifests {
        let given =
            crate::kubernetes::manifest_overrides::read(Path::new(folder)).map_err(LocalError::Refused)?;
        given.take_place(name, &mut job, &mut others);
        warnings = given.warnings;
    }
    Ok(Manifests {
        name: name.into(),
        job,
        others,
        selector: format!("dyno.run={name}"),
        servers,
        port,
        warnings,
    })
}

/// Pods that wait for a controller. The Job ends well when none has spoken for a while, and is then deleted with all it owns.
fn job(
    asked: &Kubernetes,
    run: &str,
    placement: Option<&Placement>,
    (pods, count, suffix): (&Pods, u32, &str),
) -> Value {
    let mut chosen = json!({"dyno.run": run, "app.kubernetes.io/component": "worker"});
    if asked.load_pods > 0 {
        // Each sort is spread by itself.
        chosen["batch.kubernetes.io/job-name"] = format!("{run}-{suffix}").into();
    }
    let image = dyno_image(asked);
    let mut spec = pod(pods, asked, &chosen);
    spec.insert("restartPolicy".into(), "Never".into());
    let port = RELAY_PORT.to_string();
    let mut command = ["dyno", "pod", "--patience", PATIENCE, "--port", &port, "--token", TOKEN]
        .map(str::to_owned)
        .to_vec();
    command.extend(placement.into_iter().flat_map(|own| ["--placement".to_owned(), json!(own).to_string()]));
    spec.insert(
        "containers".into(),
        json!([{
            "name": "worker",
            "image": image,
            "imagePullPolicy": pull(asked),
            "command": command,
            "ports": [{"name": "relay", "containerPort": RELAY_PORT}],
            "resources": resources(pods),
            "securityContext": container_security(pods),
            "env": [{"name": "HOME", "value": "/tmp"}],
            "volumeMounts": [
                {"name": "tmp", "mountPath": "/tmp"},
                {"name": "token", "mountPath": HOME, "readOnly": true},
            ],
        }]),
    );
    // Readable for the group, which is that of the pod.
    let token = json!({"secretName": format!("{run}-w"), "defaultMode": 0o440});
    spec.insert(
        "volumes".into(),
        json!([{"name": "tmp", "emptyDir": {}}, {"name": "token", "secret": token}]),
    );
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": format!("{run}-{suffix}"), "labels": labels(run, "worker", DYNO)},
        "spec": {
            "completions": count,
            "parallelism": count,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": 0,
            "template": {"metadata": {"labels": labels(run, "worker", DYNO)}, "spec": spec},
        },
    })
}

/// Objects as one text of YAML documents.
///
/// # Errors
/// An object is none that YAML can write.
pub fn to_yaml(objects: &[Value]) -> Result<String, serde_saphyr::SerializeError> {
    let documents = objects.iter().map(serde_saphyr::to_string);
    Ok(documents.collect::<Result<Vec<String>, _>>()?.join("---\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_config::experiment::read_plan;

    fn made(text: &str) -> Manifests {
        let plan = read_plan(text, "x.yaml", &[]).unwrap();
        let spec = &plan.cells[0].spec;
        run_manifests(spec, spec.kubernetes.as_ref().unwrap(), "d1", "0123").unwrap()
    }

    #[test]
    fn a_cluster_with_volumes() {
        let made = made(
            "server: {kind: redis, topology: cluster, members: 3, replicas: 1, options: {requirepass: hush}}\n\
             kubernetes:\n  worker_pods: 8\n  pull: Never\n\
             \x20 servers: {requests: {cpu: 2}, limits: {memory: 4Gi}, one_per_node: true}\n\
             \x20 storage: {class: fast, size: 1GiB, keep: true}\n",
        );
        assert_eq!(made.job["spec"]["completions"], 8);
        assert_eq!(made.servers, ["d1-s0"]);
        let set = made.others.iter().find(|object| object["kind"] == "StatefulSet").unwrap();
        assert_eq!(set["spec"]["replicas"], 6);
        assert_eq!(set["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"], "Retain");
        assert_eq!(set["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"], "fast");
        let pod = &set["spec"]["template"]["spec"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["automountServiceAccountToken"], false);
        let container = &pod["containers"][0];
        assert_eq!(container["resources"], json!({"requests": {"cpu": "2"}, "limits": {"memory": "4Gi"}}));
        assert_eq!(container["securityContext"]["capabilities"]["drop"][0], "ALL");
        assert_eq!(container["command"], json!(["redis-server", "/etc/dyno/redis.conf"]));
        assert!(pod["affinity"]["podAntiAffinity"].is_object());
        // Password and token stand in a secret each and nowhere else.
        for secret in ["hush", "\"0123\""] {
            let with = |object: &&Value| object.to_string().contains(secret);
            let kinds: Vec<&Value> = made.others.iter().filter(with).map(|object| &object["kind"]).collect();
            assert_eq!(kinds, ["Secret"], "{secret}");
            assert!(!with(&&made.job));
        }
        for object in made.others.iter().chain([&made.job]) {
            assert_eq!(object["metadata"]["labels"]["dyno.run"], "d1");
            let labels = &object["metadata"]["labels"];
            assert_eq!(labels["app.kubernetes.io/managed-by"], "dyno");
            // That of dyno's image; a server's is its own.
            let version = labels["app.kubernetes.io/version"].as_str();
            let own = labels["app.kubernetes.io/component"] == "worker";
            assert_eq!(version, own.then_some(env!("CARGO_PKG_VERSION")));
        }
    }

    /// As in bexhoma's example: the image, memory from the limit, time to write the data, and volumes of 50Gi.
    #[test]
    fn dragonfly_on_a_volume() {
        let set = |text: &str| {
            let made = made(text);
            let file = made.others.iter().find(|object| object["kind"] == "ConfigMap").unwrap();
            let set = made.others.iter().find(|object| object["kind"] == "StatefulSet").unwrap();
            (set["spec"].clone(), file["data"]["dragonfly.flags"].as_str().unwrap().to_owned())
        };
        let (spec, flags) = set("server: {kind: dragonfly, data: {volume: {name: ycsb-1}}}\n\
             kubernetes: {servers: {limits: {memory: 10Gi}}, storage: {size: 50GiB}}\n");
        let pod = &spec["template"]["spec"];
        assert_eq!(pod["containers"][0]["image"], "docker.dragonflydb.io/dragonflydb/dragonfly:v1.37.0");
        assert_eq!(pod["terminationGracePeriodSeconds"], 180);
        let claim = &spec["volumeClaimTemplates"][0]["spec"];
        assert_eq!(claim["resources"]["requests"]["storage"], "50Gi");
        assert!(
            flags.lines().any(|flag| flag == format!("--maxmemory={}", (10_u64 << 30) / 5 * 4)),
            "{flags}"
        );
        assert!(flags.lines().any(|flag| flag == "--dbfilename=dump"), "it writes them at its end: {flags}");
        // A cache that is asked for stays; without a limit it is Dragonfly's own.
        let (spec, flags) =
            set("server: {kind: dragonfly, cache: 3GiB}\nkubernetes: {servers: {limits: {memory: 10Gi}}}\n");
        assert!(flags.contains("--maxmemory=3221225472"), "{flags}");
        assert_eq!(spec["template"]["spec"]["terminationGracePeriodSeconds"], 10);
        let (_, flags) = set("server: {kind: dragonfly}\nkubernetes: {}\n");
        assert!(!flags.contains("maxmemory"), "{flags}");
    }

    /// Pods of an object, by its kind and the end of its name.
    fn pod_of<'a>(made: &'a Manifests, kind: &str, end: &str) -> &'a Value {
        let all = made.others.iter().chain([&made.job]);
        let is = |object: &&Value| {
            object["kind"] == kind && object["metadata"]["name"].as_str().unwrap().ends_with(end)
        };
        &all.into_iter().find(is).unwrap()["spec"]["template"]["spec"]
    }

    #[test]
    fn privileged_servers_are_on_their_nodes_network_and_start_in_their_place() {
        let made = made(
            "server: {kind: redis, instances: 2, port: 7000, placement: {policy: node, cores: 0-3}, data: {path: [/a, /b]}}\n\
             host: {swappiness: 1}\n\
             client: {placement: {cores: 4-7}}\n\
             kubernetes: {servers: {privileged: true}, workers: {privileged: true}}\n",
        );
        for (set, port, folder) in [("-s0", 7_000, "/a"), ("-s1", 7_001, "/b")] {
            let pod = pod_of(&made, "StatefulSet", set);
            assert_eq!(
                (&pod["hostNetwork"], &pod["securityContext"]["runAsUser"]),
                (&json!(true), &json!(0))
            );
            let server = &pod["containers"][0];
            assert_eq!(server["securityContext"], json!({"privileged": true}));
            assert_eq!(server["ports"][0]["containerPort"], port);
            assert_eq!(
                server["command"],
                json!(["sh", "/placed/start", "redis-server", "/etc/dyno/redis.conf"])
            );
            assert_eq!(server["volumeMounts"][0]["subPathExpr"], "dyno-$(POD_NAME)");
            let place = &pod["initContainers"][0]["command"];
            let word = |name: &str| {
                let words = place.as_array().unwrap();
                let at = words.iter().position(|word| word == name).unwrap();
                words[at + 1].as_str().unwrap().to_owned()
            };
            assert_eq!((word("--ports"), word("--number")), ("7000,7001".into(), set[2..].to_owned()));
            let placement: Placement = serde_json::from_str(&word("--placement")).unwrap();
            assert_eq!(placement.cores.unwrap().0, [0, 1, 2, 3]);
            let tend = &pod["initContainers"][1];
            assert_eq!(tend["restartPolicy"], "Always", "it ends after the server");
            let told = json!([
                "dyno",
                "tend",
                "--host",
                "{\"swappiness\":1}",
                "--discard",
                "/node/dyno-$(POD_NAME)"
            ]);
            assert_eq!(tend["command"], told);
            let data = pod["volumes"].as_array().unwrap().iter().find(|one| one["name"] == "data").unwrap();
            assert_eq!(data["hostPath"]["path"], folder);
        }
        let worker = &pod_of(&made, "Job", "-w")["containers"][0];
        assert!(worker["command"].to_string().contains("--placement"), "{worker}");
    }

    #[test]
    fn workers_go_where_no_server_is_and_all_are_spread_over_zones() {
        let made = made("server: {kind: redis, instances: 2}\nkubernetes: {worker_pods: 2, user: cluster}\n");
        let worker = pod_of(&made, "Job", "-w");
        let rules = &worker["affinity"]["podAntiAffinity"];
        let first = &rules["preferredDuringSchedulingIgnoredDuringExecution"][0];
        let labels = &first["podAffinityTerm"]["labelSelector"]["matchLabels"];
        assert_eq!(labels["app.kubernetes.io/component"], "server");
        assert_eq!(labels["dyno.run"], Value::Null, "servers that stay are of another run");
        assert!(rules["requiredDuringSchedulingIgnoredDuringExecution"].is_null(), "where there is room");
        let server = pod_of(&made, "StatefulSet", "-s0");
        for pod in [worker, server] {
            let keys = pod["topologySpreadConstraints"].as_array().unwrap().iter();
            let keys: Vec<&str> = keys.map(|one| one["topologyKey"].as_str().unwrap()).collect();
            assert_eq!(keys, ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
            assert_eq!(pod["securityContext"]["runAsUser"], Value::Null, "the cluster chooses");
            assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        }
        assert!(server["affinity"].is_null());
    }

    #[test]
    fn a_volume_is_called_by_its_name() {
        let made = made(
            "server: {kind: redis, data: {volume: {name: ycsb-1}}}\nkubernetes: {storage: {size: 1GiB}}\n",
        );
        assert_eq!(made.servers, ["dyno-ycsb-1-0"]);
        let set = made.others.iter().find(|object| object["kind"] == "StatefulSet").unwrap();
        assert_eq!(set["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"], "Retain");
        let labels = &set["spec"]["volumeClaimTemplates"][0]["metadata"]["labels"];
        assert_eq!((&labels["dyno.volume"], &labels["dyno.run"]), (&json!("ycsb-1"), &Value::Null));
    }

    #[test]
    fn pairs_have_a_set_each() {
        let made = made(
            "server: {kind: mongod, instances: 2}\nkubernetes: {workers: {node_selector: {role: load}}}\n",
        );
        assert_eq!((made.servers.len(), made.port), (2, 27_017));
        // A configuration without a password is no secret; each pair has a name of its own for others.
        let names = |kind: &str| {
            let own = made.others.iter().filter(|object| object["kind"] == kind);
            own.map(|object| object["metadata"]["name"].as_str().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names("ConfigMap"), ["d1-s0", "d1-s1"]);
        assert_eq!(names("Service"), ["d1-s0-client", "d1-s0", "d1-s1-client", "d1-s1"]);
        assert_eq!(made.job["spec"]["template"]["spec"]["nodeSelector"]["role"], "load");
    }

    #[test]
    fn a_sharded_cluster_has_a_set_for_each_part() {
        let made = made(
            "server: {kind: mongod, topology: sharded, members: 2, replicas: 2, routers: 2}\n\
             kubernetes: {servers: {one_per_node: true}}\n",
        );
        assert_eq!(
            made.servers,
            ["config", "shard-0", "shard-1", "router"].map(|part| format!("d1-s0-{part}"))
        );
        let of = |kind: &str, name: &str| {
            let is = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
            made.others.iter().find(is).unwrap_or_else(|| panic!("{kind} {name}")).clone()
        };
        let sets: Vec<Value> = made.servers.iter().map(|name| of("StatefulSet", name)).collect();
        assert_eq!(
            sets.iter().map(|set| set["spec"]["replicas"].as_u64().unwrap()).collect::<Vec<_>>(),
            [1, 3, 3, 2]
        );
        let commands = sets.iter().map(|set| &set["spec"]["template"]["spec"]["containers"][0]["command"][0]);
        assert_eq!(commands.collect::<Vec<_>>(), ["mongod", "mongod", "mongod", "mongos"]);
        let text = |name: &str, file: &str| of("ConfigMap", name)["data"][file].as_str().unwrap().to_owned();
        assert!(text("d1-s0-config", "mongod.conf").contains("\"configsvr\""));
        assert!(text("d1-s0-shard-1", "mongod.conf").contains("\"rs0-1\""));
        let routers = text("d1-s0-router", "mongos.conf");
        assert!(routers.contains("configDB: \"cfg0/d1-s0-config-0.d1-s0-config:27017\""), "{routers}");
        // Clients find routers; each set selects its own pods, and all of them keep apart from each other.
        assert_eq!(of("Service", "d1-s0-client")["spec"]["selector"]["dyno.part"], "router");
        for (set, name) in sets.iter().zip(&made.servers) {
            let labels = &set["spec"]["template"]["metadata"]["labels"];
            assert_eq!(set["spec"]["selector"]["matchLabels"]["dyno.part"], labels["dyno.part"]);
            assert_eq!(of("Service", name)["spec"]["selector"]["dyno.part"], labels["dyno.part"]);
            let apart = set["spec"]["template"]["spec"]["affinity"].to_string();
            assert!(apart.contains("\"dyno.server\":\"d1-s0\"") && !apart.contains("dyno.part"), "{apart}");
        }
    }

    #[test]
    fn pods_that_only_load_have_a_job_of_their_own() {
        let made = made(
            "server: {kind: redis}\nkubernetes: {worker_pods: 2, load_pods: 8, loaders: {node_selector: {role: load}}, \
             workers: {node_selector: {role: bench}, one_per_node: true}}\n",
        );
        let loaders = made.others.iter().find(|object| object["kind"] == "Job").unwrap();
        assert_eq!(
            (&loaders["metadata"]["name"], &loaders["spec"]["completions"]),
            (&json!("d1-l"), &json!(8))
        );
        assert_eq!(made.job["spec"]["completions"], 2);
        let pod = |job: &Value| job["spec"]["template"]["spec"].clone();
        assert_eq!(pod(loaders)["nodeSelector"]["role"], "load");
        assert_eq!(pod(&made.job)["nodeSelector"]["role"], "bench");
        let apart = pod(&made.job)["affinity"].to_string();
        assert!(apart.contains("\"batch.kubernetes.io/job-name\":\"d1-w\""), "of their own sort: {apart}");
    }
}
