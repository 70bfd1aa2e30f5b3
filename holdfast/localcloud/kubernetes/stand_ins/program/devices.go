package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// A family says how the devices of a resource are named and what a container that gets some is told.
type family struct {
	id     string // a format, of the device's index
	env    string // the variable that lists a container's devices, if there is one
	values string // what stands in it: "id" or "index"
	node   string // a format: the device node that the container gets where the machine has one
}

// Ids of GPUs are UUIDs as NVML's are, and the variable is all that the default device list strategy "envvar" gives
// (github.com/NVIDIA/k8s-device-plugin, internal/plugin/server.go, read 2026-11). How the plugins for EFA and Neuron name
// their devices is published nowhere: the ids are the kernel's names, assumed; the device nodes are those that the
// documentation shows in containers (EKS User Guide "Manage EFA devices on Amazon EKS" and AWS Neuron "Kubernetes
// environment setup for Neuron", read 2026-11). Variables of the Neuron runtime name cores, not devices.
var families = map[string]family{
	"nvidia.com/gpu":              {id: "GPU-00000000-0000-0000-0000-%012d", env: "NVIDIA_VISIBLE_DEVICES", values: "id"},
	"vpc.amazonaws.com/efa":       {id: "efa_%d", node: "/dev/infiniband/uverbs%d"},
	"aws.amazon.com/neuron":       {id: "neuron%d", node: "/dev/neuron%d"},
	"aws.amazon.com/neurondevice": {id: "neuron%d", node: "/dev/neuron%d"},
	"aws.amazon.com/neuroncore":   {id: "neuroncore%d", env: "NEURON_RT_VISIBLE_CORES", values: "index"},
}

// An inventory is the devices of one resource on a node.
type inventory struct {
	resource string
	count    int
	kind     family
}

func newInventory(resource string, count int) inventory {
	kind, known := families[resource]
	if !known {
		kind = family{id: strings.NewReplacer("/", "-", ".", "-").Replace(resource) + "-%d"}
	}
	return inventory{resource: resource, count: count, kind: kind}
}

func (i inventory) id(index int) string { return fmt.Sprintf(i.kind.id, index) }

func (i inventory) index(id string) (int, bool) {
	for index := 0; index < i.count; index++ {
		if i.id(index) == id {
			return index, true
		}
	}
	return 0, false
}

// devices lists all of them. A device is unhealthy while its name, which is its id or its index, is in the set.
func (i inventory) devices(unhealthy map[string]bool) []*pluginapi.Device {
	listed := make([]*pluginapi.Device, 0, i.count)
	for index := 0; index < i.count; index++ {
		health := pluginapi.Healthy
		if unhealthy[i.id(index)] || unhealthy[strconv.Itoa(index)] {
			health = pluginapi.Unhealthy
		}
		listed = append(listed, &pluginapi.Device{ID: i.id(index), Health: health})
	}
	return listed
}

// preferred chooses the lowest indexes, after those that must be in, so that the same pods get the same devices.
func (i inventory) preferred(available, included []string, size int) []string {
	ids := append([]string{}, included...)
	taken := map[string]bool{}
	for _, id := range ids {
		taken[id] = true
	}
	rest := append([]string{}, available...)
	sort.Slice(rest, func(a, b int) bool {
		first, _ := i.index(rest[a])
		second, _ := i.index(rest[b])
		return first < second
	})
	for _, id := range rest {
		if len(ids) < size && !taken[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// allocated is what a container with these devices is told; exists says whether the node has a device file.
func (i inventory) allocated(ids []string, exists func(string) bool) (*pluginapi.ContainerAllocateResponse, error) {
	answer := &pluginapi.ContainerAllocateResponse{}
	indexes := make([]int, 0, len(ids))
	for _, id := range ids {
		index, known := i.index(id)
		if !known {
			return nil, fmt.Errorf("invalid allocation request for '%s': unknown device: %s", i.resource, id)
		}
		indexes = append(indexes, index)
	}
	sort.Ints(indexes)
	values := make([]string, 0, len(ids))
	for _, index := range indexes {
		value := i.id(index)
		if i.kind.values == "index" {
			value = strconv.Itoa(index)
		}
		values = append(values, value)
		if i.kind.node == "" {
			continue
		}
		if path := fmt.Sprintf(i.kind.node, index); exists(path) {
			answer.Devices = append(answer.Devices, &pluginapi.DeviceSpec{ContainerPath: path, HostPath: path, Permissions: "rw"})
		}
	}
	if i.kind.env != "" {
		answer.Envs = map[string]string{i.kind.env: strings.Join(values, ",")}
	}
	return answer, nil
}

// countOn reads how many devices of a resource the node has: none where the file or the resource is not there.
func countOn(file string, resource string) (int, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	counts := map[string]int{}
	if err := json.Unmarshal(content, &counts); err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return counts[resource], nil
}

// unhealthyIn lists the devices for which there is a file <resource with _ for />/<id or index>.unhealthy.
func unhealthyIn(root string, resource string) map[string]bool {
	names := map[string]bool{}
	entries, _ := os.ReadDir(filepath.Join(root, strings.ReplaceAll(resource, "/", "_")))
	for _, entry := range entries {
		if name := strings.TrimSuffix(entry.Name(), ".unhealthy"); name != entry.Name() {
			names[name] = true
		}
	}
	return names
}
