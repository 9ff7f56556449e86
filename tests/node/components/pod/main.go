// Command pod runs one container in its own pod through the Container Runtime Interface, as the kubelet does, and prints its output:
//
//	pod [-runtime HANDLER] [-cdi DEVICE]... [-annotation KEY=VALUE]... [-env KEY=VALUE]... IMAGE COMMAND...
//
// It is for machines without a kubelet, and for CDI devices and annotations of containers, which the kubelet requests only for device plugins.
// Its exit status is that of the container, or 125 if no container was started.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	socket    = "unix:///run/containerd/containerd.sock"
	namespace = "default"
	logFile   = "main.log"
	patience  = time.Minute
	pause     = 100 * time.Millisecond
)

// words is a flag that can be repeated.
type words []string

func (list *words) String() string { return strings.Join(*list, ",") }

func (list *words) Set(word string) error {
	*list = append(*list, word)
	return nil
}

// order describes the container to run.
type order struct {
	handler                           string
	devices, annotations, environment words
	image                             string
	command                           []string
}

func main() {
	var wanted order
	flag.StringVar(&wanted.handler, "runtime", "", "handler of the pod's RuntimeClass")
	flag.Var(&wanted.devices, "cdi", "qualified name of a CDI device")
	flag.Var(&wanted.annotations, "annotation", "of the container")
	flag.Var(&wanted.environment, "env", "of the container")
	flag.Parse()
	if flag.NArg() < 2 {
		flag.Usage()
		os.Exit(64)
	}
	wanted.image, wanted.command = flag.Arg(0), flag.Args()[1:]
	status, err := run(wanted)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pod:", err)
		status = 125
	}
	os.Exit(status)
}

func run(wanted order) (status int, err error) {
	connection, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	logs, err := os.MkdirTemp("/run", "pod-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(logs)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client := cri.NewRuntimeServiceClient(connection)
	if err = initialized(ctx, client); err != nil {
		return 0, err
	}
	sandbox := sandboxConfig(logs)
	started, err := client.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: sandbox, RuntimeHandler: wanted.handler})
	if err != nil {
		return 0, err
	}
	defer func() {
		_, stopped := client.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: started.PodSandboxId})
		_, removed := client.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: started.PodSandboxId})
		err = errors.Join(err, stopped, removed)
	}()
	request := &cri.CreateContainerRequest{PodSandboxId: started.PodSandboxId, Config: containerConfig(wanted), SandboxConfig: sandbox}
	created, err := client.CreateContainer(ctx, request)
	if err != nil {
		return 0, err
	}
	if _, err = client.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: created.ContainerId}); err != nil {
		return 0, err
	}
	if status, err = ended(ctx, client, created.ContainerId); err != nil {
		return 0, err
	}
	return status, printLog(filepath.Join(logs, logFile))
}

// initialized waits while containerd's CRI plugin starts, as the kubelet does: until then it refuses every call, although its socket exists
// (containerd 1.6 to 2.1, pkg/cri and internal/cri, instrumented service: "server is not initialized yet").
func initialized(ctx context.Context, client cri.RuntimeServiceClient) error {
	for {
		_, err := client.Status(ctx, &cri.StatusRequest{})
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "not initialized yet") {
			return err
		}
		time.Sleep(pause)
	}
}

// sandboxConfig uses the host network, which needs no CNI plugin.
func sandboxConfig(logs string) *cri.PodSandboxConfig {
	name := filepath.Base(logs)
	options := &cri.NamespaceOption{Network: cri.NamespaceMode_NODE}
	return &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: name, Uid: name, Namespace: namespace},
		LogDirectory: logs,
		Linux:        &cri.LinuxPodSandboxConfig{SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: options}},
	}
}

func containerConfig(wanted order) *cri.ContainerConfig {
	config := &cri.ContainerConfig{
		Metadata:    &cri.ContainerMetadata{Name: "main"},
		Image:       &cri.ImageSpec{Image: wanted.image},
		Command:     wanted.command,
		LogPath:     logFile,
		Annotations: map[string]string{},
		Linux: &cri.LinuxContainerConfig{SecurityContext: &cri.LinuxContainerSecurityContext{
			NamespaceOptions: &cri.NamespaceOption{Network: cri.NamespaceMode_NODE},
		}},
	}
	for _, word := range wanted.environment {
		key, value, _ := strings.Cut(word, "=")
		config.Envs = append(config.Envs, &cri.KeyValue{Key: key, Value: []byte(value)})
	}
	for _, word := range wanted.annotations {
		key, value, _ := strings.Cut(word, "=")
		config.Annotations[key] = value
	}
	for _, name := range wanted.devices {
		config.CDIDevices = append(config.CDIDevices, &cri.CDIDevice{Name: name})
	}
	return config
}

func ended(ctx context.Context, client cri.RuntimeServiceClient, id string) (int, error) {
	for {
		answer, err := client.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: id})
		if err != nil {
			return 0, err
		}
		if answer.Status.State == cri.ContainerState_CONTAINER_EXITED {
			return int(answer.Status.ExitCode), nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// printLog prints a container's log without the prefix of each line: time, stream, and whether the line is complete.
func printLog(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(line, " ", 4)
		fmt.Print(fields[len(fields)-1])
	}
	return nil
}
