// Command stand-in contains all programs that replace one that is not available without NVIDIA's registry or a GPU: the driver and its manager,
// validator, DCGM exporter, nvidia-smi and CUDA's samples. Its file name (argv[0]) selects the program. They use
// the real interfaces and leave the same files as the real programs. They load no module and compute nothing, and their first line says so. Order,
// files and messages follow roles/sandbox/files/fleet_agent/programs, which name the sources of each.
//
// The kernel modules are simulated by a folder, see machine.go. On a prepared node, two programs present it to all others, and pass all other calls to
// the real program: runc (every container gets the folder as /sys/module) and cat (/proc/modules, which NVIDIA's runtime reads).
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

var programs = map[string]func([]string) int{
	"cat":              runCat,
	"dcgm-exporter":    runExporter,
	"describe":         runDescribe,
	"deviceQuery":      runDeviceQuery,
	"driver-manager":   runDriverManager,
	"kubelet":          runKubelet,
	"machine":          runMachine,
	"nvidia-driver":    runDriver,
	"nvidia-smi":       runSMI,
	"nvidia-validator": runValidator,
	"runc":             runRunc,
	"vectorAdd":        runVectorAdd,
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

// announce prints the first line of every log, so that it is not mistaken for the log of the real program.
func announce(name string) {
	say("stand-in for %s: no module is loaded, nothing is computed", name)
}

// failed prints why the program fails, and returns its exit status.
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

// signals returns the signals that terminate a program.
func signals() <-chan os.Signal {
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGTERM, syscall.SIGINT)
	return received
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
