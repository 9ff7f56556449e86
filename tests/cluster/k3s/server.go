package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

var components = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}

func serve(s *settings) error {
	if os.Getuid() != 0 && !s.on("rootless") && !s.on("disable-agent") {
		return errors.New("server must run as root, or with --rootless and/or --disable-agent")
	}
	c, err := newCluster(s)
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	if err := stage(s.text("data-dir"), s.on("prefer-bundled-bin")); err != nil {
		return wrap(err, "extracting data")
	}
	info("Starting k3s %s (%s)", version, commit)
	ctx := signalled()
	if s.on("cluster-reset") {
		return c.reset(ctx)
	}
	// A reset leaves the passwords of nodes behind, which may be reinstalled.
	forgotten := exists(c.resetFlag())
	_ = os.Remove(c.resetFlag())
	if err := c.prepare(ctx); err != nil {
		return wrap(err, "preparing server")
	}
	if c.managed {
		if err := c.startManaged(ctx); err != nil {
			return wrap(err, "failed to start cluster")
		}
	}
	if err := c.writeTokens(); err != nil {
		return err
	}
	if err := c.writeAdminKubeconfig(); err != nil {
		return err
	}
	go c.control(ctx)
	if forgotten {
		go c.forgetPassword(ctx)
	}
	if !s.on("disable-agent") {
		if err := c.runOwnAgent(ctx); err != nil {
			return err
		}
	}
	<-ctx.Done()
	select {}
}

// forgetPassword deletes the password of the server's own node.
func (c *cluster) forgetPassword(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-c.ready.api:
	}
	_, err := c.api.do(ctx, http.MethodDelete, "/api/v1/namespaces/kube-system/secrets/"+c.nodeName+".node-password.k3s", jsonType, nil)
	if err != nil && !refused(err, http.StatusNotFound) {
		warn("failed to delete old node password secret: %v", err)
	}
}

// prepare does everything that has to be done before the first part of the cluster starts.
func (c *cluster) prepare(ctx context.Context) error {
	for _, name := range []string{"etc", "tls", "cred", "db", "manifests"} {
		if err := os.MkdirAll(c.path(name), 0o700); err != nil {
			return err
		}
	}
	if err := c.bootstrap(ctx); err != nil {
		return wrap(err, "failed to bootstrap cluster data")
	}
	if err := c.generate(); err != nil {
		return wrap(err, "failed to generate server dependencies")
	}
	var err error
	c.api, err = newAPIClient(c.loopback(), c.ca("server-ca").certificateFile(), c.path("tls", "client-supervisor.crt"), c.path("tls", "client-supervisor.key"))
	if err != nil {
		return err
	}
	return wrap(c.listen(), "failed to start supervisor listener")
}

func (c *cluster) writeAdminKubeconfig() error {
	output := c.text("write-kubeconfig")
	if output == "" {
		output = "/etc/rancher/k3s/k3s.yaml"
	}
	content, err := embeddedKubeconfig(c.supervisor(), c.ca("server-ca").certificateFile(), c.path("tls", "client-admin.crt"), c.path("tls", "client-admin.key"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
		return err
	}
	mode := uint64(0o600)
	if given := c.text("write-kubeconfig-mode"); given != "" {
		if mode, err = strconv.ParseUint(given, 8, 32); err != nil {
			problem("Failed to set %s to mode %s: %v", output, given, err)
			mode = 0o600
		}
	}
	if err := store(output, content, os.FileMode(mode)); err != nil {
		return err
	}
	info("Wrote kubeconfig %s", output)
	info("Run: k3s kubectl")
	return nil
}

// control starts the API server once the datastore works, then what depends on it.
func (c *cluster) control(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-c.ready.etcd:
	}
	failed(c.save(ctx))
	bin := filepath.Join(c.text("data-dir"), "data", "current", "bin", "parts")
	failed((&program{name: components[0]}).start(filepath.Join(bin, components[0]), c.apiServerArguments()...))
	if !patiently(ctx, 500*time.Millisecond, func() error { _, err := c.api.get(ctx, "/readyz"); return err }) {
		return
	}
	close(c.ready.api)
	info("Kube API server is now running")
	if !c.on("disable-controller-manager") {
		failed((&program{name: components[1]}).start(filepath.Join(bin, components[1]), c.managerArguments()...))
	}
	if !c.on("disable-scheduler") {
		failed((&program{name: components[2]}).start(filepath.Join(bin, components[2]), c.schedulerArguments()...))
	}
	go c.controllers(ctx)
	if c.managed {
		go c.takeScheduled(ctx)
	}
	info("ETCD server is now running")
	info("k3s is up and running")
	notify()
}

func (c *cluster) apiServerArguments() []string {
	tls := func(name string) string { return c.path("tls", name) }
	issuer := "https://kubernetes.default.svc." + c.text("cluster-domain")
	defaults := map[string]string{
		"storage-backend":                  "etcd3",
		"etcd-servers":                     c.datastoreURL(),
		"cert-dir":                         tls("temporary-certs"),
		"allow-privileged":                 "true",
		"enable-bootstrap-token-auth":      "true",
		"authorization-mode":               "Node,RBAC",
		"anonymous-auth":                   "false",
		"service-account-signing-key-file": tls("service.current.key"),
		"service-account-key-file":         tls("service.key"),
		"service-account-issuer":           issuer,
		"api-audiences":                    issuer + ",k3s",
		"service-cluster-ip-range":         strings.Join(c.networks("service-cidr"), ","),
		"service-node-port-range":          c.text("service-node-port-range"),
		"advertise-address":                c.advertised(),
		// Without K3s' own flag for it, the API server publishes the port that it listens on: that of the supervisor, which has all other addresses.
		"secure-port":                        c.text("https-listen-port"),
		"bind-address":                       apiServerAddress,
		"permit-port-sharing":                "true",
		"tls-cert-file":                      tls("serving-kube-apiserver.crt"),
		"tls-private-key-file":               tls("serving-kube-apiserver.key"),
		"kubelet-certificate-authority":      tls("server-ca.crt"),
		"kubelet-client-certificate":         tls("client-kube-apiserver.crt"),
		"kubelet-client-key":                 tls("client-kube-apiserver.key"),
		"kubelet-preferred-address-types":    "InternalIP,ExternalIP,Hostname",
		"requestheader-client-ca-file":       tls("request-header-ca.crt"),
		"requestheader-allowed-names":        "system:auth-proxy",
		"requestheader-extra-headers-prefix": "X-Remote-Extra-",
		"requestheader-group-headers":        "X-Remote-Group",
		"requestheader-username-headers":     "X-Remote-User",
		"proxy-client-cert-file":             tls("client-auth-proxy.crt"),
		"proxy-client-key-file":              tls("client-auth-proxy.key"),
		"client-ca-file":                     tls("client-ca.crt"),
		"enable-admission-plugins":           "NodeRestriction",
		"profiling":                          "false",
	}
	c.addDatastore(defaults)
	if c.on("secrets-encryption") {
		defaults["encryption-provider-config"] = c.encryptionFile()
		defaults["encryption-provider-config-automatic-reload"] = "true"
	}
	return componentArguments(defaults, c.raw("kube-apiserver-arg"))
}

// addDatastore names the files for etcd, unless it is one without encryption.
func (c *cluster) addDatastore(arguments map[string]string) {
	if !strings.HasPrefix(c.etcd.endpoint, "https://") {
		return
	}
	folder := c.path("tls", "etcd")
	files := []string{filepath.Join(folder, "server-ca.crt"), filepath.Join(folder, "client.crt"), filepath.Join(folder, "client.key")}
	if c.text("datastore-endpoint") != "" {
		files = []string{c.text("datastore-cafile"), c.text("datastore-certfile"), c.text("datastore-keyfile")}
	}
	arguments["etcd-cafile"], arguments["etcd-certfile"], arguments["etcd-keyfile"] = files[0], files[1], files[2]
}

func (c *cluster) managerArguments() []string {
	tls := func(name string) string { return c.path("tls", name) }
	kubeconfig := c.path("cred", "controller.kubeconfig")
	controllers := "*,tokencleaner"
	if !c.on("disable-cloud-controller") {
		controllers += ",-service,-route,-cloud-node-lifecycle"
	}
	defaults := map[string]string{
		"controllers":                      controllers,
		"kubeconfig":                       kubeconfig,
		"authorization-kubeconfig":         kubeconfig,
		"authentication-kubeconfig":        kubeconfig,
		"service-account-private-key-file": tls("service.current.key"),
		"allocate-node-cidrs":              "true",
		"service-cluster-ip-range":         strings.Join(c.networks("service-cidr"), ","),
		"cluster-cidr":                     strings.Join(c.networks("cluster-cidr"), ","),
		"root-ca-file":                     tls("server-ca.crt"),
		"profiling":                        "false",
		"tls-cert-file":                    tls("kube-controller-manager/kube-controller-manager.crt"),
		"tls-private-key-file":             tls("kube-controller-manager/kube-controller-manager.key"),
		"bind-address":                     "127.0.0.1",
		"secure-port":                      "10257",
		"use-service-account-credentials":  "true",
		"cluster-signing-kube-apiserver-client-cert-file": tls("client-ca.nochain.crt"),
		"cluster-signing-kube-apiserver-client-key-file":  tls("client-ca.key"),
		"cluster-signing-kubelet-client-cert-file":        tls("client-ca.nochain.crt"),
		"cluster-signing-kubelet-client-key-file":         tls("client-ca.key"),
		"cluster-signing-kubelet-serving-cert-file":       tls("server-ca.nochain.crt"),
		"cluster-signing-kubelet-serving-key-file":        tls("server-ca.key"),
		"cluster-signing-legacy-unknown-cert-file":        tls("server-ca.nochain.crt"),
		"cluster-signing-legacy-unknown-key-file":         tls("server-ca.key"),
	}
	return componentArguments(defaults, append(c.raw("kube-controller-arg"), c.raw("kube-controller-manager-arg")...))
}

func (c *cluster) schedulerArguments() []string {
	kubeconfig := c.path("cred", "scheduler.kubeconfig")
	return componentArguments(map[string]string{
		"kubeconfig":                kubeconfig,
		"authorization-kubeconfig":  kubeconfig,
		"authentication-kubeconfig": kubeconfig,
		"bind-address":              "127.0.0.1",
		"secure-port":               "10259",
		"tls-cert-file":             c.path("tls", "kube-scheduler", "kube-scheduler.crt"),
		"tls-private-key-file":      c.path("tls", "kube-scheduler", "kube-scheduler.key"),
		"profiling":                 "false",
	}, c.raw("kube-scheduler-arg"))
}
