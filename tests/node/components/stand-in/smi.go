package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Exit codes of nvidia-smi (its manual, RETURN VALUE; of other versions: anderskm/gputil issue 55).
const (
	noDevice, noDriver, lostGPU, otherVersion = 6, 9, 15, 18
)

// runSMI does not announce itself, because scripts read its output.
func runSMI(arguments []string) int {
	return smi(arguments, devices, os.Stdout)
}

// smi reports the GPUs whose device files are in a folder.
func smi(arguments []string, folder string, out io.Writer) int {
	version := driverVersion()
	if version == "" {
		fmt.Fprintln(out, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.")
		return noDriver
	}
	if libraries := mismatched(filepath.Dir(folder)); libraries != "" {
		branch := strings.Join(strings.Split(libraries, ".")[:2], ".")
		fmt.Fprintf(out, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: %s\n", branch)
		return otherVersion
	}
	machine, err := readMachine()
	if err != nil {
		fmt.Fprintln(out, err)
		return 255
	}
	gpus := visible(folder, machine)
	if len(gpus) == 0 {
		fmt.Fprintln(out, "No devices were found")
		return noDevice
	}
	for _, gpu := range gpus {
		if machine.xid(gpu) == offTheBus {
			fmt.Fprintf(out, "Unable to determine the device handle for GPU %s: GPU is lost.  Reboot the system to recover this GPU\n", machine.bus(gpu))
			return lostGPU
		}
	}
	fields, apps, form, listing := parsed(arguments)
	switch {
	case apps != nil:
		for _, gpu := range gpus {
			if contains(machine.Faults.Busy, gpu) {
				fmt.Fprintln(out, row(apps, map[string]string{"gpu_uuid": machine.uuid(gpu), "pid": "4000", "name": "job", "process_name": "job"}))
			}
		}
	case fields != nil:
		if !strings.Contains(form, "noheader") {
			fmt.Fprintln(out, strings.Join(fields, ", "))
		}
		for _, gpu := range gpus {
			fmt.Fprintln(out, row(fields, machine.facts(gpu, version, len(gpus), strings.Contains(form, "nounits"))))
		}
	case listing:
		for _, gpu := range gpus {
			fmt.Fprintf(out, "GPU %d: %s (UUID: %s)\n", gpu, machine.Product, machine.uuid(gpu))
		}
	default:
		fmt.Fprintf(out, "| NVIDIA-SMI %s    Driver Version: %s    stand-in: there is no GPU |\n", version, version)
		for _, gpu := range gpus {
			fmt.Fprintf(out, "|   %d  %s    On  |  %dMiB |\n", gpu, machine.Product, machine.MemoryMiB)
		}
	}
	return 0
}

func parsed(arguments []string) (fields, apps []string, form string, listing bool) {
	for _, word := range arguments {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "--query-gpu":
			fields = strings.Split(value, ",")
		case "--query-compute-apps":
			apps = strings.Split(value, ",")
		case "--format":
			form = value
		case "-L", "--list-gpus":
			listing = true
		}
	}
	return
}

func (machine Machine) facts(gpu int, version string, count int, plain bool) map[string]string {
	memory := strconv.Itoa(machine.MemoryMiB)
	if !plain {
		memory += " MiB"
	}
	return map[string]string{
		"index": strconv.Itoa(gpu), "uuid": machine.uuid(gpu), "gpu_uuid": machine.uuid(gpu), "name": machine.Product, "gpu_name": machine.Product,
		"pci.bus_id": machine.bus(gpu), "driver_version": version, "count": strconv.Itoa(count), "memory.total": memory,
		"ecc.errors.uncorrected.volatile.total": machine.uncorrected(gpu), "ecc.mode.current": mode(machine.ECC), "mig.mode.current": migMode(machine.MIGCapable),
	}
}

func mode(enabled *bool) string {
	switch {
	case enabled == nil:
		return "[N/A]"
	case *enabled:
		return "Enabled"
	}
	return "Disabled"
}

func migMode(capable bool) string {
	if capable {
		return "Disabled"
	}
	return "[N/A]"
}

func row(fields []string, facts map[string]string) string {
	values := make([]string, len(fields))
	for index, field := range fields {
		value, known := facts[strings.TrimSpace(field)]
		if !known {
			value = "[N/A]"
		}
		values[index] = value
	}
	return strings.Join(values, ", ")
}
