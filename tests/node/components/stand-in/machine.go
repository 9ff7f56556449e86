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

// Machine describes a node's hardware and its faults. It is read from nvidia_standin/machine.json in the folder that simulates /sys/module. The rig
// may change the file at any time, by a rename, so that no program reads an incomplete file.
type Machine struct {
	// Serial makes the UUIDs of GPUs unique to this machine.
	Serial string `json:"serial"`
	// Product is the name in nvidia-smi: "NVIDIA H100 80GB HBM3".
	Product    string `json:"product"`
	Count      int    `json:"count"`
	MemoryMiB  int    `json:"memory_mib"`
	ECC        *bool  `json:"ecc"`
	MIGCapable bool   `json:"mig_capable"`
	// MIG has the profiles of a partitioned GPU's MIG devices, by GPU number.
	MIG map[string][]string `json:"mig"`
	// Integrated: the GPU is part of the processor.
	Integrated bool   `json:"integrated"`
	Faults     Faults `json:"faults"`
	// Metrics by GPU and DCGM field, instead of those of a healthy, idle GPU.
	Metrics map[string]map[string]float64 `json:"metrics"`
}

// Faults of GPUs, by GPU number.
type Faults struct {
	// Load is modprobe's message if the driver's module cannot be loaded.
	Load string `json:"load"`
	// Daemons: the driver's daemons never become ready.
	Daemons bool `json:"daemons"`
	// CUDA: kernels fail on these GPUs.
	CUDA []int `json:"cuda"`
	// Busy: these GPUs are used by other processes.
	Busy []int `json:"busy"`
	// ECC: number of uncorrected memory errors since the driver was loaded, by GPU.
	ECC map[string]int `json:"ecc"`
	// Xid: critical error, by GPU. 79: the GPU has fallen off the bus.
	Xid map[string]int `json:"xid"`
}

const (
	// shownModules is the folder on a prepared node that is mounted as /sys/module in every container.
	shownModules = "/run/stand-in/modules"
	offTheBus    = 79
)

var (
	modules = "/sys/module"
	devices = "/dev"
	// Modules that the driver loads, in order.
	driverModules = []string{"nvidia", "nvidia_uvm", "nvidia_modeset"}
)

func machineFile() string {
	return filepath.Join(modules, "nvidia_standin", "machine.json")
}

// readMachine returns a machine without GPUs if the file does not exist.
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

// driverVersion returns the version of the loaded module, "" if none is loaded.
func driverVersion() string {
	if !isFile(filepath.Join(modules, "nvidia", "refcnt")) {
		return ""
	}
	version, _ := os.ReadFile(filepath.Join(modules, "nvidia", "version"))
	return strings.TrimSpace(string(version))
}

// mismatched returns the version of the libraries below a root if it differs from that of the loaded module, as after an upgrade of the driver's
// packages: NVIDIA's libraries work only with a module of the same version.
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

// visible lists the GPUs whose device files are in a folder: /dev, or dev in the driver's root.
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

// uncorrected returns the number of a GPU's errors as nvidia-smi prints it.
func (machine Machine) uncorrected(gpu int) string {
	if machine.ECC == nil || !*machine.ECC {
		return "[N/A]"
	}
	return strconv.Itoa(machine.Faults.ECC[strconv.Itoa(gpu)])
}

func (machine Machine) xid(gpu int) int {
	return machine.Faults.Xid[strconv.Itoa(gpu)]
}

// nvml returns the GPUs that NVIDIA's management library reports to a program, or the library's error if there are none.
func nvml(machine Machine, roots ...string) ([]int, error) {
	found, other := false, false
	for _, root := range roots {
		found, other = found || library(root, "libnvidia-ml.so") != "", other || mismatched(root) != ""
	}
	switch gpus := visible(devices, machine); {
	case !found:
		return nil, fmt.Errorf("ERROR_LIBRARY_NOT_FOUND")
	case driverVersion() == "":
		return nil, fmt.Errorf("ERROR_DRIVER_NOT_LOADED")
	case other:
		return nil, fmt.Errorf("ERROR_LIB_RM_VERSION_MISMATCH")
	case len(gpus) == 0:
		return nil, fmt.Errorf("ERROR_NO_PERMISSION")
	default:
		return gpus, nil
	}
}

func contains(numbers []int, number int) bool {
	for _, one := range numbers {
		if one == number {
			return true
		}
	}
	return false
}

// holders returns the processes with an open GPU, which prevent the modules from being unloaded. It needs the process namespace of the host.
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

// library returns the path of one of the driver's libraries below a root, by its name without the version.
func library(root, name string) string {
	for _, folder := range []string{"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64"} {
		if found, _ := filepath.Glob(filepath.Join(root, folder, name+".*.*")); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}
