package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	runFolder   = "/run/nvidia"
	driverRoot  = "/run/nvidia/driver"
	stateFile   = "/run/nvidia/nvidia-driver.state"
	validations = "/run/nvidia/validations"
)

// runDriver simulates `nvidia-driver init` of the driver container.
func runDriver(arguments []string) int {
	if len(arguments) == 0 || arguments[0] != "init" {
		return failed("Usage: nvidia-driver COMMAND [ARG...]")
	}
	announce("nvidia-driver")
	ending := signals()
	machine, err := readMachine()
	if err != nil {
		return failed("%s: %v", machineFile(), err)
	}
	version := setting("DRIVER_VERSION", "0.0.0")
	say("\n========== NVIDIA Software Installer ==========\n")
	say("Starting installation of NVIDIA driver version %s", version)
	lock, err := os.OpenFile(filepath.Join(runFolder, "nvidia-driver.pid"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return failed("%v", err)
	}
	defer lock.Close()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return failed("An instance of the NVIDIA driver is already running, aborting")
	}
	if err := daemons("NotReady"); err != nil {
		return failed("%v", err)
	}
	if staysLoaded() {
		say("The NVIDIA driver is already loaded with the desired configuration, performing userspace-only install")
		unmountRoot()
	} else if status := reload(machine, version); status != 0 {
		return status
	}
	if err := install(machine); err != nil {
		return failed("%v", err)
	}
	say("Done, now waiting for signal")
	for range ending {
		say("Caught signal")
		if unload() {
			unmountRoot()
			return 0
		}
	}
	return 0
}

func daemons(state string) error {
	if err := os.MkdirAll(validations, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(validations, ".driver-daemons-status"), []byte(state+"\n"), 0o644)
}

// staysLoaded returns whether the loaded driver has the same configuration. It then stays loaded, so that no process loses its GPU.
func staysLoaded() bool {
	stored, _ := os.ReadFile(stateFile)
	digest := os.Getenv("DRIVER_CONFIG_DIGEST")
	return digest != "" && driverVersion() != "" && strings.TrimSpace(string(stored)) == digest
}

func unload() bool {
	say("Unloading NVIDIA driver kernel modules...")
	if driverVersion() == "" {
		return true
	}
	if users := holders(); len(users) > 0 {
		say("Could not unload NVIDIA driver kernel modules, driver is in use by processes %s", strings.Join(users, ", "))
		return false
	}
	if err := unloadModules(); err != nil {
		say("%v", err)
		return false
	}
	return true
}

func reload(machine Machine, version string) int {
	if !unload() {
		return 1
	}
	unmountRoot()
	say("Loading NVIDIA driver kernel modules...\n+ modprobe nvidia")
	if machine.Faults.Load != "" {
		return failed("%s", machine.Faults.Load)
	}
	if machine.Count == 0 {
		return failed("modprobe: ERROR: could not insert 'nvidia': No such device\nNVRM: No NVIDIA GPU found.")
	}
	if err := loadModules(version); err != nil {
		return failed("modprobe: ERROR: could not insert 'nvidia': %v", err)
	}
	say("+ modprobe nvidia-uvm\n+ modprobe nvidia-modeset\nStarting NVIDIA persistence daemon...")
	return 0
}

// install creates the device files and mounts the container's root file system on the host, as the real program does (_mount_rootfs): with a private
// /sys, and visible on the host only if the volume is mounted with Bidirectional propagation.
func install(machine Machine) error {
	if err := makeDevices(machine.Count); err != nil {
		return err
	}
	say("Mounting NVIDIA driver rootfs...")
	if err := os.MkdirAll(driverRoot, 0o755); err != nil {
		return err
	}
	steps := []struct {
		source, target string
		flags          uintptr
	}{
		{"", "/sys", syscall.MS_UNBINDABLE | syscall.MS_REC},
		{"", "/sys", syscall.MS_PRIVATE},
		{"/", driverRoot, syscall.MS_BIND | syscall.MS_REC},
	}
	for _, step := range steps {
		if err := syscall.Mount(step.source, step.target, "", step.flags, ""); err != nil {
			return fmt.Errorf("mounting %s at %s: %w", step.source, step.target, err)
		}
	}
	if !machine.Faults.Daemons {
		if err := daemons("Ready"); err != nil {
			return err
		}
	}
	say("Storing driver configuration digest...")
	return os.WriteFile(stateFile, []byte(os.Getenv("DRIVER_CONFIG_DIGEST")+"\n"), 0o644)
}

// makeDevices creates device files with the numbers of /dev/null, so that opening one succeeds.
func makeDevices(count int) error {
	names := []string{"nvidiactl", "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools"}
	for gpu := range count {
		names = append(names, fmt.Sprintf("nvidia%d", gpu))
	}
	for _, name := range names {
		path := filepath.Join(devices, name)
		if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|3); err != nil && err != syscall.EEXIST {
			return fmt.Errorf("mknod %s: %w", path, err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			return err
		}
	}
	return nil
}

func unmountRoot() {
	say("Unmounting NVIDIA driver rootfs...")
	// Each container that was killed has left a mount.
	for syscall.Unmount(driverRoot, syscall.MNT_DETACH) == nil {
	}
}
