// Command stand-in holds every program that takes the place of one that cannot be had without NVIDIA's registry or a GPU: the driver and its
// manager, validator, device plugin, GPU feature discovery, DCGM exporter, nvidia-smi and CUDA's samples. It becomes the one that its own file
// name (argv[0]) says. They speak the real interfaces and leave what the real programs leave; they load no module and compute nothing, and say so
// first. Order, files and messages follow roles/sandbox/files/fleet_agent/programs, which name the sources of each.
//
// The kernel's part is played by a folder, see machine.go. Two programs make it look real to everything on a prepared node and pass everything else
// on: runc (every container sees the folder as /sys/module) and cat (/proc/modules, which NVIDIA's runtime asks).
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

var programs = map[string]func([]string) int{
	"cat":                   runCat,
	"dcgm-exporter":         runExporter,
	"deviceQuery":           runDeviceQuery,
	"driver-manager":        runDriverManager,
	"gpu-feature-discovery": runFeatureDiscovery,
	"machine":               runMachine,
	"nvidia-device-plugin":  runDevicePlugin,
	"nvidia-driver":         runDriver,
	"nvidia-smi":            runSMI,
	"nvidia-validator":      runValidator,
	"runc":                  runRunc,
	"vectorAdd":             runVectorAdd,
}

func main() {
	arguments := os.Args
	if filepath.Base(arguments[0]) == "stand-in" && len(arguments) > 1 {
		arguments = arguments[1:]
	}
	program, known := programs[filepath.Base(arguments[0])]
	if !known {
		fmt.Fprintf(os.Stderr, "%s is no stand-in\n", arguments[0])
		os.Exit(64)
	}
	os.Exit(program(arguments[1:]))
}

func say(format string, values ...any) {
	fmt.Printf(format+"\n", values...)
}

// announce is the first line of every log, so that nobody takes it for the real program's.
func announce(name string) {
	say("stand-in for %s: no module is loaded, nothing is computed", name)
}

// failed says why the program ends, and is its exit status.
func failed(format string, values ...any) int {
	say(format, values...)
	return 1
}

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// signals that ask a program to end.
func signals() <-chan os.Signal {
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGTERM, syscall.SIGINT)
	return received
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
