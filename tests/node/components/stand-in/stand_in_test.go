package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// onMachine simulates a machine with a loaded driver and its device files.
func onMachine(t *testing.T, description string, gpus ...string) Machine {
	t.Helper()
	modules, devices = t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Dir(machineFile()), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(machineFile(), []byte(description), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := loadModules("595.91.07"); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(gpus, "nvidiactl") {
		if err := os.WriteFile(filepath.Join(devices, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	machine, err := readMachine()
	if err != nil {
		t.Fatal(err)
	}
	return machine
}

const twoGPUs = `{"serial": "a", "product": "NVIDIA H100 80GB HBM3", "count": 2, "memory_mib": 81559, "ecc": true, "mig_capable": true}`

func output(t *testing.T, status int, arguments ...string) string {
	t.Helper()
	var out bytes.Buffer
	if observed := smi(arguments, devices, &out); observed != status {
		t.Fatalf("status %d, %d is expected: %s", observed, status, out.String())
	}
	return out.String()
}

func TestQueriesReportTheGPUsOfTheContainer(t *testing.T) {
	onMachine(t, twoGPUs, "nvidia1")
	query := "--query-gpu=index,name,memory.total,driver_version,ecc.mode.current,mig.mode.current"
	if out := output(t, 0, query, "--format=csv,noheader"); out != "0, NVIDIA H100 80GB HBM3, 81559 MiB, 595.91.07, Enabled, Disabled\n" {
		t.Error(out)
	}
}

func TestExitCodesOfSMI(t *testing.T) {
	onMachine(t, twoGPUs)
	output(t, noDevice)
	onMachine(t, `{"count": 1, "faults": {"xid": {"0": 79}}}`, "nvidia0")
	output(t, lostGPU)
	if err := unloadModules(); err != nil {
		t.Fatal(err)
	}
	output(t, noDriver)
}

func TestMemoryErrorsAreCountedWithECCOnly(t *testing.T) {
	query, form := "--query-gpu=index,ecc.errors.uncorrected.volatile.total", "--format=csv,noheader"
	onMachine(t, `{"count": 2, "ecc": true, "faults": {"ecc": {"1": 3}}}`, "nvidia0", "nvidia1")
	if out := output(t, 0, query, form); out != "0, 0\n1, 3\n" {
		t.Error(out)
	}
	onMachine(t, `{"count": 1}`, "nvidia0")
	if out := output(t, 0, query, form); out != "0, [N/A]\n" {
		t.Error(out)
	}
}

func TestLibrariesOfAnotherVersionThanTheModuleFail(t *testing.T) {
	machine, root := onMachine(t, twoGPUs, "nvidia0"), t.TempDir()
	devices = filepath.Join(root, "dev")
	folder := filepath.Join(root, "usr/lib/x86_64-linux-gnu")
	for _, path := range []string{folder, devices} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(folder, "libnvidia-ml.so.595.91.07"), filepath.Join(devices, "nvidia0")} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	output(t, 0)
	if err := loadModules("595.71.05"); err != nil {
		t.Fatal(err)
	}
	if out := output(t, otherVersion); out != "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 595.91\n" {
		t.Error(out)
	}
	if _, err := nvml(machine, root); err == nil || err.Error() != "ERROR_LIB_RM_VERSION_MISMATCH" {
		t.Error(err)
	}
}

func TestUUIDsDependOnTheMachine(t *testing.T) {
	first, other := Machine{Serial: "a"}, Machine{Serial: "b"}
	if first.uuid(0) == first.uuid(1) || first.uuid(0) == other.uuid(0) || first.uuid(0) != (Machine{Serial: "a"}).uuid(0) {
		t.Error(first.uuid(0), first.uuid(1), other.uuid(0))
	}
}

func TestKernelsRunOnTheFirstVisibleGPU(t *testing.T) {
	machine := onMachine(t, twoGPUs, "nvidia0", "nvidia1")
	for chosen, expected := range map[string]int{machine.uuid(1): 1, "1": 1, "0": 0} {
		t.Setenv("CUDA_VISIBLE_DEVICES", chosen)
		if gpu, found := firstVisible(machine, []int{0, 1}); !found || gpu != expected {
			t.Error(chosen, gpu, found)
		}
	}
	t.Setenv("CUDA_VISIBLE_DEVICES", "GPU-of-another-machine")
	if _, found := firstVisible(machine, []int{0, 1}); found {
		t.Error("another machine's GPU is visible")
	}
}

func TestModulesAreMountedLikeSys(t *testing.T) {
	for _, mode := range []string{"ro", "rw"} {
		path := filepath.Join(t.TempDir(), "config.json")
		text := `{"ociVersion": "1.2.0", "mounts": [{"destination": "/sys", "type": "sysfs", "options": ["nosuid", "` + mode + `"]}, {"destination": "/sys/module/firmware_class/parameters/path"}], "process": {"args": ["x"]}}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := showModules(path); err != nil {
			t.Fatal(err)
		}
		changed, _ := os.ReadFile(path)
		var spec struct {
			Version string `json:"ociVersion"`
			Mounts  []struct {
				Destination string
				Options     []string
			}
		}
		if err := json.Unmarshal(changed, &spec); err != nil {
			t.Fatal(err)
		}
		if spec.Version != "1.2.0" || len(spec.Mounts) != 3 || spec.Mounts[1].Destination != "/sys/module" || spec.Mounts[1].Options[2] != mode {
			t.Error(string(changed))
		}
	}
}

func TestBundlesOfCreatedContainers(t *testing.T) {
	for line, expected := range map[string]string{
		"--root /run/x create --bundle /b --pid-file /p id": "/b", "run -b /c id": "/c", "create --bundle=/d id": "/d", "delete --bundle /b id": "", "state id": "",
	} {
		if bundle := bundleOf(strings.Fields(line)); bundle != expected {
			t.Error(line, bundle)
		}
	}
}

func TestLabelsArePausedAndResumed(t *testing.T) {
	for before, during := range map[string]string{"true": paused, "": "", "false": "false", "mine": "mine_" + paused} {
		if pause(before) != during || resume(during) != before {
			t.Error(before, pause(before), resume(during))
		}
	}
}

func TestDeviceQueryFailsWithoutLibraries(t *testing.T) {
	onMachine(t, twoGPUs, "nvidia0")
	if library("/", "libcuda.so") == "" && runDeviceQuery(nil) != 1 {
		t.Error("it has detected a GPU without CUDA's library")
	}
}

func exported(machine Machine, users map[string]string, fields ...string) string {
	counters := []counter{}
	for _, field := range fields {
		counters = append(counters, counter{field, "gauge", "x"})
	}
	var out bytes.Buffer
	export(&out, machine, []int{0, 1}, append(counters, counter{"DCGM_FI_DRIVER_VERSION", "label", "x"}), users)
	return out.String()
}

func TestMetricsHaveTheConfiguredNames(t *testing.T) {
	text := `{"serial": "a", "count": 2, "ecc": true, "faults": {"xid": {"1": 48}, "ecc": {"1": 2}}, "metrics": {"0": {"DCGM_FI_DEV_GPU_TEMP": 96}}}`
	machine := onMachine(t, text, "nvidia0", "nvidia1")
	users := map[string]string{machine.uuid(1): `,pod="p"`}
	text = exported(machine, users, "DCGM_FI_DEV_GPU_TEMP", "DCGM_EXP_XID_ERRORS_COUNT", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL")
	for _, expected := range []string{
		`DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="` + machine.uuid(0), `DCGM_FI_DRIVER_VERSION="595.91.07"} 96`, `pod="p",window_size_in_ms="300000",xid="48"} 1`,
		`DCGM_FI_DRIVER_VERSION="595.91.07",window_size_in_ms="300000"} 0`, `DCGM_FI_DRIVER_VERSION="595.91.07",pod="p"} 2`,
	} {
		if !strings.Contains(text, expected) {
			t.Error(expected, "is not in", text)
		}
	}
}

func TestAGPUOffTheBusHasOnlyItsXid(t *testing.T) {
	machine := onMachine(t, `{"serial": "a", "count": 2, "faults": {"xid": {"1": 79}}}`, "nvidia0", "nvidia1")
	text := exported(machine, nil, "DCGM_FI_DEV_GPU_TEMP", "DCGM_EXP_CLOCK_EVENTS_COUNT", "DCGM_EXP_XID_ERRORS_COUNT")
	if strings.Count(text, machine.uuid(0)) != 3 || strings.Count(text, machine.uuid(1)) != 1 || !strings.Contains(text, `xid="79"} 1`) {
		t.Error(text)
	}
}

func TestTheManagementLibraryReadsTheMachine(t *testing.T) {
	text := `{"serial": "a", "product": "NVIDIA H100 80GB HBM3", "count": 2, "memory_mib": 81559, "mig_capable": true, "mig": {"1": ["3g.40gb"]}, "faults": {"xid": {"0": 48}}}`
	machine := onMachine(t, text, "nvidia0", "nvidia1")
	described := machine.describe()
	for _, expected := range []string{
		"gpu 0 " + machine.uuid(0) + " 81559 9.0 0 48 233010de NVIDIA H100 80GB HBM3\n", "gpu 1 " + machine.uuid(1) + " 81559 9.0 1 0 ",
		"mig 1 1 2 " + machine.part(1, 0) + "\n", "profile 2 2 3 2 48 3 2 0 0 0 40779\n", "cuda 595 13020\n",
	} {
		if !strings.Contains(described, expected) {
			t.Error(expected, "is not in", described)
		}
	}
}
