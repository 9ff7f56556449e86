package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const containerdState = "/run/k3s/containerd"

// Where runtimes are looked for before PATH: those of NVIDIA's operator and of Kwasm's come before those of packages.
const runtimesPath = "/usr/local/nvidia/toolkit:/opt/kwasm/bin"

type runtimeConfig struct{ Type, Binary string }

func potentialRuntimes() map[string]runtimeConfig {
	const runc = "io.containerd.runc.v2"
	found := map[string]runtimeConfig{
		"crun":                {runc, "crun"},
		"nvidia":              {runc, "nvidia-container-runtime"},
		"nvidia-experimental": {runc, "nvidia-container-runtime-experimental"},
		"nvidia-cdi":          {runc, "nvidia-container-runtime.cdi"},
		"spin":                {"io.containerd.spin.v2", "containerd-shim-spin-v2"},
	}
	for _, name := range []string{"lunatic", "slight", "wws", "wasmedge", "wasmer", "wasmtime"} {
		found[name] = runtimeConfig{"io.containerd." + name + ".v1", "containerd-shim-" + name + "-v1"}
	}
	return found
}

// foundRuntimes are those whose program is in PATH when the process starts; later ones need a restart.
func foundRuntimes() map[string]runtimeConfig {
	original := os.Getenv("PATH")
	defer os.Setenv("PATH", original)
	failed(os.Setenv("PATH", runtimesPath+":"+original))
	found := map[string]runtimeConfig{}
	for name, one := range potentialRuntimes() {
		if path, err := exec.LookPath(one.Binary); err == nil {
			info("Found %s container runtime at %s", name, path)
			found[name] = runtimeConfig{one.Type, path}
		}
	}
	return found
}

func (a *agent) socket() string {
	if given := a.text("container-runtime-endpoint"); given != "" && !a.on("docker") {
		return strings.TrimPrefix(given, "unix://")
	}
	if a.on("docker") {
		return "/run/k3s/cri-dockerd/cri-dockerd.sock"
	}
	return containerdState + "/containerd.sock"
}

// startRuntime returns once containers can run and the images of the node's folder are there.
func (a *agent) startRuntime(ctx context.Context) error {
	if a.supplied.EmbeddedRegistry && (a.on("docker") || a.text("container-runtime-endpoint") != "") {
		return errors.New("embedded registry mirror requires embedded containerd")
	}
	if a.on("docker") {
		return a.startDocker(ctx)
	}
	if a.text("container-runtime-endpoint") != "" {
		return nil
	}
	if err := a.writeContainerdConfig(); err != nil {
		return err
	}
	one := &program{name: "containerd", log: a.path("containerd", "containerd.log")}
	config := a.path("etc", "containerd", "config.toml")
	if err := one.start(part("containerd"), "-c", config, "-a", a.socket(), "--state", containerdState, "--root", a.path("containerd")); err != nil {
		return err
	}
	if !patiently(ctx, 200*time.Millisecond, func() error { return a.ctr("version").Run() }) {
		return nil
	}
	info("containerd is now running")
	a.importImages()
	return nil
}

// startDocker needs what K3s contains and the stand-in does not, unless the machine has it. Images of the node's folder stay where they are.
func (a *agent) startDocker(ctx context.Context) error {
	path, err := exec.LookPath("cri-dockerd")
	if err != nil {
		return fmt.Errorf("the stand-in runs pods with Docker only where the machine has cri-dockerd: %w", err)
	}
	one := &program{name: "cri-dockerd"}
	if err := one.start(path, a.dockerArguments()...); err != nil {
		return err
	}
	patiently(ctx, 200*time.Millisecond, func() error {
		connection, err := net.Dial("unix", a.socket())
		if err != nil {
			return err
		}
		return connection.Close()
	})
	return nil
}

func (a *agent) dockerArguments() []string {
	arguments := []string{"--container-runtime-endpoint", "unix://" + a.socket(), "--cri-dockerd-root-directory", a.path("cri-dockerd"),
		"--pod-infra-container-image", a.pauseImage()}
	if a.supplied.FlannelBackend != "none" {
		arguments = append(arguments, "--network-plugin", "cni", "--cni-conf-dir", a.cniFolder(), "--cni-bin-dir", cniPlugins)
	}
	return arguments
}

// ctr is a client of the node's containerd, for pods' images.
func (a *agent) ctr(arguments ...string) *exec.Cmd {
	return exec.Command(part("ctr"), append([]string{"--address", a.socket(), "--namespace", "k8s.io"}, arguments...)...)
}

func (a *agent) pauseImage() string {
	image, registry := a.text("pause-image"), a.supplied.SystemDefaultRegistry
	if registry == "" || strings.HasPrefix(image, registry) {
		return image
	}
	return registry + "/" + image
}

const cniPlugins = "/usr/lib/cni"

// writeContainerdConfig writes the file, by the template of the machine's owner if there is one.
func (a *agent) writeContainerdConfig() error {
	runtimes := foundRuntimes()
	standard := a.text("default-runtime")
	if _, known := runtimes[standard]; standard != "" && !known {
		return fmt.Errorf("default runtime %s was not found", standard)
	}
	registries, err := readRegistries(a.text("private-registry"))
	if err != nil {
		return err
	}
	folder := a.path("etc", "containerd")
	text, generation, err := fromTemplate(folder)
	if err != nil {
		return err
	}
	values := containerdValues{
		Imports: filepath.Join(folder, generation.folder, "*.toml"), Root: a.path("containerd"), State: containerdState, Address: a.socket(),
		Pause: a.pauseImage(), Snapshotter: a.text("snapshotter"), DefaultRuntime: standard, CNI: cniPlugins, CNIConf: a.cniFolder(),
		Registry: filepath.Join(folder, "certs.d"), SELinux: a.on("selinux"), NonrootDevices: a.on("nonroot-devices"), RestrictOOM: !mayRaisePriority(),
		Network: a.supplied.FlannelBackend != "none", Systemd: a.cgroupDriver() == "systemd", Credentials: registries.credentials(), Runtimes: runtimes,
	}
	if err := registries.write(values.Registry, a.on("disable-default-registry-endpoint")); err != nil {
		return err
	}
	rendered, err := render(text, generation.base, values)
	if err != nil {
		return err
	}
	return store(filepath.Join(folder, "config.toml"), rendered, 0o600)
}

// mayRaisePriority is false where containers cannot get the priority that pods of the system have, as in user namespaces, for which K3s tests.
func mayRaisePriority() bool {
	const capability = 24
	content, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return true
	}
	for _, line := range strings.Split(string(content), "\n") {
		if value, found := strings.CutPrefix(line, "CapEff:"); found {
			effective, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return err != nil || effective&(1<<capability) != 0
		}
	}
	return true
}

var archiveSuffixes = []string{".tar", ".tar.lz4", ".tar.bz2", ".tbz", ".tar.gz", ".tgz", ".tar.zst", ".tzst"}

// importImages imports the archives of the node's folder. One that is no good is an error in the log only.
func (a *agent) importImages() {
	folder := a.path("images")
	entries, err := os.ReadDir(folder)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			problem("Unable to read images in %s: %v", folder, err)
		}
		return
	}
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if err := a.importArchive(path); err != nil {
			problem("Error encountered while importing %s: %v", path, err)
		}
	}
}

func (a *agent) importArchive(path string) error {
	if strings.HasSuffix(strings.ToLower(path), ".txt") {
		return a.pullImages(path)
	}
	if !slices.ContainsFunc(archiveSuffixes, func(suffix string) bool { return strings.HasSuffix(strings.ToLower(path), suffix) }) {
		return errors.New("unhandled file type")
	}
	info("Importing images from %s", path)
	before := a.images()
	if output, err := a.ctr("images", "import", "--all-platforms", path).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(output))
	}
	registries := a.list("airgap-extra-registry")
	if registry := a.supplied.SystemDefaultRegistry; registry != "" && !slices.Contains(registries, registry) {
		registries = append(registries, registry)
	}
	after := a.images()
	for _, image := range slices.Sorted(maps.Keys(after)) {
		if before[image] {
			continue
		}
		info("Imported %s", image)
		_, name, _ := strings.Cut(image, "/")
		for _, registry := range registries {
			if output, err := a.ctr("images", "tag", "--force", image, registry+"/"+name).CombinedOutput(); err != nil {
				return fmt.Errorf("failed to tag image: %w: %s", err, bytes.TrimSpace(output))
			}
		}
	}
	return nil
}

func (a *agent) images() map[string]bool {
	output, err := a.ctr("images", "list", "--quiet").Output()
	if err != nil {
		return nil
	}
	known := map[string]bool{}
	for _, image := range strings.Fields(string(output)) {
		known[image] = true
	}
	return known
}

func (a *agent) pullImages(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	known := a.images()
	for _, image := range strings.Fields(string(content)) {
		if known[image] {
			continue
		}
		info("Pulling image %s...", image)
		if output, err := a.ctr("images", "pull", image).CombinedOutput(); err != nil {
			problem("Failed to pull %s: %s", image, bytes.TrimSpace(output))
		}
	}
	return nil
}
