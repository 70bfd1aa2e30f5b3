package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

const (
	fsxDriver        = "fsx.csi.aws.com"
	fsxDriverVersion = "1.9.0" // what it behaves as: github.com/kubernetes-sigs/aws-fsx-csi-driver, read 2026-11
	lustreRoot       = "/run/holdfast/lustre"
)

// runFsxCsi serves the CSI driver for FSx for Lustre: the node service mounts what the local account has, the identity
// service is AWS's. --mode=controller serves the identity alone: nothing is provisioned here. With
// --kubelet-registration-path it registers itself too, where no node-driver-registrar runs beside it.
func runFsxCsi(ctx context.Context, arguments []string) error {
	if len(arguments) > 0 && arguments[0] == "pre-stop-hook" {
		return nil // on AWS it waits for volumes of a node that is drained; here they end with their pods
	}
	given := parseOptions(arguments)
	socket, err := unixPath(given.last("endpoint", "unix:/csi/csi.sock"))
	if err != nil {
		return err
	}
	mode := given.last("mode", "all")
	stop, err := serveUnix(socket, func(server *grpc.Server) {
		csi.RegisterIdentityServer(server, fsxIdentity{})
		if mode != "controller" {
			csi.RegisterNodeServer(server, &fsxNode{root: given.last("lustre-root", lustreRoot), mounts: linuxMounts{}})
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	log.Printf("%s (%s) listens at %s", fsxDriver, mode, socket)
	if mode != "controller" {
		go removeTaint(ctx, os.Getenv("CSI_NODE_NAME"), fsxDriver+"/agent-not-ready")
	}
	if at := given.last("kubelet-registration-path", ""); at != "" {
		return registerDriver(ctx, given.last("registration-directory", registrationDirectory), fsxDriver, at)
	}
	<-ctx.Done()
	return nil
}

type fsxIdentity struct {
	csi.UnimplementedIdentityServer
}

func (fsxIdentity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: fsxDriver, VendorVersion: fsxDriverVersion}, nil
}

func (fsxIdentity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{
			Type: csi.PluginCapability_Service_CONTROLLER_SERVICE,
		}}},
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{
			Type: csi.PluginCapability_VolumeExpansion_ONLINE,
		}}},
	}}, nil
}

func (fsxIdentity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// unixPath takes unix:/csi/csi.sock and unix:///csi/csi.sock alike.
func unixPath(endpoint string) (string, error) {
	rest := strings.TrimPrefix(endpoint, "unix:")
	if rest == endpoint || rest == "" {
		return "", fmt.Errorf("--endpoint %q is not of the form unix:/path", endpoint)
	}
	return path.Join("/", rest), nil
}
