package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
)

// Machine is what a node has, and what is wrong with it, as nvidia_standin/machine.json in the folder that plays /sys/module says. The rig may
// change the file at any time; replace it by a rename, so that nobody reads half of it.
type Machine struct {
	// Serial makes the GPUs' UUIDs those of this machine.
	Serial string `json:"serial"`
	// Product as nvidia-smi names it: "NVIDIA H100 80GB HBM3".
	Product    string `json:"product"`
	Count      int    `json:"count"`
	MemoryMiB  int    `json:"memory_mib"`
	ECC        *bool  `json:"ecc"`
	MIGCapable bool   `json:"mig_capable"`
	// Integrated: the GPU is part of the processor.
	Integrated bool   `json:"integrated"`
	Faults     Faults `json:"faults"`
	// Metrics by GPU and DCGM field, in place of what the exporter says of a healthy, idle GPU.
	Metrics map[string]map[string]float64 `json:"metrics"`
}

// Faults of GPUs are by their numbers.
type Faults struct {
	// Load is what modprobe says when the driver's module cannot be loaded.
	Load string `json:"load"`
	// Daemons: the driver's daemons never get ready.
	Daemons bool `json:"daemons"`
	// CUDA: on these GPUs no kernel runs.
	CUDA []int `json:"cuda"`
	// Busy: on these GPUs somebody computes.
	Busy []int `json:"busy"`
	// ECC: GPU to how many errors of its memory could not be corrected since its driver was loaded.
	ECC map[string]int `json:"ecc"`
	// Xid: GPU to the critical error that it has had; 79 is a GPU that has fallen off the bus.
	Xid map[string]int `json:"xid"`
}

const (
	// shownModules is the folder on a prepared node that every container has as its /sys/module.
	shownModules = "/run/stand-in/modules"
	offTheBus    = 79
)

var (
	modules = "/sys/module"
	devices = "/dev"
	// loaded by the driver, in order.
	driverModules = []string{"nvidia", "nvidia_uvm", "nvidia_modeset"}
)

func machineFile() string {
	return filepath.Join(modules, "nvidia_standin", "machine.json")
}

// readMachine returns a machine without GPUs where nobody has described one.
func readMachine() (Machine, error) {
	var machine Machine
	text, err := os.ReadFile(machineFile())
	if os.IsNotExist(err) {
		return machine, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &machine)
	}
	return machine, err
}

// driverVersion of the loaded module, "" where none is loaded.
func driverVersion() string {
	if !isFile(filepath.Join(modules, "nvidia", "refcnt")) {
		return ""
	}
	version, _ := os.ReadFile(filepath.Join(modules, "nvidia", "version"))
	return strings.TrimSpace(string(version))
}

// mismatched returns the version of the libraries below a root where it is another than that of the loaded module, as after an upgrade of the
// driver's packages: NVIDIA's libraries talk to a module of their own version only.
func mismatched(root string) string {
	_, version, _ := strings.Cut(filepath.Base(library(root, "libnvidia-ml.so")), ".so.")
	if loaded := driverVersion(); version == "" || loaded == "" || version == loaded {
		return ""
	}
	return version
}

func loadModules(version string) error {
	for _, name := range driverModules {
		folder := filepath.Join(modules, name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		for file, text := range map[string]string{"version": version, "refcnt": "0", "initstate": "live"} {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(text+"\n"), 0o444); err != nil {
				return err
			}
		}
	}
	return nil
}

func unloadModules() error {
	for _, name := range driverModules {
		if err := os.RemoveAll(filepath.Join(modules, name)); err != nil {
			return err
		}
	}
	return nil
}

// visible lists the GPUs whose device files a folder holds: /dev, or that of the driver's root.
func visible(folder string, machine Machine) []int {
	found := []int{}
	paths, _ := filepath.Glob(filepath.Join(folder, "nvidia[0-9]*"))
	for _, path := range paths {
		number, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "nvidia"))
		if err == nil && number < machine.Count {
			found = append(found, number)
		}
	}
	sort.Ints(found)
	return found
}

func (machine Machine) uuid(gpu int) string {
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprintf("%s/%d", machine.Serial, gpu))))
	return fmt.Sprintf("GPU-%s-%s-%s-%s-%s", digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32])
}

func (machine Machine) bus(gpu int) string {
	return fmt.Sprintf("00000000:%02X:00.0", 16+gpu)
}

// uncorrected counts a GPU's errors as nvidia-smi words it.
func (machine Machine) uncorrected(gpu int) string {
	if machine.ECC == nil || !*machine.ECC {
		return "[N/A]"
	}
	return strconv.Itoa(machine.Faults.ECC[strconv.Itoa(gpu)])
}

func (machine Machine) xid(gpu int) int {
	return machine.Faults.Xid[strconv.Itoa(gpu)]
}

func contains(numbers []int, number int) bool {
	for _, one := range numbers {
		if one == number {
			return true
		}
	}
	return false
}

// holders are the processes that have a GPU open, which keeps the modules loaded. Seen in the host's process namespace only.
func holders() []string {
	found := []string{}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		target, err := os.Readlink(link)
		if err == nil && strings.HasPrefix(target, "/dev/nvidia") {
			found = append(found, strings.Split(link, "/")[2])
		}
	}
	return found
}

// hold opens the first GPU, as NVML and CUDA do, until the process ends.
func hold(gpus []int) {
	if len(gpus) > 0 {
		// The descriptor stays open on purpose.
		_, _ = syscall.Open(filepath.Join(devices, fmt.Sprintf("nvidia%d", gpus[0])), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	}
}

// library finds one of the driver's below a root, by the name without its version.
func library(root, name string) string {
	for _, folder := range []string{"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64"} {
		if found, _ := filepath.Glob(filepath.Join(root, folder, name+".*.*")); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}
