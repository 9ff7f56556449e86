package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const podResources = "/var/lib/kubelet/pod-resources/kubelet.sock"

// countedWithin is the label of counts of recent events, with the exporter's default window.
const countedWithin = `,window_size_in_ms="300000"`

// Values of healthy, idle GPUs. All other values are 0.
var idle = map[string]float64{
	"DCGM_FI_DEV_SM_CLOCK": 345, "DCGM_FI_DEV_MEM_CLOCK": 2619, "DCGM_FI_DEV_GPU_TEMP": 33, "DCGM_FI_DEV_MEMORY_TEMP": 45, "DCGM_FI_DEV_SLOWDOWN_TEMP": 95,
	"DCGM_FI_DEV_GPU_TEMP_LIMIT": 54, "DCGM_FI_DEV_MEM_MAX_OP_TEMP": 95, "DCGM_FI_DEV_POWER_USAGE": 69.2, "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": 700,
	"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 1e9,
}

// counter is a line of the exporter's file: field, Prometheus type, help.
type counter struct{ field, kind, help string }

// runExporter simulates dcgm-exporter, with DCGM's names and the values of machine.json.
func runExporter([]string) int {
	announce("dcgm-exporter")
	ending := signals()
	machine, err := readMachine()
	if err != nil {
		return failed("level=fatal msg=%q", err.Error())
	}
	gpus, err := nvml(machine, "/")
	if err != nil {
		return failed("level=fatal msg=\"Failed to initialize NVML\" error=%q", err.Error())
	}
	counters, err := readCounters(setting("DCGM_EXPORTER_COLLECTORS", "/etc/dcgm-exporter/default-counters.csv"))
	if err != nil {
		return failed("level=fatal msg=%q", err.Error())
	}
	hold(gpus)
	http.HandleFunc("/health", func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, "OK") })
	http.HandleFunc("/metrics", func(answer http.ResponseWriter, _ *http.Request) {
		if now, err := readMachine(); err == nil {
			machine = now
		}
		answer.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		export(answer, machine, gpus, counters, users())
	})
	ended := make(chan error, 1)
	go func() { ended <- http.ListenAndServe(setting("DCGM_EXPORTER_LISTEN", ":9400"), nil) }()
	say("level=info msg=\"Starting webserver\"")
	select {
	case <-ending:
		return 0
	case err := <-ended:
		return failed("level=fatal msg=%q", err.Error())
	}
}

func readCounters(path string) ([]counter, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := []counter{}
	for _, line := range strings.Split(string(text), "\n") {
		parts := strings.SplitN(line, ",", 3)
		if len(parts) == 3 && !strings.HasPrefix(line, "#") {
			found = append(found, counter{strings.TrimSpace(parts[0]), strings.TrimSpace(parts[1]), strings.TrimSpace(parts[2])})
		}
	}
	return found, nil
}

// users returns the labels of the container that uses a GPU, by UUID. If several containers share a GPU, it returns those of the last.
func users() map[string]string {
	found := map[string]string{}
	if setting("DCGM_EXPORTER_KUBERNETES", "false") != "true" {
		return found
	}
	connection, err := grpc.NewClient("unix://"+podResources, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return found
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := podresources.NewPodResourcesListerClient(connection).List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		say("level=warning msg=\"Failed to get pod resources\" error=%q", err.Error())
		return found
	}
	for _, pod := range answer.PodResources {
		for _, container := range pod.Containers {
			for _, held := range container.Devices {
				for _, id := range held.DeviceIds {
					uuid, _, _ := strings.Cut(id, "::")
					found[uuid] = fmt.Sprintf(`,pod=%q,namespace=%q,container=%q`, pod.Name, pod.Namespace, container.Name)
				}
			}
		}
	}
	return found
}

func export(out io.Writer, machine Machine, gpus []int, counters []counter, users map[string]string) {
	version := driverVersion()
	named := map[int]string{}
	for _, gpu := range gpus {
		uuid := machine.uuid(gpu)
		named[gpu] = fmt.Sprintf(`gpu="%d",UUID=%q,pci_bus_id=%q,device="nvidia%d",modelName=%q,hostname=%q`, gpu, uuid, machine.bus(gpu), gpu, machine.Product, os.Getenv("NODE_NAME"))
		for _, one := range counters {
			if one.kind == "label" && one.field == "DCGM_FI_DRIVER_VERSION" {
				named[gpu] += fmt.Sprintf(`,%s=%q`, one.field, version)
			}
		}
		named[gpu] += users[uuid]
	}
	for _, one := range counters {
		if one.kind == "label" {
			continue
		}
		fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", one.field, one.help, one.field, one.kind)
		for _, gpu := range gpus {
			if labels, value, there := machine.metric(one.field, gpu); there {
				fmt.Fprintf(out, "%s{%s%s} %v\n", one.field, named[gpu], labels, value)
			}
		}
	}
}

// metric returns a value with its labels. A count without events in its window has no label for the kind of event (NVIDIA/dcgm-exporter d5e5f51,
// expcollector.go). DCGM has no values for a GPU that is off the bus (NVIDIA/DCGM 72fa3fe, DcgmCacheManager.cpp), and the exporter omits those
// (gpu_collector.go).
func (machine Machine) metric(field string, gpu int) (labels string, value float64, there bool) {
	xid := machine.xid(gpu)
	if value, set := machine.Metrics[strconv.Itoa(gpu)][field]; set {
		return "", value, true
	}
	switch {
	case field == "DCGM_FI_DEV_XID_ERRORS":
		return "", float64(xid), true
	case field == "DCGM_EXP_XID_ERRORS_COUNT" && xid == 0:
		return countedWithin, 0, true
	case field == "DCGM_EXP_XID_ERRORS_COUNT":
		return fmt.Sprintf(`%s,xid="%d"`, countedWithin, xid), 1, true
	case xid == offTheBus:
		return "", 0, false
	case field == "DCGM_EXP_CLOCK_EVENTS_COUNT":
		return countedWithin + `,clock_event="gpu_idle"`, 10, true
	case field == "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL":
		return "", float64(machine.Faults.ECC[strconv.Itoa(gpu)]), machine.ECC != nil && *machine.ECC
	case field == "DCGM_FI_DEV_FB_FREE":
		return "", float64(machine.MemoryMiB), true
	}
	return "", idle[field], true
}
