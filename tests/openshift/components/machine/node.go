package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

const (
	master, worker = "master", "worker"
	roleLabel      = "node-role.kubernetes.io/"
	// What its operating system is.
	systemLabel = "node.openshift.io/os_id"
	// Without a change, kubelet reports its Node after this time (nodeStatusReportFrequency).
	reportInterval = 5 * time.Minute
)

// Labels of roles that the kubelet registers its Node with.
var roles = map[string][]string{master: {roleLabel + "control-plane", roleLabel + master}, worker: {roleLabel + worker}}

// More than pods of a GPU node request: there is no such machine.
var capacity = core.ResourceList{
	core.ResourceCPU:              resource.MustParse("64"),
	core.ResourceMemory:           resource.MustParse("256Gi"),
	core.ResourceEphemeralStorage: resource.MustParse("500Gi"),
	core.ResourcePods:             resource.MustParse("250"),
}

func nodeOf(o options) *core.Node {
	labels := map[string]string{
		core.LabelHostname: o.name, core.LabelOSStable: runtime.GOOS, core.LabelArchStable: runtime.GOARCH, systemLabel: "rhcos",
	}
	for _, role := range roles[o.role] {
		labels[role] = ""
	}
	node := &core.Node{ObjectMeta: meta.ObjectMeta{Name: o.name, Labels: labels}}
	if o.role == master {
		node.Spec.Taints = []core.Taint{{Key: roleLabel + master, Effect: core.TaintEffectNoSchedule}}
	}
	report(node, o, time.Now())
	return node
}

// report sets what is kubelet's in the status of a Node, and says whether anything but times changed. What others have set, such as devices, stays.
func report(node *core.Node, o options, now time.Time) bool {
	before := node.Status.DeepCopy()
	status := &node.Status
	status.Addresses = []core.NodeAddress{{Type: core.NodeInternalIP, Address: o.address.String()}, {Type: core.NodeHostName, Address: o.name}}
	status.DaemonEndpoints.KubeletEndpoint.Port = int32(o.port)
	status.NodeInfo = nodeInfo(o.root)
	for _, list := range []*core.ResourceList{&status.Capacity, &status.Allocatable} {
		if *list == nil {
			*list = core.ResourceList{}
		}
		for name, quantity := range capacity {
			(*list)[name] = quantity
		}
	}
	changed := false
	for _, wanted := range conditions() {
		changed = setCondition(status, wanted, meta.NewTime(now)) || changed
	}
	before.Conditions = status.Conditions
	return changed || !equality.Semantic.DeepEqual(before, status)
}

func conditions() []core.NodeCondition {
	return []core.NodeCondition{
		{Type: core.NodeMemoryPressure, Status: core.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: core.NodeDiskPressure, Status: core.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: core.NodePIDPressure, Status: core.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
		{Type: core.NodeReady, Status: core.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
	}
}

func setCondition(status *core.NodeStatus, wanted core.NodeCondition, now meta.Time) bool {
	wanted.LastHeartbeatTime, wanted.LastTransitionTime = now, now
	for place := range status.Conditions {
		present := &status.Conditions[place]
		if present.Type == wanted.Type {
			if present.Status == wanted.Status {
				wanted.LastTransitionTime = present.LastTransitionTime
			}
			changed := present.Status != wanted.Status || present.Reason != wanted.Reason
			*present = wanted
			return changed
		}
	}
	status.Conditions = append(status.Conditions, wanted)
	return true
}

func nodeInfo(root string) core.NodeSystemInfo {
	return core.NodeSystemInfo{
		MachineID:               read(filepath.Join(root, "etc/machine-id")),
		BootID:                  read("/proc/sys/kernel/random/boot_id"),
		KernelVersion:           kernel(),
		OSImage:                 "Red Hat Enterprise Linux CoreOS 9.6.20251023-0 (stand-in)",
		ContainerRuntimeVersion: "cri-o://0.0.0-stand-in",
		KubeletVersion:          version(),
		OperatingSystem:         runtime.GOOS,
		Architecture:            runtime.GOARCH,
	}
}

// read returns "" for a file that is not there.
func read(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

func kernel() string {
	var name syscall.Utsname
	if err := syscall.Uname(&name); err != nil {
		return ""
	}
	release := []byte{}
	for _, one := range name.Release {
		if one == 0 {
			break
		}
		release = append(release, byte(one))
	}
	return string(release)
}

// version is that of Kubernetes whose libraries these are.
func version() string {
	information, _ := debug.ReadBuildInfo()
	for _, module := range information.Deps {
		if module.Path == "k8s.io/client-go" {
			return "v1" + strings.TrimPrefix(module.Version, "v0")
		}
	}
	return ""
}

// register creates the Node. One that exists is this machine's from before, and keeps what it has. The labels of roles need an API server without Kubernetes'
// own admission plugin NodeRestriction: that of OpenShift has them among those of kubelets.
func register(ctx context.Context, client kubernetes.Interface, o options) error {
	_, err := client.CoreV1().Nodes().Create(ctx, nodeOf(o), meta.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// keepReady reports the status if there is a change, or the last report is long ago. It returns the time of the last report.
func keepReady(ctx context.Context, client kubernetes.Interface, o options, last time.Time) (time.Time, error) {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := client.CoreV1().Nodes().Get(ctx, o.name, meta.GetOptions{})
		if err != nil {
			return err
		}
		now := time.Now()
		if changed := report(node, o, now); !changed && now.Sub(last) < reportInterval {
			return nil
		}
		if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, node, meta.UpdateOptions{}); err != nil {
			return err
		}
		last = now
		return nil
	})
	return last, err
}
