package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	switches = "nvidia.com/gpu.deploy."
	paused   = "paused-for-driver-upgrade"
	grace    = 5 * time.Minute
)

var (
	// Written at every start. A label that the node does not have is added with an empty value.
	operands = []string{
		"operator-validator", "container-toolkit", "device-plugin", "gpu-feature-discovery", "dcgm-exporter", "dcgm", "nvsm", "sandbox-validator",
		"sandbox-device-plugin", "vgpu-device-manager", "dra-validator", "dcgm-dra", "dcgm-exporter-dra",
	}
	// Written only if the node has them.
	optional = []string{"mig-manager", "client"}
	// Pods that must be deleted before modules are unloaded, by their label app.
	clients = []string{
		"nvidia-operator-validator", "nvidia-container-toolkit-daemonset", "nvidia-device-plugin-daemonset", "gpu-feature-discovery",
		"nvidia-dcgm-exporter", "nvidia-dcgm", "nvidia-dcgm-exporter-dra", "nvidia-dcgm-dra",
	}
)

// runDriverManager simulates `driver-manager uninstall_driver`, the driver's init container: clients are evicted, modules are unloaded, clients may
// return. Unlike the real program, it does not support an operator's DRA driver.
func runDriverManager(arguments []string) int {
	announce("driver-manager")
	node := os.Getenv("NODE_NAME")
	if node == "" || len(arguments) == 0 || arguments[0] != "uninstall_driver" {
		return failed("usage: NODE_NAME=... driver-manager uninstall_driver")
	}
	server, err := newAPI()
	if err == nil {
		err = uninstall(server, node)
	}
	if err != nil {
		return failed("level=fatal msg=%q", err.Error())
	}
	return 0
}

func uninstall(server *api, node string) error {
	if isFile("/host/usr/bin/nvidia-smi") {
		say("level=info msg=\"NVIDIA GPU driver is already pre-installed on the node, disabling the containerized driver on the node\"")
		if err := label(server, node, map[string]string{"driver": "pre-installed"}); err != nil {
			return err
		}
		return errors.New("driver is pre-installed on the node")
	}
	var found object
	if err := server.call(http.MethodGet, "/api/v1/nodes/"+node, nil, &found); err != nil {
		return err
	}
	before := map[string]string{}
	for _, name := range operands {
		before[name] = found.Metadata.Labels[switches+name]
	}
	for _, name := range optional {
		if value, there := found.Metadata.Labels[switches+name]; there {
			before[name] = value
		}
	}
	err := clear(server, node, before)
	say("level=info msg=\"Rescheduling all GPU clients on the current node by enabling their component-specific nodeSelector labels\"")
	return errors.Join(err, label(server, node, changed(before, resume)))
}

// clear evicts clients and unloads the driver, unless the loaded driver is the desired one.
func clear(server *api, node string, before map[string]string) error {
	if driverVersion() == "" {
		say("level=info msg=\"No NVIDIA driver loaded, skipping eviction of GPU clients and workloads\"")
		unmountRoot()
		return nil
	}
	say("level=info msg=\"Shutting down all GPU clients on the current node by disabling their component-specific nodeSelector labels\"")
	if err := label(server, node, changed(before, pause)); err != nil {
		return err
	}
	for _, app := range clients {
		say("level=info msg=\"Waiting for %s to shutdown\"", app)
		if err := gone(server, node, app); err != nil {
			return err
		}
	}
	if staysLoaded() {
		say("level=info msg=\"The NVIDIA driver is already loaded with the desired version and configuration, skipping the uninstallation\"")
	} else if !unload() {
		return errors.New("failed to uninstall nvidia driver components: failed to unload driver")
	}
	unmountRoot()
	return nil
}

func gone(server *api, node, app string) error {
	query := url.Values{"labelSelector": {"app=" + app}, "fieldSelector": {"spec.nodeName=" + node}}
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods?%s", setting("OPERATOR_NAMESPACE", "gpu-operator"), query.Encode())
	for end := time.Now().Add(grace); ; time.Sleep(5 * time.Second) {
		var pods list
		if err := server.call(http.MethodGet, path, nil, &pods); err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return errors.New("failed to evict GPU operator components: context deadline exceeded")
		}
	}
}

func label(server *api, node string, values map[string]string) error {
	labels := map[string]string{}
	for name, value := range values {
		labels[switches+name] = value
	}
	patch := map[string]any{"metadata": map[string]any{"labels": labels}}
	return server.call(http.MethodPatch, "/api/v1/nodes/"+node+"?fieldManager=driver-manager", patch, nil)
}

func changed(before map[string]string, change func(string) string) map[string]string {
	after := map[string]string{}
	for name, value := range before {
		after[name] = change(value)
	}
	return after
}

func pause(value string) string {
	switch {
	case value == "" || value == "false" || strings.Contains(value, paused):
		return value
	case value == "true":
		return paused
	}
	return value + "_" + paused
}

func resume(value string) string {
	if value == paused {
		return "true"
	}
	return strings.Trim(strings.ReplaceAll(strings.ReplaceAll(value, paused+"_", ""), paused, ""), "_")
}
