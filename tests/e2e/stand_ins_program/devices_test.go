package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func none(string) bool { return false }

func TestAContainerGetsItsGPUsAsNVIDIAsPluginNamesThem(t *testing.T) {
	gpus := newInventory("nvidia.com/gpu", 8)
	given, err := gpus.allocated([]string{gpus.id(5), gpus.id(2)}, none)
	want := map[string]string{"NVIDIA_VISIBLE_DEVICES": gpus.id(2) + "," + gpus.id(5)}
	if err != nil || !reflect.DeepEqual(given.Envs, want) || len(given.Devices) != 0 {
		t.Fatalf("got %v, %v", given, err)
	}
}

func TestADeviceNodeIsGivenOnlyWhereTheMachineHasIt(t *testing.T) {
	efa := newInventory("vpc.amazonaws.com/efa", 2)
	given, err := efa.allocated([]string{"efa_0", "efa_1"}, func(path string) bool { return path == "/dev/infiniband/uverbs1" })
	if err != nil || len(given.Devices) != 1 || given.Devices[0].HostPath != "/dev/infiniband/uverbs1" {
		t.Fatalf("got %v, %v", given, err)
	}
}

func TestADeviceThatTheNodeLacksIsRefused(t *testing.T) {
	if _, err := newInventory("nvidia.com/gpu", 1).allocated([]string{"GPU-other"}, none); err == nil {
		t.Fatal("an unknown device was allocated")
	}
}

func TestTheLowestIndexesArePreferredAfterThoseThatMustBeIn(t *testing.T) {
	cores := newInventory("aws.amazon.com/neuroncore", 12)
	available := []string{"neuroncore10", "neuroncore3", "neuroncore2", "neuroncore7"}
	if got := cores.preferred(available, []string{"neuroncore7"}, 3); !reflect.DeepEqual(got, []string{"neuroncore7", "neuroncore2", "neuroncore3"}) {
		t.Fatalf("got %v", got)
	}
}

func TestAMarkMakesADeviceUnhealthyByItsIndexOrItsName(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "nvidia.com_gpu")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	gpus := newInventory("nvidia.com/gpu", 3)
	for _, name := range []string{"0.unhealthy", gpus.id(2) + ".unhealthy", "1"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	health := []string{}
	for _, each := range gpus.devices(unhealthyIn(root, "nvidia.com/gpu")) {
		health = append(health, each.Health)
	}
	if !reflect.DeepEqual(health, []string{"Unhealthy", "Healthy", "Unhealthy"}) {
		t.Fatalf("got %v", health)
	}
}

func TestANodeWithoutTheFileOrTheResourceHasNoDevices(t *testing.T) {
	file := filepath.Join(t.TempDir(), "accelerators.json")
	if count, err := countOn(file, "nvidia.com/gpu"); count != 0 || err != nil {
		t.Fatalf("got %d, %v", count, err)
	}
	if err := os.WriteFile(file, []byte(`{"vpc.amazonaws.com/efa": 32}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[string]int{"nvidia.com/gpu": 0, "vpc.amazonaws.com/efa": 32} {
		if count, err := countOn(file, resource); count != want || err != nil {
			t.Fatalf("%s: got %d, %v", resource, count, err)
		}
	}
}

func TestOptionsOfTheRealProgramsAreNoMistake(t *testing.T) {
	given := parseOptions([]string{"--mig-strategy=none", "-v", "2", "--resource", "a/b", "--resource=c/d", "--pass-device-specs"})
	if !reflect.DeepEqual(given["resource"], []string{"a/b", "c/d"}) || given.last("v", "") != "2" || given.last("pass-device-specs", "") != "true" {
		t.Fatalf("got %v", given)
	}
}
