package main

import (
	"os"
	"strconv"
	"strings"
)

// runVectorAdd simulates the sample in the validator's image: one kernel on the first device in CUDA_VISIBLE_DEVICES. The lines are those of NVIDIA's
// program (cuda-samples, vectorAdd.cu), because other programs search for them.
func runVectorAdd([]string) int {
	announce("vectorAdd")
	say("[Vector addition of 50000 elements]")
	machine, err := readMachine()
	if err != nil {
		return failed("%v", err)
	}
	gpus := visible(devices, machine)
	if fault := cudaFault(machine, gpus); fault != "" {
		return failed("Failed to allocate device vector A (error code %s)!", fault)
	}
	hold(gpus)
	say("Copy input data from the host memory to the CUDA device\nCUDA kernel launch with 196 blocks of 256 threads")
	say("Copy output data from the CUDA device to the host memory\nTest PASSED\nDone")
	return 0
}

// cudaFault returns the text of cudaGetErrorString if memory on the first device cannot be allocated, otherwise "".
func cudaFault(machine Machine, gpus []int) string {
	if library("/", "libcuda.so") == "" {
		return "CUDA driver version is insufficient for CUDA runtime version"
	}
	if mismatched("/") != "" {
		// cudaErrorSystemDriverMismatch, 803.
		return "system has unsupported display driver / cuda driver combination"
	}
	gpu, chosen := firstVisible(machine, gpus)
	switch {
	case driverVersion() == "" || !chosen:
		return "no CUDA-capable device is detected"
	case contains(machine.Faults.Busy, gpu):
		return "out of memory"
	case machine.xid(gpu) != 0:
		return "uncorrectable ECC error encountered"
	case contains(machine.Faults.CUDA, gpu):
		return "system not yet initialized"
	}
	return ""
}

// firstVisible returns the first GPU in CUDA_VISIBLE_DEVICES, which contains UUIDs or indices of the container's GPUs.
func firstVisible(machine Machine, gpus []int) (int, bool) {
	chosen, set := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	for place, gpu := range gpus {
		first := strings.Split(chosen, ",")[0]
		if !set || first == machine.uuid(gpu) || first == strconv.Itoa(place) {
			return gpu, true
		}
	}
	return 0, false
}
