#!/bin/bash
# node.sh ACTION NUMBER   a node of the Kubernetes that up.sh started: nodeNUMBER, a containerd, a kubelet and a kube-proxy of its own
#   start      its network (a namespace of its own, kubelabNUMBER; node0 is in that of the control plane), programs, zone
#   die        its kubelet and its containerd end at once, and every process of its pods: as when its power fails
#   cut        nothing passes between it and the rest
#   mend       the end of `cut`
#   pressure   its kubelet says that memory is short, and evicts
set -euo pipefail
ACTION=${1:?ACTION} n=${2:?NUMBER}
LAB=${KUBELAB:-$HOME/.cache/kubelab}; RUN=$LAB/run; BIN=$LAB/bin
OWN=$RUN/node$n; SOCKET=/run/kubelab$n/containerd.sock; PODS=10.244.$n.0/24; DNS=10.96.0.10
MASTER=198.18.0.1
[ "$n" = 0 ] && { NS=kubelab; IP=$MASTER; } || { NS=kubelab$n; IP=198.18.0.1$n; }
M="nsenter --net=/run/netns/kubelab"; N="nsenter --net=/run/netns/$NS"
K="$M $BIN/kubectl --kubeconfig $RUN/admin.kubeconfig"
spawn() { local name=$1; shift; $N setsid nice -n "${NICE:-0}" "$@" >>"$RUN/log/$name.log" 2>&1 </dev/null & echo "$! $name" >> "$RUN/pids"; }
waitfor() { local what=$1 i; shift; for ((i=0;i<450;i++)); do "$@" >/dev/null 2>&1 && return 0; sleep 0.2; done; echo "$what NOT ready"; return 1; }
pid_of() { awk -v name="$1" '$2 == name {pid = $1} END {print pid}' "$RUN/pids"; }
kubelet() { spawn "kubelet$n" "$BIN/kubelet" --config="$OWN/kubelet.yaml" --kubeconfig="$OWN/kubeconfig" --root-dir="$OWN/root" --hostname-override="node$n" --node-ip="$IP" --node-labels="topology.kubernetes.io/zone=zone$n" --v=2; }

case $ACTION in
start)
  mkdir -p "$OWN"/{root,containerd,cni} "/run/kubelab$n"
  if [ "$n" != 0 ]; then
    # A cable between the namespaces; the control plane's is the router.
    ip netns add "$NS"
    $N ip link set lo up
    $M ip link add "to$n" type veth peer name up0 netns "$NS"
    $M ip link set "to$n" up; $M ip route add "$IP" dev "to$n"; $M ip route add "$PODS" via "$IP" dev "to$n" onlink
    $N ip addr add "$IP/32" dev up0; $N ip link set up0 up
    $N ip route add "$MASTER" dev up0; $N ip route add default via "$MASTER" dev up0 onlink
    $N sysctl -qw net.ipv4.ip_forward=1
  fi
  cd "$RUN/pki"
  openssl ecparam -name prime256v1 -genkey -noout -out "k$n.key" 2>/dev/null
  openssl req -new -key "k$n.key" -subj "/O=system:nodes/CN=system:node:node$n" -out "k$n.csr" 2>/dev/null
  openssl x509 -req -in "k$n.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -out "k$n.crt" \
    -extfile <(printf 'keyUsage=digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=IP:%s,DNS:node%s\n' "$IP" "$n") 2>/dev/null
  for who in kubelet proxy; do
    sed "s#https://127.0.0.1:#https://$MASTER:#; s#$RUN/pki/kubelet#$RUN/pki/k$n#g" "$RUN/$who.kubeconfig" > "$OWN/$who.kubeconfig"
  done
  mv "$OWN/kubelet.kubeconfig" "$OWN/kubeconfig"
  cat > "$OWN/containerd.toml" <<EOK
version = 2
root = "$OWN/containerd"
state = "/run/kubelab$n/containerd"
[grpc]
  address = "$SOCKET"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$OWN/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
EOK
  cat > "$OWN/cni/10.conflist" <<EOK
{"cniVersion":"0.4.0","name":"kubelab$n","plugins":[
 {"type":"ptp","ipMasq":false,"mtu":1500,"ipam":{"type":"host-local","dataDir":"$OWN/ipam","ranges":[[{"subnet":"$PODS"}]],"routes":[{"dst":"0.0.0.0/0"}]}},
 {"type":"portmap","capabilities":{"portMappings":true}}]}
EOK
  spawn "containerd$n" containerd -c "$OWN/containerd.toml"
  waitfor "containerd of node$n" ctr -a "$SOCKET" version
  for t in "$LAB"/images/*.tar; do ctr -a "$SOCKET" -n k8s.io images import "$t" >/dev/null; done
  : > "$OWN/resolv-empty.conf"
  cat > "$OWN/kubelet.yaml" <<EOK
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $IP
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $RUN/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $RUN/pki/k$n.crt
tlsPrivateKeyFile: $RUN/pki/k$n.key
containerRuntimeEndpoint: unix://$SOCKET
cgroupDriver: cgroupfs
cgroupRoot: /knode$n
failCgroupV1: false
failSwapOn: false
clusterDNS: [$DNS]
clusterDomain: cluster.local
resolvConf: $OWN/resolv-empty.conf
staticPodPath: ""
podLogsDir: $OWN/podlogs
volumePluginDir: $OWN/volplugins
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
registerWithTaints: []
localStorageCapacityIsolation: true
EOK
  # A kubelet makes no root of its own, and version 1 of cpuset gives a new group no cores.
  for c in /sys/fs/cgroup/*/; do mkdir -p "$c/knode$n" 2>/dev/null || true; done
  for c in /sys/fs/cgroup/*/; do
    [ -f "$c/knode$n/cpuset.cpus" ] && for f in cpuset.cpus cpuset.mems; do cat "$c/$f" > "$c/knode$n/$f"; done
  done
  kubelet
  cat > "$OWN/proxy.yaml" <<EOK
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $OWN/proxy.kubeconfig}
mode: ${PROXYMODE:-nftables}
clusterCIDR: 10.244.0.0/16
hostnameOverride: node$n
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
EOK
  spawn "kube-proxy$n" "$BIN/kube-proxy" --config="$OWN/proxy.yaml" --v=2
  waitfor "node$n" sh -c "$K get node node$n --no-headers | grep -qw Ready"
  ;;
die)
  for name in "kubelet$n" "containerd$n" "kube-proxy$n"; do kill -9 "$(pid_of "$name")" 2>/dev/null || true; done
  for p in $(pgrep -f -- "-address $SOCKET"); do kill -9 "$p" 2>/dev/null || true; done
  for c in $(find "/sys/fs/cgroup/memory/knode$n" -name cgroup.procs); do
    for p in $(cat "$c"); do kill -9 "$p" 2>/dev/null || true; done
  done
  ;;
cut) $M ip link set "to$n" down ;;
mend)
  $M ip link set "to$n" up; $M ip route replace "$IP" dev "to$n"; $M ip route replace "$PODS" via "$IP" dev "to$n" onlink
  ;;
pressure)
  kill "$(pid_of "kubelet$n")"
  sed -i 's#^evictionHard:.*#evictionHard: {memory.available: 99%}#' "$OWN/kubelet.yaml"
  kubelet
  ;;
*) echo "no action: $ACTION"; exit 2 ;;
esac
