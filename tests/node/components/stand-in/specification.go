package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	specificationKind = "k8s.device-plugin.nvidia.com/gpu"
	specificationFile = "/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json"
)

// edits of a container in the terms of the Container Device Interface, specification 0.5.0.
type edits struct {
	Env         []string     `json:"env,omitempty"`
	DeviceNodes []deviceNode `json:"deviceNodes,omitempty"`
	Mounts      []mount      `json:"mounts,omitempty"`
}

type deviceNode struct {
	Path     string `json:"path"`
	HostPath string `json:"hostPath"`
}

type mount struct {
	HostPath      string   `json:"hostPath"`
	ContainerPath string   `json:"containerPath"`
	Options       []string `json:"options"`
}

type device struct {
	Name           string `json:"name"`
	ContainerEdits edits  `json:"containerEdits"`
}

type specification struct {
	Version        string   `json:"cdiVersion"`
	Kind           string   `json:"kind"`
	Devices        []device `json:"devices"`
	ContainerEdits edits    `json:"containerEdits"`
}

func writeSpecification(machine Machine, gpus []int) error {
	text, err := json.Marshal(specify(machine, gpus, setting("DRIVER_ROOT_CTR_PATH", "/driver-root"), setting("NVIDIA_DRIVER_ROOT", driverRoot)))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(specificationFile), 0o755); err != nil {
		return err
	}
	return replace(specificationFile, text)
}

// specify returns a device for each GPU, with the driver's libraries and nvidia-smi, which are below root in this container and below hostRoot on the
// host. The real plugin also adds hooks that create links and the cache of libraries.
func specify(machine Machine, gpus []int, root, hostRoot string) specification {
	common := edits{Env: []string{"NVIDIA_VISIBLE_DEVICES=void"}}
	paths, _ := filepath.Glob(filepath.Join(root, "usr/lib/*/lib*.so.*.*"))
	for _, path := range append(paths, filepath.Join(root, "usr/bin/nvidia-smi")) {
		inside := "/" + strings.TrimPrefix(strings.TrimPrefix(path, root), "/")
		common.Mounts = append(common.Mounts, mount{filepath.Join(hostRoot, inside), inside, []string{"ro", "nosuid", "nodev", "rbind", "rprivate"}})
	}
	for _, name := range []string{"nvidiactl", "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools"} {
		common.DeviceNodes = append(common.DeviceNodes, deviceNode{"/dev/" + name, filepath.Join(hostRoot, "dev", name)})
	}
	made := specification{Version: "0.5.0", Kind: specificationKind, ContainerEdits: common}
	for _, gpu := range gpus {
		path := fmt.Sprintf("/dev/nvidia%d", gpu)
		node := deviceNode{path, filepath.Join(hostRoot, path)}
		made.Devices = append(made.Devices, device{machine.uuid(gpu), edits{DeviceNodes: []deviceNode{node}}})
	}
	return made
}
