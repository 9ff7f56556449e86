package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

const (
	text = "text"
	flag = "flag"
	list = "list"
)

// option is a flag of a command. names: without hyphens, the short ones last.
type option struct {
	names    []string
	kind     string
	env      string
	fallback string
}

// Each line: names, kind, and if any an environment variable and a default after "=".
const nodeOptions = `
config,c text K3S_CONFIG_FILE =/etc/rancher/k3s/config.yaml
debug flag K3S_DEBUG
v text
vmodule text
log,l text
alsologtostderr flag
token,t text K3S_TOKEN
token-file text K3S_TOKEN_FILE
server,s text K3S_URL
data-dir,d text K3S_DATA_DIR =/var/lib/rancher/k3s
node-name text K3S_NODE_NAME
with-node-id flag
node-label list
node-taint list
image-credential-provider-bin-dir text
image-credential-provider-config text
selinux flag K3S_SELINUX
lb-server-port text K3S_LB_SERVER_PORT =6444
protect-kernel-defaults flag
container-runtime-endpoint text
default-runtime text
image-service-endpoint text
disable-default-registry-endpoint flag
nonroot-devices flag
pause-image text =rancher/mirrored-pause:3.6
snapshotter text =overlayfs
private-registry text =/etc/rancher/k3s/registries.yaml
airgap-extra-registry list
node-ip,i list
node-external-ip list
node-internal-dns list
node-external-dns list
resolv-conf text K3S_RESOLV_CONF
flannel-iface text
flannel-conf text
flannel-cni-conf text
kubelet-arg list
kube-proxy-arg list
enable-pprof flag
rootless flag
prefer-bundled-bin flag
docker flag
vpn-auth text K3S_VPN_AUTH
vpn-auth-file text K3S_VPN_AUTH_FILE
disable-apiserver-lb flag
bind-address text
`

const serverOptions = `
https-listen-port text =6443
supervisor-port text
advertise-address text
advertise-port text
tls-san list
tls-san-security flag =true
cluster-cidr list =10.42.0.0/16
service-cidr list =10.43.0.0/16
service-node-port-range text =30000-32767
cluster-dns list
cluster-domain text =cluster.local
flannel-backend text =vxlan
flannel-ipv6-masq flag
flannel-external-ip flag
egress-selector-mode text =agent
servicelb-namespace text =kube-system
write-kubeconfig,o text K3S_KUBECONFIG_OUTPUT
write-kubeconfig-mode text K3S_KUBECONFIG_MODE
write-kubeconfig-group text K3S_KUBECONFIG_GROUP
helm-job-image text
agent-token text K3S_AGENT_TOKEN
agent-token-file text K3S_AGENT_TOKEN_FILE
cluster-init flag K3S_CLUSTER_INIT
cluster-reset flag K3S_CLUSTER_RESET
cluster-reset-restore-path text
kube-apiserver-arg list
etcd-arg list
kube-controller-manager-arg list
kube-scheduler-arg list
kube-cloud-controller-manager-arg list
datastore-endpoint text K3S_DATASTORE_ENDPOINT
datastore-cafile text K3S_DATASTORE_CAFILE
datastore-certfile text K3S_DATASTORE_CERTFILE
datastore-keyfile text K3S_DATASTORE_KEYFILE
kine-tls flag
etcd-expose-metrics flag
etcd-disable-snapshots flag
etcd-snapshot-name text =etcd-snapshot
etcd-snapshot-schedule-cron text =0 */12 * * *
etcd-snapshot-retention text =5
etcd-snapshot-dir text
etcd-snapshot-compress flag
etcd-s3 flag
etcd-s3-endpoint text =s3.amazonaws.com
etcd-s3-endpoint-ca text
etcd-s3-skip-ssl-verify flag
etcd-s3-access-key text AWS_ACCESS_KEY_ID
etcd-s3-secret-key text AWS_SECRET_ACCESS_KEY
etcd-s3-session-token text AWS_SESSION_TOKEN
etcd-s3-bucket text
etcd-s3-bucket-lookup-type text
etcd-s3-region text =us-east-1
etcd-s3-folder text
etcd-s3-proxy text
etcd-s3-config-secret text
etcd-s3-insecure flag
etcd-s3-timeout text =5m0s
etcd-s3-retention text =5
default-local-storage-path text
disable list
disable-scheduler flag
disable-cloud-controller flag
disable-kube-proxy flag
disable-network-policy flag
disable-helm-controller flag
disable-apiserver flag
disable-controller-manager flag
disable-etcd flag
embedded-registry flag
supervisor-metrics flag
system-default-registry text K3S_SYSTEM_DEFAULT_REGISTRY
secrets-encryption flag
secrets-encryption-provider text =aescbc
disable-agent flag
kube-controller-arg list
kube-cloud-controller-arg list
`

func optionsOf(tables ...string) []option {
	var options []option
	for _, line := range strings.Split(strings.Join(tables, "\n"), "\n") {
		line, fallback, _ := strings.Cut(line, "=")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		one := option{names: strings.Split(fields[0], ","), kind: fields[1], fallback: fallback}
		if len(fields) > 2 {
			one.env = fields[2]
		}
		options = append(options, one)
	}
	return options
}

// settings are the values of a command's options by their first name.
type settings struct {
	values  map[string][]string
	options []option
	// What is left after the options.
	rest []string
}

func (s *settings) option(name string) *option {
	for number := range s.options {
		for _, known := range s.options[number].names {
			if known == name {
				return &s.options[number]
			}
		}
	}
	return nil
}

func (s *settings) text(name string) string {
	if values := s.values[name]; len(values) > 0 {
		return values[len(values)-1]
	}
	if known := s.option(name); known != nil {
		return known.fallback
	}
	return ""
}

func (s *settings) on(name string) bool {
	value, _ := strconv.ParseBool(s.text(name))
	return value
}

// raw is a list without the separation at commas, as arguments of components contain them.
func (s *settings) raw(name string) []string {
	if values := s.values[name]; len(values) > 0 {
		return values
	}
	if known := s.option(name); known != nil && known.fallback != "" {
		return []string{known.fallback}
	}
	return nil
}

func (s *settings) list(name string) []string {
	var values []string
	for _, value := range s.raw(name) {
		for _, part := range strings.Split(value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				values = append(values, part)
			}
		}
	}
	return values
}

func (s *settings) set(name, value string) { s.values[name] = []string{value} }

// parse reads arguments as urfave/cli does, with the errors of Go's package flag.
func parse(options []option, arguments []string) (*settings, error) {
	s := &settings{values: map[string][]string{}, options: options}
	for number := 0; number < len(arguments); number++ {
		argument := arguments[number]
		if argument == "--" || !strings.HasPrefix(argument, "-") || argument == "-" {
			s.rest = append(s.rest, arguments[number:]...)
			break
		}
		name, value, given := strings.Cut(strings.TrimLeft(argument, "-"), "=")
		known := s.option(name)
		if known == nil {
			return nil, fmt.Errorf("flag provided but not defined: -%s", name)
		}
		switch {
		case known.kind == flag && !given:
			value = "true"
		case !given && number+1 == len(arguments):
			return nil, fmt.Errorf("flag needs an argument: -%s", name)
		case !given:
			number++
			value = arguments[number]
		}
		if _, err := strconv.ParseBool(value); known.kind == flag && err != nil {
			return nil, fmt.Errorf("invalid boolean value %q for -%s: parse error", value, name)
		}
		s.values[known.names[0]] = append(s.values[known.names[0]], value)
	}
	for _, one := range options {
		if value := os.Getenv(one.env); one.env != "" && value != "" && len(s.values[one.names[0]]) == 0 {
			s.set(one.names[0], value)
		}
	}
	return s, nil
}
