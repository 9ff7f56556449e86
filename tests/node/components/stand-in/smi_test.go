package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// recorded is what the real program of a driver has printed on a host with one H100.
type recorded struct {
	Simulated, Lacking []struct {
		Arguments, Output string
		Status            int
	}
}

func answers(t *testing.T) recorded {
	t.Helper()
	text, err := os.ReadFile("../../../unit/fleet_agent/machine/nvidia_smi.yml")
	if err != nil {
		t.Fatal(err)
	}
	var found recorded
	text = bytes.ReplaceAll(text, []byte("not simulated:"), []byte("lacking:"))
	if err := yaml.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Simulated) < 27 || len(found.Lacking) < 7 {
		t.Fatal(len(found.Simulated), len(found.Lacking))
	}
	return found
}

func TestSMISaysWhatTheRealOneSaid(t *testing.T) {
	machine := onMachine(t, `{"serial": "a", "product": "NVIDIA H100 80GB HBM3", "count": 1, "memory_mib": 81559, "ecc": true, "mig_capable": true}`, "nvidia0")
	for _, one := range answers(t).Simulated {
		var out bytes.Buffer
		status := smi(strings.Fields(one.Arguments), devices, &out)
		expected := strings.NewReplacer("{uuid}", machine.uuid(0), "{driver}", driverVersion()).Replace(one.Output)
		if status != one.Status || out.String() != expected {
			t.Errorf("%s: status %d and %q instead of %d and %q", one.Arguments, status, out.String(), one.Status, expected)
		}
	}
}

func TestWhatSMILacksIsAnError(t *testing.T) {
	onMachine(t, twoGPUs, "nvidia0")
	for _, one := range answers(t).Lacking {
		var out bytes.Buffer
		if smi(strings.Fields(one.Arguments), devices, &out) == 0 {
			t.Errorf("%s: %s", one.Arguments, out.String())
		}
	}
}

func TestAQueryCanBeForOneGPU(t *testing.T) {
	machine := onMachine(t, twoGPUs, "nvidia0", "nvidia1")
	if out := output(t, 0, "--query-gpu=index,uuid,count", "-i", "1", "--format=csv,noheader"); out != "1, "+machine.uuid(1)+", 2\n" {
		t.Error(out)
	}
}
