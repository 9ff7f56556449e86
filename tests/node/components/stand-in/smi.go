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
	asked, wrong := parsed(arguments)
	if wrong != nil {
		fmt.Fprint(out, wrong.message)
		return wrong.code
	}
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
	chosen := gpus
	if asked.id != "" {
		place, err := strconv.Atoi(asked.id)
		if err != nil || place < 0 || place >= len(gpus) {
			fmt.Fprintln(out, "No devices were found")
			return noDevice
		}
		chosen = gpus[place : place+1]
	}
	switch {
	case asked.query == queryApps:
		if asked.header {
			fmt.Fprintln(out, asked.heading())
		}
		for _, gpu := range chosen {
			if contains(machine.Faults.Busy, gpu) {
				fmt.Fprintln(out, asked.row(map[string]string{"gpu_uuid": machine.uuid(gpu), "gpu_name": machine.Product, "pid": "4000", "process_name": "job"}))
			}
		}
	case asked.query == queryGPUs:
		if asked.header {
			fmt.Fprintln(out, asked.heading())
		}
		for place, gpu := range gpus {
			if contains(chosen, gpu) {
				fmt.Fprintln(out, asked.row(machine.facts(place, gpu, version, len(gpus), asked.units)))
			}
		}
	case asked.listing:
		for place, gpu := range gpus {
			fmt.Fprintf(out, "GPU %d: %s (UUID: %s)\n", place, machine.Product, machine.uuid(gpu))
		}
	default:
		fmt.Fprintf(out, "| NVIDIA-SMI %s    Driver Version: %s    stand-in: there is no GPU |\n", version, version)
		for _, gpu := range chosen {
			fmt.Fprintf(out, "|   %d  %s    On  |  %dMiB |\n", gpu, machine.Product, machine.MemoryMiB)
		}
	}
	return 0
}

// facts by field. place: the number of the GPU among those that are visible, as NVML numbers them; gpu: on the machine.
func (machine Machine) facts(place, gpu int, version string, count int, units bool) map[string]string {
	memory := strconv.Itoa(machine.MemoryMiB)
	if units {
		memory += " MiB"
	}
	return map[string]string{
		"index": strconv.Itoa(place), "uuid": machine.uuid(gpu), "name": machine.Product,
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
