package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"sort"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// offer is what a device plugin answers after its registration. Fields are empty where it answers nothing.
type offer struct {
	Resource  string            `json:"resource"`
	Devices   map[string]string `json:"devices"`
	Allocated json.RawMessage   `json:"allocated,omitempty"`
	Error     string            `json:"error,omitempty"`
}

// runKubelet plays the kubelet for device plugins that run without one: `stand-in kubelet FOLDER`. For each registration it prints a line of JSON with
// the plugin's devices and how it gives one to a container, and a line for each later list of devices. It ends with a signal.
func runKubelet(arguments []string) int {
	if len(arguments) != 1 {
		return failed("usage: stand-in kubelet FOLDER")
	}
	listener, err := net.Listen("unix", filepath.Join(arguments[0], "kubelet.sock"))
	if err != nil {
		return failed("%v", err)
	}
	server := grpc.NewServer()
	deviceplugin.RegisterRegistrationServer(server, &registry{folder: arguments[0]})
	ending := signals()
	go server.Serve(listener)
	<-ending
	return 0
}

type registry struct {
	deviceplugin.UnimplementedRegistrationServer
	folder  string
	writing sync.Mutex
}

func (served *registry) Register(_ context.Context, request *deviceplugin.RegisterRequest) (*deviceplugin.Empty, error) {
	go served.follow(request)
	return &deviceplugin.Empty{}, nil
}

func (served *registry) print(line offer) {
	served.writing.Lock()
	defer served.writing.Unlock()
	_ = json.NewEncoder(os.Stdout).Encode(line)
}

func (served *registry) follow(request *deviceplugin.RegisterRequest) {
	line := offer{Resource: request.ResourceName}
	connection, err := grpc.NewClient("unix://"+filepath.Join(served.folder, request.Endpoint), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		line.Error = err.Error()
		served.print(line)
		return
	}
	defer connection.Close()
	client := deviceplugin.NewDevicePluginClient(connection)
	stream, err := client.ListAndWatch(context.Background(), &deviceplugin.Empty{})
	for first := true; err == nil; first = false {
		var answer *deviceplugin.ListAndWatchResponse
		if answer, err = stream.Recv(); err != nil {
			break
		}
		line = offer{Resource: request.ResourceName, Devices: map[string]string{}}
		for _, one := range answer.Devices {
			line.Devices[one.ID] = one.Health
		}
		if first {
			allocate(client, &line)
		}
		served.print(line)
	}
}

// allocate asks which device the plugin prefers, and how it gives the first one to a container. With replicas, preferences change from run to run.
func allocate(client deviceplugin.DevicePluginClient, line *offer) {
	available := []string{}
	for id := range line.Devices {
		available = append(available, id)
	}
	sort.Strings(available)
	wish := &deviceplugin.ContainerPreferredAllocationRequest{AvailableDeviceIDs: available, AllocationSize: 1}
	_, err := client.GetPreferredAllocation(context.Background(),
		&deviceplugin.PreferredAllocationRequest{ContainerRequests: []*deviceplugin.ContainerPreferredAllocationRequest{wish}})
	if err == nil {
		var answer *deviceplugin.AllocateResponse
		answer, err = client.Allocate(context.Background(),
			&deviceplugin.AllocateRequest{ContainerRequests: []*deviceplugin.ContainerAllocateRequest{{DevicesIds: available[:1]}}})
		if err == nil {
			line.Allocated, err = json.Marshal(answer.ContainerResponses[0])
		}
	}
	if err != nil {
		line.Error = err.Error()
	}
}
