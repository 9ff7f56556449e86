package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Folders in which a driver on the host is searched.
var hostSMI = []string{"usr/bin", "usr/sbin", "bin", "sbin", "usr/lib/wsl/lib", "opt/bin"}

// runValidator simulates nvidia-validator for the components in our manifests: driver and toolkit.
func runValidator([]string) int {
	announce("nvidia-validator")
	checks := map[string]func(string) error{"driver": validateDriver, "toolkit": validateToolkit}
	component := os.Getenv("COMPONENT")
	check, known := checks[component]
	if !known {
		return failed("level=fatal msg=\"the stand-in validates driver and toolkit, not %q\"", component)
	}
	output := setting("OUTPUT_DIR", validations)
	err := os.MkdirAll(output, 0o755)
	if err == nil {
		err = check(output)
	}
	if err != nil {
		return failed("level=fatal msg=\"error validating %s installation: %v\"", component, err)
	}
	return 0
}

// again repeats a check if WITH_WAIT is set.
func again(check func() error) error {
	seconds, err := strconv.Atoi(setting("SLEEP_INTERVAL_SECONDS", "5"))
	if err != nil {
		return err
	}
	for {
		err := check()
		if err == nil || os.Getenv("WITH_WAIT") != "true" {
			return err
		}
		say("level=warning msg=\"%v, retrying after %d seconds\"", err, seconds)
		time.Sleep(time.Duration(seconds) * time.Second)
	}
}

func validateDriver(output string) error {
	ready := filepath.Join(output, "driver-ready")
	if err := os.RemoveAll(ready); err != nil {
		return err
	}
	root, inside, host := "/run/nvidia/driver", "/driver-root", hostDriver()
	if host {
		root, inside = "/", "/host"
	} else if err := containerDriver(); err != nil {
		return err
	}
	if err := linkDevices(); err != nil {
		return err
	}
	text := fmt.Sprintf("IS_HOST_DRIVER=%t\nNVIDIA_DRIVER_ROOT=%s\nDRIVER_ROOT_CTR_PATH=%s\nNVIDIA_DEV_ROOT=%s\nDEV_ROOT_CTR_PATH=%s\n", host, root, inside, root, inside)
	return os.WriteFile(ready, []byte(text), 0o644)
}

func hostDriver() bool {
	for _, folder := range hostSMI {
		if isFile(filepath.Join("/host", folder, "nvidia-smi")) && driverVersion() != "" {
			return true
		}
	}
	return false
}

func containerDriver() error {
	managed, err := byOperator()
	if err != nil {
		return fmt.Errorf("error checking if driver is managed by GPU Operator: %w", err)
	}
	return again(func() error {
		say("level=info msg=\"Attempting to validate a driver container installation\"")
		if managed && !isFile(filepath.Join(validations, ".driver-ctr-ready")) {
			return errors.New("the driver container is not ready")
		}
		if library(driverRoot, "libnvidia-ml.so") == "" {
			return errors.New("failed to locate driver libraries: error locating \"libnvidia-ml.so.1\"")
		}
		if !isFile(filepath.Join(driverRoot, "usr/bin/nvidia-smi")) {
			return errors.New("failed to locate nvidia-smi: error locating \"nvidia-smi\"")
		}
		// The real validator runs nvidia-smi in that root, which has a different /sys.
		if status := smi(nil, filepath.Join(driverRoot, "dev"), os.Stdout); status != 0 {
			return fmt.Errorf("exit status %d", status)
		}
		return nil
	})
}

// byOperator returns whether a ClusterPolicy or NVIDIADriver owns the driver DaemonSet. The ready file of the container is then also required.
func byOperator() (bool, error) {
	server, err := newAPI()
	if err != nil {
		return false, err
	}
	path := "/apis/apps/v1/daemonsets"
	if namespace := os.Getenv("OPERATOR_NAMESPACE"); namespace != "" {
		path = "/apis/apps/v1/namespaces/" + namespace + "/daemonsets"
	}
	var found list
	if err := server.call(http.MethodGet, path+"?labelSelector=app.kubernetes.io%2Fcomponent%3Dnvidia-driver", nil, &found); err != nil {
		return false, err
	}
	for _, one := range found.Items {
		for _, by := range one.Metadata.OwnerReferences {
			if by.Controller != nil && *by.Controller && strings.HasPrefix(by.APIVersion, "nvidia.com/") {
				return true, nil
			}
		}
	}
	return false, nil
}

// linkDevices creates links to the GPUs in /dev/char, without which containers lose them when systemd reloads (NVIDIA/nvidia-container-toolkit issue 48).
func linkDevices() error {
	say("level=info msg=\"creating symlinks under /dev/char that correspond to NVIDIA character devices\"")
	machine, err := readMachine()
	if err != nil {
		return err
	}
	targets := map[string]string{"195:255": "/dev/nvidiactl", "195:254": "/dev/nvidia-modeset"}
	for gpu := range machine.Count {
		targets[fmt.Sprintf("195:%d", gpu)] = fmt.Sprintf("/dev/nvidia%d", gpu)
	}
	for name, target := range targets {
		if err := os.Symlink(target, filepath.Join("/host-dev-char", name)); err != nil && !os.IsExist(err) {
			return fmt.Errorf("error creating symlinks: %w", err)
		}
	}
	return nil
}

// validateToolkit checks that the runtime has mounted nvidia-smi into this container.
func validateToolkit(output string) error {
	ready := filepath.Join(output, "toolkit-ready")
	if err := os.RemoveAll(ready); err != nil {
		return err
	}
	err := again(func() error {
		path, err := exec.LookPath("nvidia-smi")
		if err != nil {
			return errors.New("exec: \"nvidia-smi\": executable file not found in $PATH")
		}
		command := exec.Command(path)
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
		return command.Run()
	})
	if err != nil {
		say("toolkit is not ready")
		return err
	}
	return os.WriteFile(ready, nil, 0o644)
}
