package main

import (
	"context"
	"io/fs"
	"log"
	"os"
	"reflect"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

var deviceOptions = &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true}

// A deviceServer answers the kubelet's questions about the devices of one resource.
type deviceServer struct {
	pluginapi.UnimplementedDevicePluginServer
	inventory inventory
	told      string // where devices are marked as unhealthy
}

func (s *deviceServer) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return deviceOptions, nil
}

// ListAndWatch sends all devices, and again when the health of one changed. Unlike NVIDIA's plugin, which never takes a
// device back, a device is healthy again when its mark is gone: whoever breaks a device here also repairs it.
func (s *deviceServer) ListAndWatch(_ *pluginapi.Empty, stream pluginapi.DevicePlugin_ListAndWatchServer) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var sent map[string]bool
	for {
		if unhealthy := unhealthyIn(s.told, s.inventory.resource); sent == nil || !reflect.DeepEqual(unhealthy, sent) {
			if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: s.inventory.devices(unhealthy)}); err != nil {
				return err
			}
			if len(unhealthy)+len(sent) > 0 {
				log.Printf("%s: %d devices are marked as unhealthy", s.inventory.resource, len(unhealthy))
			}
			sent = unhealthy
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (s *deviceServer) GetPreferredAllocation(_ context.Context, request *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	answer := &pluginapi.PreferredAllocationResponse{}
	for _, each := range request.ContainerRequests {
		ids := s.inventory.preferred(each.AvailableDeviceIDs, each.MustIncludeDeviceIDs, int(each.AllocationSize))
		answer.ContainerResponses = append(answer.ContainerResponses, &pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return answer, nil
}

func (s *deviceServer) Allocate(_ context.Context, request *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	answer := &pluginapi.AllocateResponse{}
	for _, each := range request.ContainerRequests {
		one, err := s.inventory.allocated(each.DevicesIDs, isDevice)
		if err != nil {
			return nil, err
		}
		answer.ContainerResponses = append(answer.ContainerResponses, one)
	}
	return answer, nil
}

func isDevice(path string) bool {
	found, err := os.Stat(path)
	return err == nil && found.Mode()&fs.ModeCharDevice != 0
}
