package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// pluginConfig is the part of the device plugin's configuration that the stand-ins support. The role writes it as JSON, which is also YAML.
type pluginConfig struct {
	Version string `json:"version"`
	Sharing struct {
		TimeSlicing struct {
			RenameByDefault bool             `json:"renameByDefault"`
			Resources       []sharedResource `json:"resources"`
		} `json:"timeSlicing"`
	} `json:"sharing"`
}

type sharedResource struct {
	Name     string `json:"name"`
	Rename   string `json:"rename"`
	Replicas int    `json:"replicas"`
}

const gpuResource = "nvidia.com/gpu"

func readConfig() (pluginConfig, error) {
	var config pluginConfig
	path := os.Getenv("CONFIG_FILE")
	if path == "" {
		return config, nil
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err == nil && config.Version != "v1" {
		err = fmt.Errorf("unknown version: %s", config.Version)
	}
	if err != nil {
		err = fmt.Errorf("unable to load config: unable to finalize config: unable to parse config file: %w", err)
	}
	return config, err
}

// shared returns the number of replicas of each GPU, and the name of the resource.
func (config pluginConfig) shared() (replicas int, name string) {
	slicing := config.Sharing.TimeSlicing
	for _, resource := range slicing.Resources {
		if resource.Name != gpuResource {
			continue
		}
		switch {
		case resource.Rename != "" && !strings.Contains(resource.Rename, "/"):
			return resource.Replicas, "nvidia.com/" + resource.Rename
		case resource.Rename != "":
			return resource.Replicas, resource.Rename
		case slicing.RenameByDefault:
			return resource.Replicas, gpuResource + ".shared"
		}
		return resource.Replicas, gpuResource
	}
	return 1, gpuResource
}

// nvml returns the GPUs that NVIDIA's management library reports to a program, or the library's error if there are none.
func nvml(machine Machine, roots ...string) ([]int, error) {
	found, other := false, false
	for _, root := range roots {
		found, other = found || library(root, "libnvidia-ml.so") != "", other || mismatched(root) != ""
	}
	switch gpus := visible(devices, machine); {
	case !found:
		return nil, fmt.Errorf("ERROR_LIBRARY_NOT_FOUND")
	case driverVersion() == "":
		return nil, fmt.Errorf("ERROR_DRIVER_NOT_LOADED")
	case other:
		return nil, fmt.Errorf("ERROR_LIB_RM_VERSION_MISMATCH")
	case len(gpus) == 0:
		return nil, fmt.Errorf("ERROR_NO_PERMISSION")
	default:
		return gpus, nil
	}
}
