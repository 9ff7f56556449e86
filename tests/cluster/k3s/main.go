// Command k3s stands in for K3s, whose binary is not to be had where the tests run. It is a front around real parts: etcd, the API server, the controller
// manager, the scheduler, kubelet, kube-proxy, containerd, and the machine's runc. What it does itself is imitated from K3s' code; behaviours.yml has the places.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Both are set by the linker.
var (
	version = "v0.0.0+k3s1"
	commit  = "standin0"
)

// Where the parts of a version are on the machine. K3s' binary contains them.
func partsFolder() string { return filepath.Join("/opt/k3s", version) }

func part(name string) string { return filepath.Join(partsFolder(), name) }

func main() {
	command, arguments := filepath.Base(os.Args[0]), os.Args[1:]
	if _, external := externals[command]; !external {
		if len(arguments) == 0 {
			usage(os.Stdout)
			return
		}
		command, arguments = arguments[0], arguments[1:]
	}
	failed(run(command, arguments))
}

func usage(out *os.File) {
	fmt.Fprintf(out, "NAME:\n   k3s - Kubernetes, but small and simple\n\nUSAGE:\n   k3s [global options] command [command options]\n\nVERSION:\n   %s (%s)\n", version, commit)
}

func run(command string, arguments []string) error {
	if external, known := externals[command]; known {
		return external(arguments)
	}
	switch command {
	case "--version", "-v":
		fmt.Printf("k3s version %s (%s)\ngo version %s\n", version, commit, runtime.Version())
		return nil
	case "--help", "-h", "help":
		usage(os.Stdout)
		return nil
	case "server":
		s, err := commandSettings(command, optionsOf(nodeOptions, serverOptions), arguments)
		if err != nil {
			return err
		}
		return serve(s)
	case "agent":
		s, err := commandSettings(command, optionsOf(nodeOptions), arguments)
		if err != nil {
			return err
		}
		return work(s)
	}
	if manage, known := managements[command]; known {
		return manage(arguments)
	}
	if strings.HasPrefix(command, "-") {
		name, _, _ := strings.Cut(strings.TrimLeft(command, "-"), "=")
		return incorrect(fmt.Errorf("flag provided but not defined: -%s", name))
	}
	return noTopic(command)
}

// Commands that ask a running server or change its files.
var managements = map[string]func([]string) error{
	"token": manageTokens, "etcd-snapshot": manageSnapshots, "secrets-encrypt": manageEncryption, "certificate": manageCertificates,
}

// incorrect says how a command is used, as urfave/cli does before it returns the error.
func incorrect(err error) error {
	fmt.Printf("Incorrect Usage: %v\n\n", err)
	usage(os.Stdout)
	return err
}

func commandSettings(command string, options []option, arguments []string) (*settings, error) {
	all, err := withConfig(command, options, arguments)
	if err != nil {
		return nil, err
	}
	s, err := parse(options, all)
	if err != nil {
		return nil, incorrect(err)
	}
	return s, nil
}

// signalled ends with the process: K3s asks what runs in it to end, and leaves the shims of pods alone.
func signalled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	asked := make(chan os.Signal, 2)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		got := <-asked
		info("Shutdown request received: %v", got)
		cancel()
		stopAll()
		os.Exit(0)
	}()
	return ctx
}

// notify tells systemd that the service works.
func notify() {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return
	}
	connection, err := net.Dial("unixgram", address)
	if err != nil {
		warn("Failed to notify systemd: %v", err)
		return
	}
	defer connection.Close()
	_, _ = connection.Write([]byte("READY=1\n"))
}

// stage makes the folder in which K3s extracts its parts, with links to them, and puts it into PATH.
func stage(dataDir string, bundledFirst bool) error {
	folder := filepath.Join(dataDir, "data", caHash([]byte(version)))
	bin := filepath.Join(folder, "bin")
	own, err := os.Executable()
	if err != nil {
		return err
	}
	links := map[string]string{"k3s": own}
	for _, name := range []string{"kubectl", "ctr", "crictl", "check-config"} {
		links[name] = own
	}
	for _, name := range []string{"kubelet", "kube-proxy", "etcd", "etcdutl"} {
		links["parts/"+name] = part(name)
	}
	for _, name := range components {
		links["parts/"+name] = part("control-plane")
	}
	links["aux/nft"] = part("nft")
	links["containerd"], links["containerd-shim-runc-v2"] = part("containerd"), part("containerd-shim-runc-v2")
	for name, target := range links {
		path := filepath.Join(bin, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := relink(target, path); err != nil {
			return err
		}
	}
	current := filepath.Join(dataDir, "data", "current")
	if found, err := os.Readlink(current); err != nil || found != folder {
		if err == nil {
			if err := os.Rename(current, filepath.Join(dataDir, "data", "previous")); err != nil {
				return err
			}
		}
		info("Preparing data dir %s", folder)
		if err := os.Symlink(folder, current); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	path := os.Getenv("PATH") + ":" + filepath.Join(bin, "aux")
	if bundledFirst {
		path = filepath.Join(bin, "aux") + ":" + os.Getenv("PATH")
	}
	return os.Setenv("PATH", bin+":"+path)
}
