package main

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func wrote(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		if err := store(filepath.Join(folder, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func expect[T comparable](t *testing.T, found, wanted T) {
	t.Helper()
	if found != wanted {
		t.Fatalf("found %v, wanted %v", found, wanted)
	}
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Fatalf("%q is not in\n%s", part, text)
		}
	}
}

func serverSettings(t *testing.T, arguments ...string) *settings {
	t.Helper()
	s, err := parse(optionsOf(nodeOptions, serverOptions), arguments)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConfigOrder(t *testing.T) {
	folder := wrote(t, map[string]string{
		"config.yaml":             "node-name: first\ntls-san: [a]\nnode-label: [x=1]\n",
		"config.yaml.d/20-b.yaml": "tls-san+: [c]\nnode-label: [z=3]\n",
		"config.yaml.d/10-a.YML":  "node-name: second\ntls-san+:\n- b\n",
		"config.yaml.d/30.txt":    "node-name: third\n",
	})
	found, err := configArguments(filepath.Join(folder, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, strings.Join(found, " "), "--node-name=second --tls-san=a --tls-san=b --tls-san=c --node-label=z=3")
}

func TestConfigWithoutMainFile(t *testing.T) {
	folder := wrote(t, map[string]string{"config.yaml.d/50.yaml": "cluster-init: true\n"})
	found, err := configArguments(filepath.Join(folder, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, strings.Join(found, " "), "--cluster-init=true")
}

func TestPrecedence(t *testing.T) {
	t.Setenv("K3S_TOKEN", "environment")
	t.Setenv("K3S_URL", "https://environment:6443")
	s := serverSettings(t, "--token=file", "--tls-san=a", "--token", "argument", "--tls-san=b,c")
	expect(t, s.text("token"), "argument")
	expect(t, s.text("server"), "https://environment:6443")
	expect(t, strings.Join(s.list("tls-san"), " "), "a b c")
}

func TestTokenForms(t *testing.T) {
	hash := strings.Repeat("a", 64)
	for token, wanted := range map[string]access{
		"secret":                                   {password: "secret"},
		"K10" + hash + "::server:secret":           {caHash: hash, user: "server", password: "secret"},
		"K10" + hash + "::node:with:colons":        {caHash: hash, user: "node", password: "with:colons"},
		"abcdef.0123456789abcdef":                  {bearer: "abcdef.0123456789abcdef"},
		"K10" + hash + "::abcdef.0123456789abcdef": {caHash: hash, bearer: "abcdef.0123456789abcdef"},
	} {
		found, err := parseToken(token)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, found.caHash+"|"+found.user+"|"+found.password+"|"+found.bearer, wanted.caHash+"|"+wanted.user+"|"+wanted.password+"|"+wanted.bearer)
	}
	for token, wanted := range map[string]string{
		"": "token must not be empty", "K10abc::server:x": "invalid token CA hash length", "K10" + hash + "::server": "invalid token format",
	} {
		_, err := parseToken(token)
		expect(t, err.Error(), wanted)
	}
}

func TestNormalizedToken(t *testing.T) {
	found, err := normalized("K10" + strings.Repeat("0", 64) + "::server:secret")
	if err != nil || found != "secret" {
		t.Fatal(found, err)
	}
	_, err = normalized("abcdef.0123456789abcdef")
	expect(t, err.Error(), "failed to normalize token; must be in format K10<CA-HASH>::<USERNAME>:<PASSWORD> or <PASSWORD>")
}

func TestBootstrapEncryption(t *testing.T) {
	expect(t, storageKey("secret"), "/bootstrap/2bb80d537b1d")
	sealed, err := encrypt("secret", []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := decrypt("secret", sealed)
	if err != nil || string(found) != "content" {
		t.Fatal(found, err)
	}
	if _, err := decrypt("other", sealed); err == nil {
		t.Fatal("another token decrypts")
	}
}

func TestCertificatesAreRenewed(t *testing.T) {
	folder := t.TempDir()
	ca := authority(filepath.Join(folder, "ca"))
	if _, err := ensureAuthority(ca, "k3s-server"); err != nil {
		t.Fatal(err)
	}
	wanted := request{name: "kube-apiserver", server: true, sans: []string{"localhost"}}
	made := func() bool {
		made, err := ca.ensure(false, wanted, filepath.Join(folder, "one.crt"), filepath.Join(folder, "one.key"))
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	t.Setenv(daysVariable, "119")
	expect(t, made(), true)
	expect(t, made(), true)
	t.Setenv(daysVariable, "121")
	expect(t, made(), true)
	expect(t, made(), false)
	wanted.sans = append(wanted.sans, "10.0.0.1")
	expect(t, made(), true)
}

func TestRegeneratedOnlyForNewNames(t *testing.T) {
	c := &cluster{settings: serverSettings(t, "--tls-san=lb.example.com,10.1.1.1"), nodeName: "s1", address: "10.0.0.1"}
	for _, san := range []string{"lb.example.com", "10.1.1.1", "127.0.0.1", "::1", "localhost", "s1", "10.0.0.1", "10.43.0.1"} {
		if !slices.Contains(c.sans(), san) {
			t.Fatal(san, c.sans())
		}
	}
	expect(t, strings.Join(c.clusterDNS(), ","), "10.43.0.10")
}

func TestComponentArguments(t *testing.T) {
	found := componentArguments(map[string]string{"v": "1", "feature-gates": "A=true", "admission": "X"}, []string{"v=2", "feature-gates+=B=true", "admission-=Y", "flag"})
	expect(t, strings.Join(found, " "), "--admission=Y --admission=X --feature-gates=A=true --feature-gates=B=true --flag=true --v=2")
}

func TestRefusedCombinations(t *testing.T) {
	for arguments, wanted := range map[string]string{
		"--cluster-reset-restore-path=/x":                "invalid flag use; --cluster-reset required with --cluster-reset-restore-path",
		"--disable-etcd":                                 "invalid flag use; --server is required with --disable-etcd",
		"--cluster-reset --server=https://x":             "cannot perform cluster-reset while server URL is set - remove server from configuration before resetting",
		"--cluster-cidr=x":                               "invalid cluster-cidr x: invalid CIDR address: x",
		"--cluster-dns=x":                                "invalid cluster-dns address x",
		"--egress-selector-mode=x":                       "invalid egress-selector-mode x",
		"--cluster-reset --cluster-reset-restore-path=x": "/nowhere/token does not exist, please pass --token to complete the restoration",
	} {
		c := &cluster{settings: serverSettings(t, strings.Fields(arguments)...), folder: "/nowhere"}
		err := c.check()
		if err == nil {
			t.Fatal(arguments, "is not refused")
		}
		expect(t, err.Error(), wanted)
	}
}

func runtimeOf(t *testing.T, files ...string) map[string]runtimeConfig {
	t.Helper()
	content := map[string]string{}
	for _, file := range files {
		content[file] = "#!/bin/sh\n"
	}
	t.Setenv("PATH", filepath.Join(wrote(t, content), "bin"))
	return foundRuntimes()
}

func TestRuntimesInPath(t *testing.T) {
	found := runtimeOf(t, "bin/nvidia-container-runtime", "bin/nvidia-container-runtime.cdi", "bin/crun")
	expect(t, len(found), 3)
	contains(t, found["nvidia"].Binary, "/bin/nvidia-container-runtime")
	contains(t, found["nvidia-cdi"].Binary, "/bin/nvidia-container-runtime.cdi")
	expect(t, found["crun"].Type, "io.containerd.runc.v2")
	expect(t, strings.HasPrefix(runtimesPath, "/usr/local/nvidia/toolkit:"), true)
}

func agentOf(t *testing.T, arguments ...string) *agent {
	t.Helper()
	return &agent{settings: serverSettings(t, append(arguments, "--private-registry="+t.TempDir()+"/none")...), folder: t.TempDir()}
}

func TestProtectedKernelDefaults(t *testing.T) {
	_, given := agentOf(t).kubeletDefaults()["protectKernelDefaults"]
	expect(t, given, false)
	expect(t, agentOf(t, "--protect-kernel-defaults").kubeletDefaults()["protectKernelDefaults"], any(true))
}

func TestDefaultRuntimeThatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := agentOf(t, "--default-runtime=nvidia").writeContainerdConfig()
	if err == nil {
		t.Fatal("not refused")
	}
	expect(t, err.Error(), "default runtime nvidia was not found")
}

func TestArgumentsOfCriDockerd(t *testing.T) {
	a := agentOf(t, "--docker", "--pause-image=registry.example.com/pause:3")
	expect(t, a.socket(), "/run/k3s/cri-dockerd/cri-dockerd.sock")
	contains(t, strings.Join(a.dockerArguments(), " "), "--container-runtime-endpoint unix://"+a.socket(), "--network-plugin cni",
		"--cni-conf-dir "+a.cniFolder(), "--pod-infra-container-image registry.example.com/pause:3", "--cri-dockerd-root-directory "+a.path("cri-dockerd"))
	a.supplied.FlannelBackend = "none"
	expect(t, strings.Contains(strings.Join(a.dockerArguments(), " "), "--network-plugin"), false)
}

func TestDefaultRouteOfIPv6(t *testing.T) {
	const (
		none  = "00000000000000000000000000000000"
		local = "fd000099000000000000000000000000 40 " + none + " 00 " + none + " 00000100 00000001 00000000 00000001     eth0\n"
		lost  = none + " 00 " + none + " 00 " + none + " ffffffff 00000001 00000000 00200200       lo\n"
		route = none + " 00 " + none + " 00 fd000099000000000000000000000001 00000400 00000001 00000000 00000003     eth1\n"
	)
	expect(t, defaultDevice6(local+lost), "")
	expect(t, defaultDevice6(local+lost+route), "eth1")
}

func TestContainerdConfig(t *testing.T) {
	runtimeOf(t, "bin/nvidia-container-runtime")
	a := agentOf(t, "--default-runtime=nvidia", "--snapshotter=native", "--selinux")
	a.supplied.SystemDefaultRegistry = "registry.example.com"
	if err := a.writeContainerdConfig(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(a.path("etc", "containerd", "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(content), `default_runtime_name = "nvidia"`, `snapshotter = "native"`, "enable_selinux = true",
		`sandbox = "registry.example.com/rancher/mirrored-pause:3.6"`, `containerd.runtimes.'nvidia'.options]`, `/etc/containerd/config-v3.toml.d/*.toml`)
}

func TestContainerdTemplate(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	a := agentOf(t)
	for name, wanted := range map[string]string{"config.toml.tmpl": "version = 2", "config-v3.toml.tmpl": "version = 3"} {
		for _, generation := range templateGenerations {
			_ = os.Remove(a.path("etc", "containerd", generation.name))
		}
		if err := store(a.path("etc", "containerd", name), []byte("{{ template \"base\" . }}\n# own\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := a.writeContainerdConfig(); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(a.path("etc", "containerd", "config.toml"))
		if err != nil {
			t.Fatal(err)
		}
		contains(t, string(content), "File generated by k3s. DO NOT EDIT. Use "+name+" instead.", wanted, "# own")
	}
}

func TestRegistries(t *testing.T) {
	folder := wrote(t, map[string]string{"registries.yaml": `
mirrors:
  docker.io:
    endpoint: ["https://mirror.example.com:5000"]
    rewrite: {"^rancher/(.*)": "own/$1"}
  "*":
    endpoint: ["http://all.example.com"]
configs:
  mirror.example.com:5000:
    auth: {username: me, password: secret}
    tls: {ca_file: /etc/ca.crt, insecure_skip_verify: true}
`})
	known, err := readRegistries(filepath.Join(folder, "registries.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := known.write(folder, false); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(folder, "docker.io", "hosts.toml"))
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(content), `server = "https://registry-1.docker.io/v2"`, `[host."https://mirror.example.com:5000/v2"]`, `ca = ["/etc/ca.crt"]`,
		"skip_verify = true", `"^rancher/(.*)" = "own/$1"`)
	expect(t, exists(filepath.Join(folder, "_default", "hosts.toml")), true)
	expect(t, known.credentials()["mirror.example.com:5000"]["password"], "secret")
	contains(t, known.hosts("docker.io", true), `server = ""`)
}

func TestArchiveTypes(t *testing.T) {
	folder := wrote(t, map[string]string{"notes.md": "x"})
	err := agentOf(t).importArchive(filepath.Join(folder, "notes.md"))
	expect(t, err.Error(), "unhandled file type")
}

func TestResolvConf(t *testing.T) {
	expect(t, usable([]byte("nameserver 127.0.0.53\n")), false)
	expect(t, usable([]byte("search x\n")), false)
	expect(t, usable([]byte("nameserver 10.0.0.1\n")), true)
}

func TestSchedule(t *testing.T) {
	parsed, err := parseSchedule("0 */12 * * *")
	if err != nil {
		t.Fatal(err)
	}
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	expect(t, parsed.due(day), true)
	expect(t, parsed.due(day.Add(12*time.Hour)), true)
	expect(t, parsed.due(day.Add(time.Hour)), false)
	_, err = parseSchedule("* *")
	contains(t, err.Error(), "expected exactly 5 fields, found 2")
}

func TestSnapshotRetention(t *testing.T) {
	files := map[string]string{"on-demand-s1-9": ""}
	for _, number := range []string{"1", "2", "3"} {
		files["etcd-snapshot-s1-"+number] = ""
	}
	deleted, err := prune(wrote(t, files), "etcd-snapshot", 2)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, strings.Join(deleted, " "), "etcd-snapshot-s1-1")
}

func TestConfigurationOfS3(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString
	stored := object{"data": object{"etcd-s3-bucket": encoded([]byte("snapshots")), "etcd-s3-access-key": encoded([]byte("AK"))}}
	read := func(string) (object, error) { return stored, nil }
	found, err := s3Configuration(s3Settings(serverSettings(t, "--etcd-s3", "--etcd-s3-config-secret=s3")), read)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, found["etcd-s3-bucket"]+" "+found["etcd-s3-endpoint"]+" "+found["etcd-s3-access-key"], "snapshots s3.amazonaws.com AK")
	// Anything that is set beside the Secret takes its place as a whole.
	_, err = s3Configuration(s3Settings(serverSettings(t, "--etcd-s3", "--etcd-s3-config-secret=s3", "--etcd-s3-folder=x")), read)
	expect(t, err.Error(), "s3 bucket name was not set")
	_, err = s3Configuration(s3Settings(serverSettings(t, "--etcd-s3")), read)
	expect(t, err.Error(), "s3 configuration was not set")
	_, err = s3Configuration(s3Settings(serverSettings(t, "--etcd-s3", "--etcd-s3-config-secret=s3")), func(string) (object, error) { return nil, errors.New("not found") })
	expect(t, errors.Is(err, errNoSecret), true)
	expect(t, s3Settings(serverSettings(t)) == nil, true)
}

func TestBalancerKnowsServersOfLastTime(t *testing.T) {
	folder := t.TempDir()
	first, err := newBalancer(filepath.Join(folder, "b.json"), "https://10.0.0.1:6443", "6444")
	if err != nil {
		t.Fatal(err)
	}
	first.servers = []string{"10.0.0.2:6443", "10.0.0.3:6443"}
	if err := first.save("https://10.0.0.1:6443"); err != nil {
		t.Fatal(err)
	}
	second, err := newBalancer(filepath.Join(folder, "b.json"), "https://10.0.0.1:6443", "6444")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, strings.Join(second.candidates(), " "), "10.0.0.2:6443 10.0.0.3:6443 10.0.0.1:6443")
	second.demote("10.0.0.2:6443")
	expect(t, second.candidates()[0], "10.0.0.3:6443")
	other, err := newBalancer(filepath.Join(folder, "b.json"), "https://10.0.0.9:6443", "6444")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, strings.Join(other.candidates(), " "), "10.0.0.9:6443")
}

func TestSecretsAreHiddenInAnnotations(t *testing.T) {
	arguments := os.Args
	defer func() { os.Args = arguments }()
	t.Setenv("K3S_CONFIG_FILE", filepath.Join(wrote(t, map[string]string{"config.yaml": "token: secret\nagent-token-file: /f\nnode-name: a\n"}), "config.yaml"))
	os.Args = []string{"k3s", "server", "--cluster-init"}
	found, err := hiddenArguments()
	if err != nil {
		t.Fatal(err)
	}
	expect(t, found, `["server","--token","********","--agent-token-file","********","--node-name","a","--cluster-init"]`)
}
