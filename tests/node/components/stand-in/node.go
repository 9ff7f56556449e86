package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// runMachine prepares a node: `stand-in machine FILE`, as root, at each boot before the container runtime starts, and again after each change of
// FILE, which describes the machine (see machine.go). It creates the folder of modules and mounts it over the node's /sys/module. Loaded modules stay
// loaded.
func runMachine(arguments []string) int {
	if len(arguments) != 1 {
		return failed("usage: stand-in machine FILE")
	}
	text, err := os.ReadFile(arguments[0])
	var machine Machine
	if err == nil {
		err = json.Unmarshal(text, &machine)
	}
	if err == nil {
		err = prepare(text, machine)
	}
	if err != nil {
		return failed("%s: %v", arguments[0], err)
	}
	say("stand-in for the kernel: %d GPUs", machine.Count)
	return 0
}

func prepare(text []byte, machine Machine) error {
	mounted := isFile(machineFile())
	modules = shownModules
	// Drivers write the folder of their firmware to this parameter, which kernels without a firmware loader do not have.
	parameters := filepath.Join(modules, "firmware_class", "parameters")
	for _, folder := range []string{filepath.Dir(machineFile()), parameters} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	if path := filepath.Join(parameters, "path"); !isFile(path) {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			return err
		}
	}
	if err := writeDescriptions(text, machine); err != nil || mounted {
		return err
	}
	return syscall.Mount(shownModules, "/sys/module", "", syscall.MS_BIND, "")
}

// realPrograms are the paths, on Debian and others, of the programs in front of which this program is installed.
var realPrograms = map[string][]string{"runc": {"/usr/sbin/runc", "/usr/bin/runc"}, "cat": {"/usr/bin/cat", "/bin/cat"}}

func become(name string, arguments []string) int {
	for _, path := range realPrograms[name] {
		if isFile(path) {
			err := syscall.Exec(path, append([]string{name}, arguments...), os.Environ())
			return failed("%s: %v", path, err)
		}
	}
	path, err := exec.LookPath(name)
	return failed("no %s at %v (%s, %v)", name, realPrograms[name], path, err)
}

// runCat adds the stand-in's modules to /proc/modules, over which nothing can be mounted: a kernel without loadable modules has no such file.
func runCat(arguments []string) int {
	if len(arguments) != 1 || arguments[0] != "/proc/modules" || !isFile(filepath.Join(shownModules, "nvidia_standin", "machine.json")) {
		return become("cat", arguments)
	}
	if text, err := os.ReadFile("/proc/modules"); err == nil {
		os.Stdout.Write(text)
	}
	modules = shownModules
	if driverVersion() != "" {
		for _, name := range driverModules {
			say("%s 104071168 0 - Live 0x0000000000000000", name)
		}
	}
	return 0
}

// runRunc adds the stand-in's /sys/module to each container of a prepared node, then executes runc.
func runRunc(arguments []string) int {
	if isFile(filepath.Join(shownModules, "nvidia_standin", "machine.json")) {
		if bundle := bundleOf(arguments); bundle != "" {
			if err := showModules(filepath.Join(bundle, "config.json")); err != nil {
				fmt.Fprintln(os.Stderr, "stand-in for runc:", err)
				return 1
			}
		}
	}
	return become("runc", arguments)
}

// bundleOf returns the folder of the container to be created, "" for other commands.
func bundleOf(arguments []string) string {
	makes, bundle := false, ""
	for index, word := range arguments {
		switch {
		case word == "create" || word == "run":
			makes = true
		case (word == "--bundle" || word == "-b") && index+1 < len(arguments):
			bundle = arguments[index+1]
		case strings.HasPrefix(word, "--bundle="):
			bundle = strings.TrimPrefix(word, "--bundle=")
		}
	}
	if !makes {
		return ""
	}
	return bundle
}

// showModules changes only the list of mounts. A container with the host's /sys also has the host's /sys/module.
func showModules(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var spec map[string]json.RawMessage
	var mounts []map[string]any
	if err := json.Unmarshal(text, &spec); err != nil {
		return err
	}
	if err := json.Unmarshal(spec["mounts"], &mounts); err != nil {
		return err
	}
	changed := []map[string]any{}
	for _, mount := range mounts {
		changed = append(changed, mount)
		if mount["destination"] == "/sys" && mount["type"] == "sysfs" {
			options := []string{"rbind", "rprivate", "rw"}
			if listed, _ := mount["options"].([]any); slicesContain(listed, "ro") {
				options[2] = "ro"
			}
			changed = append(changed, map[string]any{"destination": "/sys/module", "type": "bind", "source": shownModules, "options": options})
		}
	}
	if spec["mounts"], err = json.Marshal(changed); err != nil {
		return err
	}
	if text, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

func slicesContain(values []any, wanted string) bool {
	for _, value := range values {
		if value == wanted {
			return true
		}
	}
	return false
}
