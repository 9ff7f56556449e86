package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// externals are programs that K3s contains, by the name of the command, or of a link to K3s.
var externals = map[string]func([]string) error{
	"kubectl": func(arguments []string) error {
		if os.Getenv("KUBECONFIG") == "" {
			if err := os.Setenv("KUBECONFIG", "/etc/rancher/k3s/k3s.yaml"); err != nil {
				return err
			}
		}
		return become(part("kubectl"), "kubectl", arguments)
	},
	"ctr": func(arguments []string) error {
		if err := os.Setenv("CONTAINERD_ADDRESS", containerdState+"/containerd.sock"); err != nil {
			return err
		}
		if os.Getenv("CONTAINERD_NAMESPACE") == "" {
			if err := os.Setenv("CONTAINERD_NAMESPACE", "k8s.io"); err != nil {
				return err
			}
		}
		return become(part("ctr"), "ctr", arguments)
	},
	"crictl":       absent("crictl"),
	"check-config": absent("check-config"),
}

// absent is a program that K3s contains, and the stand-in does not.
func absent(name string) func([]string) error {
	return func([]string) error { return fmt.Errorf("the stand-in has no %s", name) }
}

func become(path, name string, arguments []string) error {
	return syscall.Exec(path, append([]string{filepath.Base(name)}, arguments...), os.Environ())
}
