package main

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestOptionsThatCannotBe(t *testing.T) {
	joins := []string{"node", "--root=/nowhere", "--name=w0", "--address=10.0.0.1"}
	for _, arguments := range [][]string{
		{},
		{"kubelet"},
		{"node"},
		{"node", "--name=w0", "--address=10.0.0.1"},
		{"node", "--root=/nowhere", "--name=w0", "--address=w0"},
		append(slices.Clone(joins), "more"),
		append(slices.Clone(joins), "--role=infra"),
		append(slices.Clone(joins), "--port=0"),
		append(slices.Clone(joins), "--port=65536"),
		append(slices.Clone(joins), "--node-status-interval=0s"),
		append(slices.Clone(joins), "--forward=6443"),
		append(slices.Clone(joins), "--forward=6443=10.0.0.1"),
		append(slices.Clone(joins), "--forward=https=10.0.0.1:6443"),
		append(slices.Clone(joins), "--kubeconfig=x"),
		{"forward"},
		{"forward", "70000=10.0.0.1:6443"},
	} {
		if err := run(context.Background(), arguments, &strings.Builder{}); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v", arguments, err)
		}
	}
}

func TestForwardsAreFromTheAddressOfTheNode(t *testing.T) {
	o, err := nodeOptions([]string{"--root=/", "--name=m0", "--address=10.0.0.1", "--forward=6443=h:6443,22623=[fd00::1]:22623"})
	if err != nil || !slices.Equal(o.forwards, []forward{{"10.0.0.1:6443", "h:6443"}, {"10.0.0.1:22623", "[fd00::1]:22623"}}) {
		t.Error(o.forwards, err)
	}
}

// The labels and the taint of machine-config-operator's templates/{master,worker}/01-*-kubelet.
func TestNodesHaveTheLabelsAndTaintsOfTheirRole(t *testing.T) {
	for role, labels := range map[string][]string{master: {"control-plane", "master"}, worker: {"worker"}} {
		node := nodeOf(options{name: "m0.example.com", role: role, address: netip.MustParseAddr("10.0.0.1")})
		found := []string{}
		for label := range node.Labels {
			if name, is := strings.CutPrefix(label, roleLabel); is {
				found = append(found, name)
			}
		}
		slices.Sort(found)
		if !slices.Equal(found, labels) || node.Labels["node.openshift.io/os_id"] != "rhcos" || node.Labels[core.LabelHostname] != node.Name {
			t.Error(role, node.Labels)
		}
		if tainted := slices.Contains(node.Spec.Taints, core.Taint{Key: roleLabel + master, Effect: core.TaintEffectNoSchedule}); tainted != (role == master) {
			t.Error(role, node.Spec.Taints)
		}
	}
}

func TestAReportKeepsWhatOthersHaveSetAndKnowsChanges(t *testing.T) {
	o := options{root: "/nowhere", name: "w0", role: worker, address: netip.MustParseAddr("10.0.0.1"), port: 10250}
	node := nodeOf(o)
	begin := node.Status.Conditions[3].LastTransitionTime
	node.Status.Capacity["nvidia.com/gpu"] = resource.MustParse("8")
	node.Status.Conditions = append(node.Status.Conditions, core.NodeCondition{Type: "NetworkUnavailable", Status: core.ConditionFalse})
	later := begin.Add(time.Minute)
	if report(node, o, later) {
		t.Error("nothing of its own has changed")
	}
	ready := node.Status.Conditions[3]
	if !ready.LastHeartbeatTime.Time.Equal(later) || !ready.LastTransitionTime.Equal(&begin) {
		t.Error(ready)
	}
	if gpus := node.Status.Capacity["nvidia.com/gpu"]; gpus.Value() != 8 || len(node.Status.Conditions) != 5 {
		t.Error(node.Status)
	}
	node.Status.Conditions[3].Status = core.ConditionUnknown
	if !report(node, o, later) || !node.Status.Conditions[3].LastTransitionTime.Time.Equal(later) {
		t.Error(node.Status.Conditions[3])
	}
	o.port = 10251
	if !report(node, o, later) {
		t.Error("the port has changed")
	}
}

func TestMessagesAreRepeatedOnlyOnceForgotten(t *testing.T) {
	out := strings.Builder{}
	said := newOnce(&out)
	logger := slog.New(said)
	for _, text := range []string{
		"read tcp 10.0.0.1:40001->10.0.0.9:6443: connection reset by peer",
		"read tcp 10.0.0.1:40002->10.0.0.9:6443: connection reset by peer",
		"read tcp 10.0.0.1:40002->10.0.0.9:6443: i/o timeout",
	} {
		logger.Warn("failed", "err", errors.New(text))
	}
	if count := strings.Count(out.String(), "\n"); count != 2 {
		t.Error(out.String())
	}
	said.forget()
	logger.Warn("failed", "err", errors.New("read tcp 10.0.0.1:40003->10.0.0.9:6443: i/o timeout"))
	if count := strings.Count(out.String(), "\n"); count != 3 {
		t.Error(out.String())
	}
}
