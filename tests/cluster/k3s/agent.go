package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// agent is one node.
type agent struct {
	*settings
	folder  string
	name    string
	address string
	token   string
	// Where it finds a supervisor and an API server: on servers their own, on agents the load balancer.
	server   string
	supplied agentSettings
	access   *access
	// Closed once containers can run, and once pods have a network.
	runtime, connected chan struct{}
	api                *apiClient
	nodes              *apiClient
}

// work runs an agent.
func work(s *settings) error {
	if os.Getuid() != 0 && !s.on("rootless") {
		return errors.New("agent requires additional privilege if not run with --rootless: must be run as root")
	}
	token, err := secretOf(s, "token")
	if err != nil {
		return err
	}
	a := &agent{settings: s, folder: filepath.Join(s.text("data-dir"), "agent"), token: token, runtime: make(chan struct{}), connected: make(chan struct{})}
	_, known := tls.LoadX509KeyPair(a.path("client-kubelet.crt"), a.path("client-kubelet.key"))
	if known != nil && token == "" {
		return errors.New("--token is required")
	}
	if s.text("server") == "" {
		return errors.New("--server is required")
	}
	if a.name, a.address, err = identity(s); err != nil {
		return err
	}
	if err := stage(s.text("data-dir"), s.on("prefer-bundled-bin")); err != nil {
		return wrap(err, "extracting data")
	}
	info("Starting k3s agent %s (%s)", version, commit)
	ctx := signalled()
	balancer, err := newBalancer(a.path("etc", "k3s-agent-load-balancer.json"), s.text("server"), s.text("lb-server-port"))
	if err != nil {
		return err
	}
	if err := balancer.listen(); err != nil {
		return err
	}
	a.server = "https://127.0.0.1:" + s.text("lb-server-port")
	if err := a.run(ctx); err != nil {
		return err
	}
	go balancer.follow(ctx, a)
	select {
	case <-ctx.Done():
	case <-a.connected:
		info("k3s agent is up and running")
		notify()
	}
	<-ctx.Done()
	select {}
}

// runOwnAgent runs the node of a server, which does not wait for the API server: etcd joins only once containers can run.
func (c *cluster) runOwnAgent(ctx context.Context) error {
	token, err := formatToken("node:"+c.passwords()["node"], c.ca("server-ca").certificateFile())
	if err != nil {
		return err
	}
	a := &agent{settings: c.settings, folder: filepath.Join(c.text("data-dir"), "agent"), name: c.nodeName, address: c.address, token: token}
	a.server, a.runtime, a.connected = c.supervisor(), c.ready.runtime, make(chan struct{})
	return a.run(ctx)
}

func (a *agent) path(parts ...string) string {
	return filepath.Join(append([]string{a.folder}, parts...)...)
}

// run returns as soon as the kubelet runs.
func (a *agent) run(ctx context.Context) error {
	if err := os.MkdirAll(a.folder, 0o700); err != nil {
		return err
	}
	if !patiently(ctx, 2*time.Second, func() error {
		found, err := validated(a.server, a.token, "node", a.ownCertificate()...)
		if err != nil {
			problem("Failed to validate connection to cluster at %s: %v", a.text("server"), err)
			return err
		}
		a.access = found
		return nil
	}) {
		return nil
	}
	if !patiently(ctx, 5*time.Second, func() error {
		err := a.retrieve()
		if err != nil {
			info("Waiting to retrieve agent configuration; server is not ready: %v", err)
		}
		return err
	}) {
		return nil
	}
	if err := prepareSystem(); err != nil {
		return err
	}
	if err := a.startRuntime(ctx); err != nil {
		return wrap(err, "failed to start container runtime")
	}
	close(a.runtime)
	if !patiently(ctx, time.Second, func() error { _, err := a.api.get(ctx, "/readyz"); return err }) {
		return nil
	}
	if err := a.startKubelet(); err != nil {
		return wrap(err, "failed to start kubelet")
	}
	go a.configureNode(ctx)
	if !a.supplied.DisableKubeProxy {
		return a.startProxy()
	}
	return nil
}

func (a *agent) ownCertificate() []tls.Certificate {
	own, err := tls.LoadX509KeyPair(a.path("client-kubelet.crt"), a.path("client-kubelet.key"))
	if err != nil {
		return nil
	}
	return []tls.Certificate{own}
}

// retrieve gets settings and certificates of the node from a supervisor.
func (a *agent) retrieve() error {
	answer, err := a.access.get("/v1-k3s/config")
	if err != nil {
		return wrap(err, "failed to retrieve configuration from server")
	}
	if err := json.Unmarshal(answer, &a.supplied); err != nil {
		return err
	}
	for _, name := range []string{"client-ca.crt", "server-ca.crt"} {
		content, err := a.access.get("/v1-k3s/" + name)
		if err != nil {
			return err
		}
		if err := store(a.path(name), content, 0o600); err != nil {
			return err
		}
	}
	password, err := ensurePassword()
	if err != nil {
		return err
	}
	headers := map[string]string{"k3s-Node-Name": a.name, "k3s-Node-Password": password, "k3s-Node-IP": strings.Join(a.addresses(), ",")}
	for name, kubeconfig := range map[string]string{
		"serving-kubelet": "", "client-kubelet": "kubelet.kubeconfig", "client-kube-proxy": "kubeproxy.kubeconfig", "client-k3s-controller": "k3scontroller.kubeconfig",
	} {
		if err := a.certificate(name, headers); err != nil {
			return wrap(err, a.path(name+".crt"))
		}
		if kubeconfig == "" {
			continue
		}
		if err := writeKubeconfig(a.path(kubeconfig), a.server, a.path("server-ca.crt"), a.path(name+".crt"), a.path(name+".key")); err != nil {
			return err
		}
	}
	if a.api, err = newAPIClient(a.server, a.path("server-ca.crt"), a.path("client-kubelet.crt"), a.path("client-kubelet.key")); err != nil {
		return err
	}
	a.nodes, err = newAPIClient(a.server, a.path("server-ca.crt"), a.path("client-k3s-controller.crt"), a.path("client-k3s-controller.key"))
	return err
}

func (a *agent) addresses() []string {
	if given := a.list("node-ip"); len(given) > 0 {
		return given
	}
	own := []string{a.address}
	if second := hostAddress6(); second != "" && len(a.supplied.ClusterIPRanges) > 1 {
		own = append(own, second)
	}
	return own
}

func ensurePassword() (string, error) {
	path := filepath.Join(nodeFolder, "password")
	if content, err := os.ReadFile(path); err == nil {
		return strings.TrimSpace(string(content)), nil
	}
	if err := os.MkdirAll(nodeFolder, 0o755); err != nil {
		return "", err
	}
	password := random(16)
	return password, store(path, []byte(password+"\n"), 0o600)
}

// certificate asks for a certificate of a key that stays here.
func (a *agent) certificate(name string, headers map[string]string) error {
	key, err := ensureKey(a.path(name+".key"), false)
	if err != nil {
		return err
	}
	body, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		return err
	}
	content, err := a.access.send(http.MethodPost, "/v1-k3s/"+name+".crt", body, headers, 0)
	var refusal *statusError
	if errors.As(err, &refusal) && refusal.code == http.StatusUnauthorized && len(a.access.certificates) > 0 {
		info("Node authorization rejected, retrying without client certificate authentication")
		a.access.certificates = nil
		content, err = a.access.send(http.MethodPost, "/v1-k3s/"+name+".crt", body, headers, 0)
	}
	if errors.As(err, &refusal) && refusal.code == http.StatusForbidden {
		return fmt.Errorf("Node password rejected, duplicate hostname or contents of '%s' may not match server node-passwd entry, "+
			"try enabling a unique node name with the --with-node-id flag", filepath.Join(nodeFolder, "password"))
	}
	if err != nil {
		return err
	}
	return store(a.path(name+".crt"), content, 0o600)
}

// configureNode keeps labels and annotations of the node as they are set, and its network.
func (a *agent) configureNode(ctx context.Context) {
	path := "/api/v1/nodes?fieldSelector=metadata.name%3D" + a.name
	done := false
	a.api.watch(ctx, path, func(deleted bool, node object) {
		if deleted || done {
			return
		}
		if err := a.annotate(ctx, node); err != nil {
			info("Failed to set annotations and labels on node %s: %v", a.name, err)
			return
		}
		if done = a.network(ctx, node); done {
			close(a.connected)
		}
	})
}

func (a *agent) annotate(ctx context.Context, node object) error {
	labels := object{}
	for _, label := range a.list("node-label") {
		key, value, _ := strings.Cut(label, "=")
		if field(node, "metadata", "labels", key) != value {
			labels[key] = value
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	annotations := object{"k3s.io/hostname": host, "k3s.io/internal-ip": strings.Join(a.addresses(), ",")}
	if external := a.list("node-external-ip"); len(external) > 0 {
		annotations["k3s.io/external-ip"] = strings.Join(external, ",")
	}
	arguments, err := hiddenArguments()
	if err != nil {
		return err
	}
	annotations["k3s.io/node-args"], annotations["k3s.io/node-env"] = arguments, "{}"
	annotations["k3s.io/node-config-hash"] = strings.ToUpper(caHash([]byte(arguments))[:52]) + "===="
	for key, value := range annotations {
		if field(node, "metadata", "annotations", key) == value {
			delete(annotations, key)
		}
	}
	if len(labels)+len(annotations) == 0 {
		info("Annotations and labels have already set on node: %s", a.name)
		return nil
	}
	if err := a.api.patch(ctx, "/api/v1/nodes/"+a.name, object{"metadata": object{"labels": labels, "annotations": annotations}}); err != nil {
		return err
	}
	info("Annotations and labels have been set successfully on node: %s", a.name)
	return nil
}

// hiddenArguments are those of the process with its configuration, without secrets.
func hiddenArguments() (string, error) {
	arguments := os.Args[1:]
	if found, err := configArguments(configPath(arguments)); err == nil {
		arguments = append(arguments[:1:1], append(found, arguments[1:]...)...)
	}
	var shown []string
	for _, argument := range arguments {
		name, value, given := strings.Cut(argument, "=")
		shown = append(shown, name)
		if strings.Contains(name, "token") || strings.Contains(name, "secret-key") || strings.Contains(name, "access-key") || strings.Contains(name, "datastore-endpoint") {
			value = "********"
		}
		if given {
			shown = append(shown, value)
		}
	}
	content := &bytes.Buffer{}
	encoder := json.NewEncoder(content)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(shown)
	return strings.TrimSpace(content.String()), err
}
