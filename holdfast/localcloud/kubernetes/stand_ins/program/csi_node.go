package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fsxNode publishes volumes as AWS's driver does: same checks in the same order, same words (pkg/driver/node.go).
type fsxNode struct {
	csi.UnimplementedNodeServer
	root   string
	mounts mounts

	lock sync.Mutex
	busy map[string]bool // volume and target of the calls that are under way
}

func (n *fsxNode) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	name := os.Getenv("CSI_NODE_NAME")
	if name == "" {
		return nil, status.Error(codes.Internal, "CSI_NODE_NAME is not set")
	}
	return &csi.NodeGetInfoResponse{NodeId: name}, nil
}

func (n *fsxNode) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (n *fsxNode) NodePublishVolume(_ context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	dns, name, target := request.GetVolumeContext()["dnsname"], request.GetVolumeContext()["mountname"], request.GetTargetPath()
	capability := request.GetVolumeCapability()
	switch {
	case request.GetVolumeId() == "":
		return nil, status.Error(codes.InvalidArgument, "Volume ID not provided")
	case dns == "":
		return nil, status.Error(codes.InvalidArgument, "dnsname is not provided")
	case target == "":
		return nil, status.Error(codes.InvalidArgument, "Target path not provided")
	case capability == nil:
		return nil, status.Error(codes.InvalidArgument, "Volume capability not provided")
	case !supported(capability.GetAccessMode().GetMode()):
		return nil, status.Error(codes.InvalidArgument, "Volume capability not supported")
	}
	if name == "" {
		name = "fsx"
	}
	done, err := n.begin(request.GetVolumeId(), target)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := os.MkdirAll(target, 0o755); err != nil {
		return nil, status.Errorf(codes.Internal, "Could not create dir %q: %v", target, err)
	}
	mounted, err := n.mounts.mounted(target)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "Could not check if %q is mounted: %v", target, err)
	}
	if mounted {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	source := fmt.Sprintf("%s@tcp:/%s", dns, name)
	if err := mountLustre(n.mounts, n.root, source, target, mountOptions(request)); err != nil {
		_ = os.Remove(target)
		return nil, status.Errorf(codes.Internal, "Could not mount %q at %q: %v", source, target, err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (n *fsxNode) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	target := request.GetTargetPath()
	switch {
	case request.GetVolumeId() == "":
		return nil, status.Error(codes.InvalidArgument, "Volume ID not provided")
	case target == "":
		return nil, status.Error(codes.InvalidArgument, "Target path not provided")
	}
	done, err := n.begin(request.GetVolumeId(), target)
	if err != nil {
		return nil, err
	}
	defer done()
	if mounted, err := n.mounts.mounted(target); err == nil && mounted {
		if err := n.mounts.unmount(target); err != nil {
			return nil, status.Errorf(codes.Internal, "Could not unmount %q: %v", target, err)
		}
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// begin refuses a second call for the same volume and target while one is under way.
func (n *fsxNode) begin(volume, target string) (func(), error) {
	key := volume + "-" + target
	n.lock.Lock()
	defer n.lock.Unlock()
	if n.busy[key] {
		return nil, status.Errorf(codes.Aborted, "An operation with the given volume=%q and target=%q is already in progress", volume, target)
	}
	if n.busy == nil {
		n.busy = map[string]bool{}
	}
	n.busy[key] = true
	return func() {
		n.lock.Lock()
		defer n.lock.Unlock()
		delete(n.busy, key)
	}, nil
}

// supported are the access modes of the driver's volumeCaps (pkg/driver/controller.go): read-only-many is not one.
func supported(mode csi.VolumeCapability_AccessMode_Mode) bool {
	return mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER || mode == csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
}

// mountOptions are "ro" for a read-only volume and the PersistentVolume's mountOptions, each once.
func mountOptions(request *csi.NodePublishVolumeRequest) []string {
	options, seen := []string{}, map[string]bool{}
	if request.GetReadonly() {
		options, seen["ro"] = append(options, "ro"), true
	}
	for _, option := range request.GetVolumeCapability().GetMount().GetMountFlags() {
		if !seen[option] {
			options, seen[option] = append(options, option), true
		}
	}
	return options
}
