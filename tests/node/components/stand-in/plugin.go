package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	pluginSocket = "nvidia-gpu.sock"
	lookEvery    = time.Second
)

// runDevicePlugin serves the kubelet's device plugin API until it receives a signal. It registers again after a restart of the kubelet.
func runDevicePlugin([]string) int {
	announce("nvidia-device-plugin")
	ending := signals()
	for {
		plugin, err := newPlugin()
		if err != nil {
			return failed("E main.go] error starting plugins: %v", err)
		}
		again, err := plugin.serve(ending)
		if err != nil {
			return failed("E main.go] error starting plugins: %v", err)
		}
		if !again {
			say("I main.go] Received signal, shutting down.")
			return 0
		}
		say("I main.go] inotify: %s created, restarting.", deviceplugin.KubeletSocket)
	}
}

// plugin offers the GPUs that it detected at its start. The real plugin also detects others only after a restart.
type plugin struct {
	deviceplugin.UnimplementedDevicePluginServer
	machine    Machine
	resource   string
	replicas   int
	gpus       []int
	strategies string
	folder     string
	stop       chan struct{}
}

func newPlugin() (*plugin, error) {
	config, err := readConfig()
	if err != nil {
		return nil, err
	}
	machine, err := readMachine()
	if err != nil {
		return nil, err
	}
	gpus, err := nvml(machine, "/", setting("DRIVER_ROOT_CTR_PATH", "/driver-root"))
	if err != nil {
		say("E factory.go] Incompatible strategy detected auto\nE factory.go] NVML initialization failed: %v", err)
		say("E factory.go] If this is a GPU node, did you configure the NVIDIA Container Toolkit?")
		return nil, errors.New("incompatible strategy detected auto")
	}
	hold(gpus)
	replicas, resource := config.shared()
	made := &plugin{
		machine: machine, resource: resource, replicas: replicas, gpus: gpus, folder: deviceplugin.DevicePluginPath,
		strategies: setting("DEVICE_LIST_STRATEGY", "envvar"), stop: make(chan struct{}),
	}
	if strings.Contains(made.strategies, "cdi") {
		err = writeSpecification(machine, gpus)
	}
	return made, err
}

// serve returns whether the kubelet has created its socket again.
func (offered *plugin) serve(ending <-chan os.Signal) (bool, error) {
	path, kubelet := filepath.Join(offered.folder, pluginSocket), filepath.Join(offered.folder, "kubelet.sock")
	if err := os.RemoveAll(path); err != nil {
		return false, err
	}
	before, err := os.Stat(kubelet)
	if err != nil {
		return false, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return false, err
	}
	server := grpc.NewServer()
	deviceplugin.RegisterDevicePluginServer(server, offered)
	go server.Serve(listener)
	defer server.Stop()
	defer close(offered.stop)
	say("I server.go] Starting to serve '%s' on %s", offered.resource, path)
	if err := offered.register(kubelet); err != nil {
		return false, err
	}
	say("I server.go] Registered device plugin for '%s' with Kubelet", offered.resource)
	for {
		select {
		case <-ending:
			return false, nil
		case <-time.After(lookEvery):
			now, err := os.Stat(kubelet)
			// A file system can reuse the inode number of a deleted file.
			if err == nil && !(os.SameFile(before, now) && before.ModTime().Equal(now.ModTime())) {
				return true, nil
			}
		}
	}
}

func (offered *plugin) register(socket string) error {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = deviceplugin.NewRegistrationClient(connection).Register(ctx, &deviceplugin.RegisterRequest{
		Version: deviceplugin.Version, Endpoint: pluginSocket, ResourceName: offered.resource,
		Options: &deviceplugin.DevicePluginOptions{GetPreferredAllocationAvailable: true},
	})
	return err
}

// offer lists the devices with their health. An unhealthy device stays unhealthy until the plugin is restarted.
func (offered *plugin) offer(unhealthy map[int]bool) []*deviceplugin.Device {
	if machine, err := readMachine(); err == nil {
		for _, gpu := range offered.gpus {
			if xid := machine.xid(gpu); xid != 0 && !unhealthy[gpu] {
				unhealthy[gpu] = true
				say("I health.go] XidCriticalError: Xid=%d on Device=%s; marking device as unhealthy.", xid, machine.uuid(gpu))
			}
		}
	}
	found := []*deviceplugin.Device{}
	for replica := range offered.replicas {
		for _, gpu := range offered.gpus {
			device := &deviceplugin.Device{ID: offered.machine.uuid(gpu), Health: deviceplugin.Healthy}
			if offered.replicas > 1 {
				device.ID = fmt.Sprintf("%s::%d", device.ID, replica)
			}
			if unhealthy[gpu] {
				device.Health = deviceplugin.Unhealthy
			}
			found = append(found, device)
		}
	}
	return found
}

func (offered *plugin) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

func (offered *plugin) ListAndWatch(_ *deviceplugin.Empty, stream deviceplugin.DevicePlugin_ListAndWatchServer) error {
	unhealthy, sent := map[int]bool{}, -1
	for {
		list := offered.offer(unhealthy)
		if len(unhealthy) != sent {
			if err := stream.Send(&deviceplugin.ListAndWatchResponse{Devices: list}); err != nil {
				return err
			}
			sent = len(unhealthy)
		}
		select {
		case <-offered.stop:
			return nil
		case <-stream.Context().Done():
			return nil
		case <-time.After(lookEvery):
		}
	}
}

// GetPreferredAllocation returns the required devices, then the first available ones. The real plugin also considers NVLink connections.
func (offered *plugin) GetPreferredAllocation(_ context.Context, request *deviceplugin.PreferredAllocationRequest) (*deviceplugin.PreferredAllocationResponse, error) {
	answer := &deviceplugin.PreferredAllocationResponse{}
	for _, one := range request.ContainerRequests {
		chosen, taken := []string{}, map[string]bool{}
		for _, id := range append(append([]string{}, one.MustIncludeDeviceIDs...), one.AvailableDeviceIDs...) {
			if len(chosen) < int(one.AllocationSize) && !taken[id] {
				chosen, taken[id] = append(chosen, id), true
			}
		}
		answer.ContainerResponses = append(answer.ContainerResponses, &deviceplugin.ContainerPreferredAllocationResponse{DeviceIDs: chosen})
	}
	return answer, nil
}

func (offered *plugin) Allocate(_ context.Context, request *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	answer := &deviceplugin.AllocateResponse{}
	for _, one := range request.ContainerRequests {
		say("I server.go] Allocate %s", strings.Join(one.DevicesIds, ","))
		answer.ContainerResponses = append(answer.ContainerResponses, allocation(one.DevicesIds, offered.strategies))
	}
	return answer, nil
}

// allocation passes devices to a container by each of the strategies in the list.
func allocation(ids []string, strategies string) *deviceplugin.ContainerAllocateResponse {
	uuids, taken := []string{}, map[string]bool{}
	for _, id := range ids {
		uuid, _, _ := strings.Cut(id, "::")
		if !taken[uuid] {
			uuids, taken[uuid] = append(uuids, uuid), true
		}
	}
	answer := &deviceplugin.ContainerAllocateResponse{}
	names := make([]string, len(uuids))
	for index, uuid := range uuids {
		names[index] = specificationKind + "=" + uuid
	}
	for _, strategy := range strings.Split(strategies, ",") {
		switch strategy {
		case "envvar":
			answer.Envs = map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(uuids, ",")}
		case "cdi-cri":
			for _, name := range names {
				answer.CdiDevices = append(answer.CdiDevices, &deviceplugin.CDIDevice{Name: name})
			}
		case "cdi-annotations":
			key := setting("CDI_ANNOTATION_PREFIX", "cdi.k8s.io/") + "nvidia-device-plugin_" + uuids[0]
			answer.Annotations = map[string]string{key: strings.Join(names, ",")}
		}
	}
	return answer
}
