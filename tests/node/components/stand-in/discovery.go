package main

import (
	"fmt"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var notInLabels = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// runFeatureDiscovery simulates gpu-feature-discovery with NodeFeature objects, its default since v0.19.
func runFeatureDiscovery([]string) int {
	announce("gpu-feature-discovery")
	ending := signals()
	interval, err := time.ParseDuration(setting("GFD_SLEEP_INTERVAL", "60s"))
	if err != nil {
		return failed("E main.go] %v", err)
	}
	server, err := newAPI()
	if err != nil {
		return failed("E main.go] %v", err)
	}
	for {
		if err := discover(server); err != nil {
			return failed("E main.go] %v", err)
		}
		select {
		case <-ending:
			return 0
		case <-time.After(interval):
		}
	}
}

func discover(server *api) error {
	config, err := readConfig()
	if err != nil {
		return err
	}
	machine, err := readMachine()
	if err != nil {
		return err
	}
	gpus, err := nvml(machine, "/")
	if err != nil {
		return fmt.Errorf("failed to initialize NVML: %w", err)
	}
	return publish(server, gpuLabels(machine, len(gpus), driverVersion(), config))
}

// architecture returns a product's family and compute capability.
var architectures = []struct{ product, family, major, minor string }{
	{"H100", "hopper", "9", "0"}, {"H200", "hopper", "9", "0"}, {"A100", "ampere", "8", "0"}, {"L40S", "ada-lovelace", "8", "9"},
	{"L4", "ada-lovelace", "8", "9"}, {"T4", "turing", "7", "5"}, {"B200", "blackwell", "10", "0"},
}

// cudaOf returns the newest CUDA version that a driver's branch supports.
func cudaOf(version string) string {
	branch, _, _ := strings.Cut(version, ".")
	return cudaVersions[branch]
}

var cudaVersions = map[string]string{"610": "13.3", "595": "13.2", "580": "13.0", "570": "12.8", "550": "12.4", "535": "12.2"}

func gpuLabels(machine Machine, count int, version string, config pluginConfig) map[string]string {
	replicas, name := config.shared()
	product, sharing := machine.Product, "none"
	if replicas > 1 {
		sharing = "time-slicing"
		if name == gpuResource {
			product += "-SHARED"
		}
	}
	numbers := append(strings.Split(version, "."), "", "")
	cuda := append(strings.Split(cudaOf(version), "."), "")
	family, major, minor := "hopper", "9", "0"
	for _, one := range architectures {
		if strings.Contains(machine.Product, one.product) {
			family, major, minor = one.family, one.major, one.minor
			break
		}
	}
	found := map[string]string{
		"cuda.driver-version.full": version, "cuda.driver-version.major": numbers[0], "cuda.driver-version.minor": numbers[1],
		"cuda.driver-version.revision": numbers[2], "cuda.runtime-version.full": cudaOf(version),
		"cuda.runtime-version.major": cuda[0], "cuda.runtime-version.minor": cuda[1],
		"gpu.count": strconv.Itoa(count), "gpu.product": product, "gpu.memory": strconv.Itoa(machine.MemoryMiB), "gpu.family": family,
		"gpu.machine": "stand-in", "gpu.compute.major": major, "gpu.compute.minor": minor, "gpu.replicas": strconv.Itoa(replicas), "gpu.mode": "compute",
		"gpu.sharing-strategy": sharing, "mig.capable": strconv.FormatBool(machine.MIGCapable), "mig.strategy": setting("MIG_STRATEGY", "none"),
		"mps.capable": "false",
	}
	labels := map[string]string{}
	for key, value := range found {
		labels["nvidia.com/"+key] = notInLabels.ReplaceAllString(value, "-")
	}
	return labels
}

func publish(server *api, labels map[string]string) error {
	node, namespace := os.Getenv("NODE_NAME"), os.Getenv("NAMESPACE")
	if node == "" {
		return fmt.Errorf("required flag \"node-name\" not set")
	}
	name := "nvidia-features-for-" + node
	base := "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/" + namespace + "/nodefeatures"
	metadata := map[string]any{"name": name, "labels": map[string]string{"nfd.node.kubernetes.io/node-name": node}, "ownerReferences": owners(server, namespace)}
	features := map[string]any{"flags": map[string]any{}, "attributes": map[string]any{}, "instances": map[string]any{}}
	made := map[string]any{
		"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature", "metadata": metadata, "spec": map[string]any{"features": features, "labels": labels},
	}
	var there object
	switch err := server.call(http.MethodGet, base+"/"+name, nil, &there); {
	case notFound(err):
		say("I output.go] creating NodeFeature object %s", name)
		return server.call(http.MethodPost, base, made, nil)
	case err != nil:
		return fmt.Errorf("failed to get NodeFeature object: %w", err)
	}
	if same(there, labels, metadata["ownerReferences"].([]owner)) {
		return nil
	}
	say("I output.go] Updating NodeFeature object %s", name)
	metadata["resourceVersion"] = there.Metadata.ResourceVersion
	return server.call(http.MethodPut, base+"/"+name, made, nil)
}

func same(there object, labels map[string]string, owners []owner) bool {
	written, _ := there.Spec["labels"].(map[string]any)
	if len(written) != len(labels) || len(there.Metadata.OwnerReferences) != len(owners) {
		return false
	}
	for key, value := range labels {
		if written[key] != value {
			return false
		}
	}
	return len(owners) == 0 || reflect.DeepEqual(there.Metadata.OwnerReferences, owners)
}

// owners returns the DaemonSet and the pod, or none if the pod cannot be read.
func owners(server *api, namespace string) []owner {
	var pod object
	if err := server.call(http.MethodGet, "/api/v1/namespaces/"+namespace+"/pods/"+os.Getenv("POD_NAME"), nil, &pod); err != nil {
		say("W output.go] Failed to resolve owner references: %v", err)
		return []owner{}
	}
	for _, one := range pod.Metadata.OwnerReferences {
		if one.Kind == "DaemonSet" {
			controls := true
			return []owner{
				{APIVersion: one.APIVersion, Kind: one.Kind, Name: one.Name, UID: one.UID, Controller: &controls},
				{APIVersion: "v1", Kind: "Pod", Name: pod.Metadata.Name, UID: pod.Metadata.UID},
			}
		}
	}
	return []owner{}
}
