package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const (
	registrationDirectory = "/registration"
	driverTimeout         = 30 * time.Second
	probeTimeout          = time.Second // --probe-timeout of github.com/kubernetes-csi/livenessprobe
)

// runNodeDriverRegistrar does what github.com/kubernetes-csi/node-driver-registrar does: it asks the driver for its name
// and tells the kubelet, which looks for sockets in its plugins_registry, at which path of the node the driver listens.
func runNodeDriverRegistrar(ctx context.Context, arguments []string) error {
	given := parseOptions(arguments)
	at := given.last("kubelet-registration-path", "")
	if at == "" {
		return fmt.Errorf("kubelet-registration-path is a required parameter")
	}
	name, err := driverName(ctx, given.last("csi-address", "/run/csi/socket"))
	if err != nil {
		return err
	}
	return registerDriver(ctx, given.last("plugin-registration-path", registrationDirectory), name, at)
}

func driverName(ctx context.Context, socket string) (string, error) {
	bounded, cancel := context.WithTimeout(ctx, driverTimeout)
	defer cancel()
	connection, err := dialUnix(bounded, socket)
	if err != nil {
		return "", fmt.Errorf("no driver at %s: %w", socket, err)
	}
	defer connection.Close()
	told, err := csi.NewIdentityClient(connection).GetPluginInfo(bounded, &csi.GetPluginInfoRequest{})
	return told.GetName(), err
}

// registerDriver answers the kubelet until the context ends, or with an error when the kubelet refuses the driver.
func registerDriver(ctx context.Context, directory, name, at string) error {
	registrar := &registrar{info: registerapi.PluginInfo{
		Type: registerapi.CSIPlugin, Name: name, Endpoint: at, SupportedVersions: []string{"1.0.0"},
	}, refused: make(chan string, 1)}
	stop, err := serveUnix(filepath.Join(directory, name+"-reg.sock"), func(server *grpc.Server) {
		registerapi.RegisterRegistrationServer(server, registrar)
	})
	if err != nil {
		return err
	}
	defer stop()
	select {
	case <-ctx.Done():
		return nil
	case why := <-registrar.refused:
		return fmt.Errorf("the kubelet does not register %s: %s", name, why)
	}
}

type registrar struct {
	info    registerapi.PluginInfo
	refused chan string
}

func (r *registrar) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &r.info, nil
}

func (r *registrar) NotifyRegistrationStatus(_ context.Context, status *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	if status.PluginRegistered {
		log.Printf("the kubelet registered %s", r.info.Name)
	} else {
		select {
		case r.refused <- status.Error:
		default:
		}
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// runLivenessProbe answers /healthz by a Probe of the driver, as github.com/kubernetes-csi/livenessprobe does.
func runLivenessProbe(ctx context.Context, arguments []string) error {
	given := parseOptions(arguments)
	socket := given.last("csi-address", "/run/csi/socket")
	answer := func(writer http.ResponseWriter, request *http.Request) {
		if err := probe(request.Context(), socket); err != nil {
			writer.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(writer, err)
			return
		}
		fmt.Fprint(writer, "ok")
	}
	return serveHTTP(ctx, ":"+given.last("health-port", "9808"), map[string]http.HandlerFunc{"/healthz": answer})
}

func probe(ctx context.Context, socket string) error {
	bounded, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	connection, err := dialUnix(bounded, socket)
	if err != nil {
		return fmt.Errorf("no driver at %s: %w", socket, err)
	}
	defer connection.Close()
	told, err := csi.NewIdentityClient(connection).Probe(bounded, &csi.ProbeRequest{})
	if err == nil && told.GetReady() != nil && !told.GetReady().GetValue() {
		err = fmt.Errorf("the driver is not ready")
	}
	return err
}

// serveHTTP answers at these paths until the context ends.
func serveHTTP(ctx context.Context, address string, paths map[string]http.HandlerFunc) error {
	routes := http.NewServeMux()
	for path, handler := range paths {
		routes.HandleFunc(path, handler)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}
