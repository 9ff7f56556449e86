package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// migProfile is the number of a profile in NVML (NVML_GPU_INSTANCE_PROFILE_...), its eighths of the memory, and the parts of the GPU that it has.
type migProfile struct{ number, eighths, slices, instances, processors, copy, decoder, jpeg, ofa int }

// Of H100 with 80 GB (NVIDIA/go-nvml v0.13.4-1, pkg/nvml/mock/gpus/h100.go).
var migProfiles = map[string]migProfile{
	"1g.10gb":    {0, 1, 1, 7, 16, 1, 1, 0, 0},
	"1g.10gb+me": {7, 1, 1, 1, 16, 1, 1, 1, 1},
	"1g.20gb":    {9, 2, 1, 4, 16, 1, 1, 0, 0},
	"2g.20gb":    {1, 2, 2, 3, 32, 2, 1, 0, 0},
	"3g.40gb":    {2, 4, 3, 2, 48, 3, 2, 0, 0},
	"4g.40gb":    {3, 4, 4, 1, 64, 4, 2, 0, 0},
	"7g.80gb":    {4, 8, 7, 1, 112, 7, 5, 0, 0},
}

// architecture is a product's family, compute capability and PCI device.
type architecture struct {
	product, capability string
	device              int
}

var architectures = []architecture{
	{"H100", "9.0", 0x2330}, {"H200", "9.0", 0x2335}, {"A100", "8.0", 0x20b5}, {"L40S", "8.9", 0x26b9}, {"L4", "8.9", 0x27b8}, {"T4", "7.5", 0x1eb8},
	{"B200", "10.0", 0x2901},
}

func (machine Machine) architecture() architecture {
	for _, one := range architectures {
		if strings.Contains(machine.Product, one.product) {
			return one
		}
	}
	return architectures[0]
}

// runDescribe prints what the stand-in of the management library reads, of the machine in the folder of modules.
func runDescribe([]string) int {
	machine, err := readMachine()
	if err != nil {
		return failed("%v", err)
	}
	fmt.Print(machine.describe())
	return 0
}

// describe returns the machine for the stand-in of the management library (tests/node/components/nvml), which reads no JSON. Lines begin with the kind:
//
//	gpu NUMBER UUID MIB COMPUTE_CAPABILITY MIG XID PCI_DEVICE NAME    MIG: -1 not supported, 0 disabled, 1 enabled
//	mig NUMBER INSTANCE PROFILE UUID                                  a MIG device of the GPU
//	profile NUMBER ID SLICES INSTANCES PROCESSORS COPY DECODER ENCODER JPEG OFA MIB
//	cuda DRIVER_BRANCH VERSION                                        1000 * major + 10 * minor
func (machine Machine) describe() string {
	var lines []string
	mig := -1
	if machine.MIGCapable {
		mig = 0
	}
	for gpu := range machine.Count {
		enabled := mig
		parts, partitioned := machine.MIG[fmt.Sprint(gpu)]
		if partitioned {
			enabled = 1
		}
		kind := machine.architecture()
		lines = append(lines, fmt.Sprintf("gpu %d %s %d %s %d %d %x10de %s",
			gpu, machine.uuid(gpu), machine.MemoryMiB, kind.capability, enabled, machine.xid(gpu), kind.device, machine.Product))
		for place, name := range parts {
			lines = append(lines, fmt.Sprintf("mig %d %d %d %s", gpu, place+1, migProfiles[name].number, machine.part(gpu, place)))
		}
	}
	for _, one := range migProfiles {
		lines = append(lines, fmt.Sprintf("profile %d %d %d %d %d %d %d 0 %d %d %d", one.number, one.number, one.slices, one.instances,
			one.processors, one.copy, one.decoder, one.jpeg, one.ofa, machine.MemoryMiB*one.eighths/8))
	}
	for branch, version := range cudaVersions {
		major, minor, _ := strings.Cut(version, ".")
		lines = append(lines, fmt.Sprintf("cuda %s %s0%s0", branch, major, minor))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n") + "\n"
}

// part returns the UUID of a MIG device.
func (machine Machine) part(gpu, place int) string {
	return "MIG" + strings.TrimPrefix(Machine{Serial: fmt.Sprintf("%s/mig%d", machine.Serial, gpu)}.uuid(place), "GPU")
}

// writeDescriptions writes the machine as JSON and for the management library, each by a rename, so that no program reads an incomplete file.
func writeDescriptions(text []byte, machine Machine) error {
	if err := replace(filepath.Join(filepath.Dir(machineFile()), "gpus"), []byte(machine.describe())); err != nil {
		return err
	}
	return replace(machineFile(), text)
}

// cudaOf returns the newest CUDA version that a driver's branch supports.
func cudaOf(version string) string {
	branch, _, _ := strings.Cut(version, ".")
	return cudaVersions[branch]
}

var cudaVersions = map[string]string{"610": "13.3", "595": "13.2", "580": "13.0", "570": "12.8", "550": "12.4", "535": "12.2"}

func replace(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
