package main

import "os"

// runDeviceQuery simulates CUDA's sample deviceQuery (NVIDIA/cuda-samples, Samples/1_Utilities/deviceQuery/deviceQuery.cpp), with only the lines about
// devices and their memory. An integrated GPU has the compute capability of Orin.
func runDeviceQuery([]string) int {
	announce("deviceQuery")
	say("%s Starting...\n\n CUDA Device Query (Runtime API) version (CUDART static linking)\n", os.Args[0])
	machine, err := readMachine()
	if err != nil {
		return failed("%v", err)
	}
	gpus := visible(devices, machine)
	if library("/", "libcuda.so") == "" {
		return failed("cudaGetDeviceCount returned 35\n-> CUDA driver version is insufficient for CUDA runtime version\nResult = FAIL")
	}
	if driverVersion() == "" || len(gpus) == 0 {
		return failed("cudaGetDeviceCount returned 100\n-> no CUDA-capable device is detected\nResult = FAIL")
	}
	capability, shared, ecc := "9.0", "No", "Enabled"
	if machine.Integrated {
		capability, shared, ecc = "8.7", "Yes", "Disabled"
	}
	cuda := cudaOf(driverVersion())
	say("Detected %d CUDA Capable device(s)", len(gpus))
	for place := range gpus {
		say("\nDevice %d: \"%s\"", place, machine.Product)
		say("  CUDA Driver Version / Runtime Version          %s / 12.2", cuda)
		say("  CUDA Capability Major/Minor version number:    %s", capability)
		say("  Total amount of global memory:                 %d MBytes (%d bytes)", machine.MemoryMiB, machine.MemoryMiB<<20)
		say("  Integrated GPU sharing Host Memory:            %s", shared)
		say("  Device has ECC support:                        %s", ecc)
	}
	say("\ndeviceQuery, CUDA Driver = CUDART, CUDA Driver Version = %s, CUDA Runtime Version = 12.2, NumDevs = %d\nResult = PASS", cuda, len(gpus))
	return 0
}
